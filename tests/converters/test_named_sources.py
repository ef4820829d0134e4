"""`adp convert claude-code:` and its like, night after night: only what has changed is read."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

import adp
from adp.converters.session_folders import AGENTS
from adp.stores.merge_latest import merge_latest
from adp_schema.errors import NothingNewError
from tests.converters.readers.test_databases import make_database, tables_of
from tests.fuzz.readers import EXAMPLES

ROWS = {"opencode": "rows.json", "hermes_agent": "rows.json"}


@pytest.fixture
def home(tmp_path, monkeypatch):
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "home"


def fill(home: Path, name: str) -> list[Path]:
    """Put sessions where an agent keeps them; the files that may grow."""
    agent = AGENTS[name]
    folder = home / agent.folders[0].replace("*", "x")
    for number in range(3):
        shutil.copytree(EXAMPLES / agent.format, folder / f"work{number}")
    database = folder / "work1" / "state.db"
    if agent.format in ROWS:
        text = (EXAMPLES / agent.format / ROWS[agent.format]).read_text("utf-8")
        make_database(database, tables_of([json.loads(text)]))
    for path in folder.rglob("*"):
        os.utime(path, ns=(time.time_ns() - 10**10,) * 2)
    files = [path for path in folder.rglob("*") if "work1" in path.parts and path.is_file()]
    return sorted(files, key=lambda path: (path.suffix != ".db", path.suffix != ".jsonl", path))


def change(path: Path) -> None:
    """Add to a log, to a database, or change how a document is laid out."""
    if path.suffix == ".db":
        with closing(sqlite3.connect(path)) as connection:
            (table,) = connection.execute("SELECT name FROM sqlite_master LIMIT 1").fetchone()
            connection.execute(f'INSERT INTO "{table}" SELECT * FROM "{table}" LIMIT 1')
            connection.commit()
        return
    data = path.read_bytes()
    path.write_bytes(data + (data.splitlines()[-1] if path.suffix == ".jsonl" else b"") + b"\n")


def steps_of(store) -> list[tuple[str, str]]:
    rows = store.query("SELECT source, text FROM steps").to_pylist()
    return sorted((row["source"] or "", row["text"] or "") for row in rows)


@pytest.mark.parametrize("name", sorted(AGENTS))
def test_a_night_reads_only_the_log_that_has_grown(name, home, tmp_path):
    logs = fill(home, name)
    first = adp.convert(f"{name}:", tmp_path / "monday", workers=1)
    assert first.manifest.counts.trajectories > 0
    with pytest.raises(NothingNewError):  # it also remembers what it looked at
        adp.convert(f"{name}:", tmp_path / "none", since=tmp_path / "monday", workers=1)
    change(changed := logs[0])
    second = adp.convert(f"{name}:", tmp_path / "tuesday", since=tmp_path / "monday", workers=1)
    names = second.query("SELECT source_file AS n FROM sources")["n"].to_pylist()
    assert any(str(changed).endswith(name) for name in names)
    folders = {Path(name).parts[0] for name in names}
    assert len(folders) == 1
    merge_latest([str(tmp_path / "monday"), str(tmp_path / "tuesday")], str(tmp_path / "all"))
    whole = adp.convert(f"{name}:", tmp_path / "whole", workers=1)
    assert steps_of(adp.open(tmp_path / "all")) == steps_of(whole)
