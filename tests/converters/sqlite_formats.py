"""Formats for tests whose sessions lie in an SQLite database, and databases of theirs."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from msgspec import Raw

from adp.converters.files.sqlite import SqliteShape
from adp.converters.format import Format
from adp_schema.builder import RowBuilder
from adp_schema.losses import Losses
from adp_schema.model import Trajectory
from adp_schema.protocols import Match, RawRecord


class SessionTables(Format):
    """A session a row; its record is the text of its only step."""

    name = "session_tables"
    title = "for tests"
    container = "sqlite"
    database: SqliteShape | None = SqliteShape(
        root="session",
        key="id",
        children={"message": "session_id", "part": "session_id"},
        order={"message": ("time", "gone")},
        shared=("project",),
        needs=("message.data",),
    )

    def sniff(self, record: Mapping[str, Raw]) -> Match:
        return Match.STAMP if {"session", "message"} <= set(record) else Match.NO

    def read(self, record: RawRecord, builder: RowBuilder, losses: Losses) -> None:
        json.loads(record.data)
        builder.trajectory({})
        builder.step({"source": "user", "kind": "message", "text": record.data.decode()})
        builder.finish()

    def write(
        self, trajectory: Trajectory, losses: Losses, flavour: str | None = None
    ) -> dict[str, Any]:
        tree: dict[str, Any] = json.loads(trajectory.steps[0].text or "")
        return tree


class KeysAndValues(SessionTables):
    """Sessions in a table of keys and values."""

    name = "keys_and_values"
    database = SqliteShape(
        root="cursorDiskKV",
        key="key",
        prefix="composerData:",
        children={"bubbleId": "bubbleId:{id}:", "notes": "notes:{id}"},
        needs=("cursorDiskKV.value",),
    )

    def sniff(self, record: Mapping[str, Raw]) -> Match:
        return Match.STAMP if "cursorDiskKV" in record else Match.NO


TABLES = SessionTables()
KEYS = KeysAndValues()

SCHEMA = """
CREATE TABLE project (id TEXT PRIMARY KEY, path TEXT);
CREATE TABLE session (id TEXT PRIMARY KEY, project_id TEXT, cost REAL, title TEXT);
CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT, time INTEGER, data TEXT);
CREATE TABLE part (id TEXT PRIMARY KEY, session_id TEXT, data BLOB);
CREATE INDEX message_session ON message (session_id);
CREATE TABLE migration (name TEXT);
CREATE TABLE empty (name TEXT);
CREATE VIEW busy AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x FROM n;
"""


def fill(connection: sqlite3.Connection, sessions: int = 3, messages: int = 4) -> None:
    """Put sessions into tables that are there."""
    connection.execute("INSERT INTO project VALUES ('p1', '/home/x')")
    for number in range(sessions):
        name = f"s{number}"
        row = (name, "p1", number + 0.5, None)
        connection.execute("INSERT INTO session VALUES (?, ?, ?, ?)", row)
        for at in range(messages):
            data = json.dumps({"role": "user", "text": f"é {at}"}, ensure_ascii=False)
            values = (f"{name}m{at}", name, messages - at, data)
            connection.execute("INSERT INTO message VALUES (?, ?, ?, ?)", values)
        connection.execute("INSERT INTO part VALUES (?, ?, ?)", (f"{name}p", name, b"\x00\xff"))
    connection.execute("INSERT INTO migration VALUES ('a'), ('b')")
    connection.commit()


def made(path: Path, sessions: int = 3, messages: int = 4, more: str = "") -> Path:
    """A database of `SessionTables`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(SCHEMA)
        fill(connection, sessions, messages)
        connection.executescript(more)
        connection.commit()
    return path


def records_of(store: Any) -> list[dict[str, Any]]:
    """What the format was given, record by record."""
    return [json.loads(t.steps[0].text) for t in store.trajectories()]
