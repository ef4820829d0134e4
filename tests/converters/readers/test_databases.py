"""Sessions in SQLite databases: what a database gives is what the same rows give as JSON."""

from __future__ import annotations

import base64
import importlib
import json
import sqlite3
from contextlib import closing

import pytest

import adp
from adp.converters.readers import READERS
from adp.converters.registry import formats
from tests.converters.readers.samples_store import convert, real
from tests.fuzz.readers import EXAMPLES

ROWS = [
    ("crush", "rows.jsonl"),
    ("hermes_agent", "rows.json"),
    ("kiro", "row.json"),
    ("opencode", "rows.json"),
    ("pi", "openclaw_rows.json"),
    ("cursor", "editor.jsonl"),
    ("cursor", "terminal.jsonl"),
]
TABLES = ("steps", "tool_calls", "observations")


def tables_of(records):
    """The rows of each table; rows of one table may stand in a record under several names."""
    tables = {}
    for record in records:
        for name, rows in record.items():
            rows = rows if isinstance(rows, list) else [rows]
            is_pieces = name == "bubbleId"
            known = tables.setdefault("cursorDiskKV" if is_pieces else name, [])
            known += [row for row in rows if row not in known]
    return tables


def cell_of(value):
    return base64.b64decode(value["$base64"]) if isinstance(value, dict) else value


def make_database(path, tables):
    with closing(sqlite3.connect(path)) as connection:
        for name, rows in tables.items():
            columns = list(dict.fromkeys(column for row in rows for column in row))
            listed = ", ".join(f'"{column}"' for column in columns)
            connection.execute(f'CREATE TABLE "{name}" ({listed})')
            marks = ", ".join("?" * len(columns))
            values = [[cell_of(row.get(column)) for column in columns] for row in rows]
            connection.executemany(f'INSERT INTO "{name}" VALUES ({marks})', values)
        connection.commit()


def rows_of(path, folder):
    store = str(folder)
    counts = adp.convert([str(path)], store).manifest.counts
    columns = {
        "steps": "source, kind, text, reasoning, native_id, timestamp, model, tokens_out",
        "tool_calls": "step, call, call_id, name, arguments, status",
        "observations": "call_step, call, call_id, text, is_error, exit_code",
    }
    return counts, {
        name: adp.query(store, f"SELECT {columns[name]} FROM {name} ORDER BY ALL").to_pylist()
        for name in TABLES
    }


@pytest.mark.parametrize(("name", "file"), ROWS, ids=lambda value: str(value))
def test_a_database_gives_what_its_rows_give(name, file, tmp_path):
    example = EXAMPLES / name / file
    text = example.read_text("utf-8")
    records = [json.loads(line) for line in text.splitlines()] if file.endswith("l") else [
        json.loads(text)]  # fmt: skip
    make_database(tmp_path / "sessions.db", tables_of(records))
    counts, rows = rows_of(tmp_path / "sessions.db", tmp_path / "s")
    assert (counts.used, counts.rejected) == (len(records), 0)
    assert rows == rows_of(example, tmp_path / "s2")[1]
    assert rows["steps"]


def test_each_format_with_a_database_has_an_example():
    """So these and the torn databases try each of them."""
    names = {name for name in READERS if getattr(formats.get(name), "database", None)}
    assert names == {name for name, _ in ROWS}


def test_parts_that_only_name_their_message(tmp_path):
    """As in databases that other tools write; the parts of all messages are found."""
    [record] = [json.loads((EXAMPLES / "opencode" / "rows.json").read_text("utf-8"))]
    expected = rows_of(EXAMPLES / "opencode" / "rows.json", tmp_path / "s")[1]
    for part in record["part"]:
        part.pop("session_id")
    record["part"].append({"id": "lone", "message_id": "nobody", "data": "{}"})
    make_database(tmp_path / "a.db", tables_of([record]))
    counts, rows = rows_of(tmp_path / "a.db", tmp_path / "s2")
    owned = {message["id"] for message in record["message"]}
    lonely = sum(part["message_id"] not in owned for part in record["part"])
    assert lonely
    assert (counts.used, counts.skipped) == (1, 1)
    [note] = adp.query(str(tmp_path / "s2"), "SELECT reason FROM rejects").to_pylist()
    assert note["reason"] == f"{lonely} rows of part belong to no row of session"
    assert rows["tool_calls"] == expected["tool_calls"]


def test_a_folder_of_a_file_a_message(tmp_path):
    """The old folder of opencode: a session, its messages and their parts, each in a file."""
    record = json.loads((EXAMPLES / "opencode" / "export.json").read_text("utf-8"))
    session = record["info"]["id"]
    files = {f"session/p/{session}.json": record["info"]}
    calls = 0
    for message in record["messages"]:
        info = {**message["info"], "sessionID": session}
        files[f"message/{session}/{info['id']}.json"] = info
        for number, part in enumerate(message["parts"]):
            files[f"part/{info['id']}/{number:03}.json"] = {**part, "messageID": info["id"]}
            calls += part.get("type") == "tool"
    files["message/other/m1.json"] = {"id": "m1", "sessionID": "other", "role": "user", "time": {}}
    files["part/m1/p.json"] = {"id": "p", "messageID": "m1", "sessionID": "other", "type": "text",
                               "text": "whose session is gone"}  # fmt: skip
    for name, content in files.items():
        path = tmp_path / "storage" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content), "utf-8")
    counts, rows = rows_of(tmp_path / "storage", tmp_path / "s")
    assert (counts.used, counts.records) == (len(files), len(files))
    assert len(rows["tool_calls"]) == calls > 2
    texts = {step["text"] for step in rows["steps"]}
    assert "whose session is gone" in texts
    expected = rows_of(EXAMPLES / "opencode" / "export.json", tmp_path / "s2")[1]
    assert {step["text"] for step in expected["steps"]} <= texts


def test_real_databases(tmp_path):
    paths = [*real("formats/opencode/*.db"), *real("formats_new/cursor/*db")]
    for number, path in enumerate(paths):
        sql = convert(path, tmp_path / f"s{number}")
        expected = 0
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro&immutable=1", uri=True)) as raw:
            names = {row[0] for row in raw.execute("SELECT name FROM sqlite_master")}
            table, column = ("part", "data") if "part" in names else ("cursorDiskKV", "value")
            if table in names:
                cells = [row[0] for row in raw.execute(f"SELECT {column} FROM {table}") if row[0]]
                values = [json.loads(cell) for cell in cells]
                expected = sum(it.get("type") == "tool" or "toolFormerData" in it for it in values)
        assert sql("SELECT count(*) AS n FROM tool_calls")[0]["n"] == expected


def test_a_file_that_vanishes_before_its_links_are_read(tmp_path, monkeypatch):
    """It is one rejected record; the session beside it is read."""
    session = json.loads((EXAMPLES / "opencode" / "export.json").read_text("utf-8"))
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.json").write_text(json.dumps(session), "utf-8")
    gone = tmp_path / "in" / "message" / "ses" / "m.json"
    gone.parent.mkdir(parents=True)
    message = {"id": "m", "sessionID": "ses", "role": "user", "time": {"created": 1}}
    gone.write_text(json.dumps(message), "utf-8")
    plan = "adp.converters.plan._plan_file"
    original = importlib.import_module("adp.converters.plan")._plan_file

    def planned(item, choice):
        result = original(item, choice)
        if item.source_file.endswith("m.json"):
            gone.unlink()
        return result

    monkeypatch.setattr(plan, planned)
    counts = adp.convert([str(tmp_path / "in")], str(tmp_path / "s")).manifest.counts
    assert (counts.used, counts.rejected) == (1, 1)
