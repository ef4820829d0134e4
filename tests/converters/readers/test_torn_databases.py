"""Databases of agents that are torn, in use or of another version: nothing is written to them."""

from __future__ import annotations

import json
import random
import re
import shutil
import sqlite3
from contextlib import closing, suppress

import pytest

import adp
from adp_schema.errors import InputError
from tests.converters.readers.test_databases import ROWS, make_database, tables_of
from tests.effort import examples
from tests.fuzz.readers import EXAMPLES

DATABASES = pytest.mark.parametrize(("name", "file"), ROWS, ids=lambda value: str(value))
SEEDS = range(examples(18))
SESSIONS = 9
PAGE = 4096
LEAF = 13
"""The first byte of a page that holds rows of a table."""
_IDS = re.compile(
    r'"(?:id|session_id|conversation_id|message_id|composerId|bubbleId)\\*": ?\\*"([^"\\]{4,})\\*"'
)


def sessions_of(name, file, count):
    """The records of an example, and copies of them with ids of their own."""
    text = (EXAMPLES / name / file).read_text("utf-8")
    first = text.splitlines() if file.endswith("l") else [json.dumps(json.loads(text))]
    if file.startswith("terminal"):
        count = 1  # a database has one conversation
    texts = []
    for number in range(count):
        line = first[number % len(first)]
        if number >= len(first):
            for word in sorted(set(_IDS.findall(line)), key=len, reverse=True):
                line = line.replace(word, f"{word}x{number}")
        texts.append(line)
    return [json.loads(line) for line in texts]


@pytest.fixture
def path(name, file, tmp_path):
    place = tmp_path / "in" / "agent.db"
    place.parent.mkdir()
    make_database(place, tables_of(sessions_of(name, file, SESSIONS)))
    return place


def converted(folder, out):
    """A store of what is in a folder; what is there stays as it is."""
    before = state_of(folder)
    store = None
    with suppress(InputError):  # no input has a known format
        store = adp.convert(str(folder), str(out), workers=1)
    assert state_of(folder) == before
    if store is not None:
        assert store.manifest.counts.balanced()
    return store


def state_of(folder):
    return {it.name: (it.read_bytes(), it.stat().st_mtime_ns) for it in folder.iterdir()}


def sizes_of(store):
    sql = "SELECT (SELECT count(*) FROM steps) AS steps, (SELECT count(*) FROM tool_calls) AS calls"
    (row,) = store.query(sql).to_pylist() if store is not None else ({"steps": 0, "calls": 0},)
    return row["steps"], row["calls"]


@DATABASES
@pytest.mark.parametrize("seed", SEEDS)
def test_torn_at_any_place(path, seed, tmp_path):
    """Cut, or with pages of zeros: what is missing afterwards is reported."""
    whole = sizes_of(converted(path.parent, tmp_path / "whole"))
    chance, data = random.Random(seed), bytearray(path.read_bytes())
    if chance.random() < 0.5:
        del data[chance.randrange(100, len(data)) :]
    else:
        for _ in range(chance.randrange(1, 4)):
            place = chance.randrange(len(data) // PAGE) * PAGE
            data[place : place + PAGE] = bytes(PAGE)
    path.write_bytes(bytes(data))
    (path.parent / "sound.jsonl").write_text('{"messages": [{"role": "user", "content": "x"}]}\n')
    store = converted(path.parent, tmp_path / "torn")
    counts = store.manifest.counts
    steps, calls = sizes_of(store)
    if (steps - 1, calls) != whole:
        assert counts.rejected + counts.skipped > 0


@DATABASES
def test_a_page_that_hides_its_rows(path, tmp_path):
    """The number of rows on the page of a table is zero, which reads as an empty table."""
    data, (steps, _) = path.read_bytes(), sizes_of(converted(path.parent, tmp_path / "whole"))
    (path.parent / "sound.jsonl").write_text('{"messages": [{"role": "user", "content": "x"}]}\n')
    for number, place in enumerate(range(PAGE, len(data), PAGE)):
        if data[place] != LEAF:
            continue
        path.write_bytes(data[: place + 3] + b"\0\0" + data[place + 5 :])
        store = converted(path.parent, tmp_path / f"s{number}")
        if sizes_of(store)[0] - 1 < steps:
            assert store.manifest.counts.rejected + store.manifest.counts.skipped > 0


def test_values_that_a_table_should_not_have_are_no_damage(tmp_path):
    """A program may have written them before it had the rule."""
    path = tmp_path / "in" / "agent.db"
    path.parent.mkdir()
    make_database(path, tables_of(sessions_of("kiro", "row.json", 2)))
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        sql = (
            'CREATE TABLE "conversations_v2" ("key" CHECK ("key" = 5), "conversation_id", "value", '
        )
        sql += '"created_at" NOT NULL, "updated_at")'
        connection.execute(
            "UPDATE sqlite_master SET sql = ? WHERE name = 'conversations_v2'", [sql]
        )
        connection.execute("UPDATE conversations_v2 SET created_at = NULL")
        connection.commit()
    counts = converted(path.parent, tmp_path / "s").manifest.counts
    assert (counts.used, counts.rejected) == (2, 0)


@DATABASES
@pytest.mark.parametrize("seed", SEEDS)
def test_changed_bits(path, seed, tmp_path):
    chance, data = random.Random(seed), bytearray(path.read_bytes())
    for _ in range(chance.choice([1, 3, 30])):
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    path.write_bytes(bytes(data))
    converted(path.parent, tmp_path / "s")


@DATABASES
def test_a_hot_log(path, name, file, tmp_path):
    """The last rows of each table are in the log only; then the log is cut at any place."""
    whole = sizes_of(converted(path.parent, tmp_path / "whole"))
    live = tmp_path / "live.db"
    shutil.copy(path, live)
    path.unlink()
    with closing(sqlite3.connect(live)) as connection:
        tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_master")]
        cut = {table: connection.execute(
            f'SELECT * FROM "{table}" WHERE rowid > (SELECT max(rowid) / 2 FROM "{table}")'
        ).fetchall() for table in tables}  # fmt: skip
        for table in tables:
            connection.execute(
                f'DELETE FROM "{table}" WHERE rowid > (SELECT max(rowid) / 2 FROM "{table}")'
            )
        connection.commit()
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        for table, rows in cut.items():
            for row in rows:
                marks = ", ".join("?" * len(row))
                connection.execute(f'INSERT INTO "{table}" VALUES ({marks})', row)
                connection.commit()
        for suffix in ("", "-wal", "-shm"):
            shutil.copy(f"{live}{suffix}", f"{path}{suffix}")
    assert sizes_of(converted(path.parent, tmp_path / "hot")) == whole
    log = path.with_name("agent.db-wal")
    data, chance = log.read_bytes(), random.Random(name + file)
    for number in SEEDS:
        log.write_bytes(data[: chance.randrange(33, len(data))])
        steps, _ = sizes_of(converted(path.parent, tmp_path / f"cut{number}"))
        assert steps <= whole[0]


@DATABASES
def test_a_table_or_a_column_is_missing(path, tmp_path):
    """As in older versions: it is read without, or refused with what is missing."""
    with closing(sqlite3.connect(path)) as connection:
        tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_master")]
        columns = [
            (table, row[1]) for table in tables for row in
            connection.execute(f'PRAGMA table_info("{table}")')
        ]  # fmt: skip
    changes = [f'DROP TABLE "{table}"' for table in tables]
    changes += [f'ALTER TABLE "{table}" DROP COLUMN "{column}"' for table, column in columns]
    data = path.read_bytes()
    for number, change in enumerate(changes):
        path.write_bytes(data)
        with closing(sqlite3.connect(path)) as connection:
            try:
                connection.execute(change)
            except sqlite3.OperationalError:
                continue  # the only column of a table
            connection.commit()
        store = converted(path.parent, tmp_path / f"s{number}")
        assert store is None or store.manifest.counts.records > 0


@DATABASES
def test_null_in_every_column(path, tmp_path):
    """Of one row, and of all rows."""
    with closing(sqlite3.connect(path)) as connection:
        tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_master")]
        cells = [(table, row[1]) for table in tables for row in
                 connection.execute(f'PRAGMA table_info("{table}")')]  # fmt: skip
    data = path.read_bytes()
    for number, (table, column) in enumerate(cells):
        for where in ("rowid = 1", "true"):
            path.write_bytes(data)
            with closing(sqlite3.connect(path)) as connection:
                connection.execute(f'UPDATE "{table}" SET "{column}" = NULL WHERE {where}')
                connection.commit()
            store = converted(path.parent, tmp_path / f"s{number}{where[0]}")
            assert store is None or store.manifest.counts.records > 0


@DATABASES
@pytest.mark.parametrize("mode", ["DELETE", "WAL"])
def test_a_writer_holds_it(path, mode, tmp_path):
    """A change that is not finished is no part of the sessions, or the reason of a reject."""
    whole = sizes_of(converted(path.parent, tmp_path / "whole"))
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(f"PRAGMA journal_mode = {mode}")
        connection.execute("BEGIN EXCLUSIVE")
        store = converted(path.parent, tmp_path / "locked")
        assert sizes_of(store) == whole
        for (table,) in connection.execute("SELECT name FROM sqlite_master").fetchall():
            connection.execute(f'DELETE FROM "{table}"')
        store = converted(path.parent, tmp_path / "writing")
        if store is None:
            assert path.with_name("agent.db-journal").exists()
        else:
            assert sizes_of(store) == whole
        connection.execute("ROLLBACK")
    assert sizes_of(converted(path.parent, tmp_path / "after")) == whole
