"""OpenClaw: sessions in its database, whose rows hold the lines of a session of Pi."""

from __future__ import annotations

import base64
import json
import sqlite3
from contextlib import closing

import adp
from tests.converters.readers.samples_store import convert, numbers
from tests.fuzz.readers import EXAMPLES

ROWS = EXAMPLES / "pi" / "openclaw_rows.json"
SCHEMA = """
CREATE TABLE session_windows (session_id TEXT PRIMARY KEY, session_key TEXT NOT NULL,
  previous_session_id TEXT, created_at INTEGER, updated_at INTEGER, model TEXT);
CREATE TABLE transcript_events (session_id TEXT, seq INTEGER, event_json TEXT,
  created_at INTEGER, event_zstd BLOB, event_utf8_bytes INTEGER,
  PRIMARY KEY (session_id, seq));
CREATE TABLE session_nodes (session_key TEXT PRIMARY KEY, entry_json TEXT);
INSERT INTO session_nodes VALUES ('agent:main:main', '{}');
"""


def test_rows_of_a_session(tmp_path):
    ask = convert(ROWS, tmp_path / "store")
    assert numbers(ask) == (1, 1, 1)
    (run,) = ask("select source_id, agent_name, source_version v, agent_model from trajectories")
    assert tuple(run.values()) == ("oc-1", "openclaw", "4", "loaf-4")
    steps = ask("select source, text, tokens_in i, cost_usd c, kind from steps order by step")
    assert [it["source"] for it in steps] == ["user", "agent", "agent", "environment"]
    assert (steps[2]["text"], steps[2]["i"], steps[2]["c"]) == ("rye " * 40, 6, 0.5)
    links = ask("select kind, target_session_id t from links")
    assert links == [{"kind": "continuation", "t": "oc-0"}]


def test_a_database(tmp_path):
    """Rows that were written in another order, compressed lines, and a session without any."""
    record = json.loads(ROWS.read_text())
    path = tmp_path / "openclaw-agent.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(SCHEMA)
        for name in ("oc-1", "oc-2"):
            values = (name, "agent:main:main", None, 1785578400000, 1785578500000, "loaf-4")
            connection.execute("INSERT INTO session_windows VALUES (?, ?, ?, ?, ?, ?)", values)
        for row in reversed(record["transcript_events"]):
            packed = row["event_zstd"] and base64.b64decode(row["event_zstd"]["$base64"])
            row = (*list(row.values())[:4], packed, row["event_utf8_bytes"])
            connection.execute("INSERT INTO transcript_events VALUES (?, ?, ?, ?, ?, ?)", row)
        connection.commit()
    store = adp.convert([str(path)], str(tmp_path / "store"))
    counts = store.manifest.counts
    assert (counts.used, counts.skipped) == (2, 1)
    assert store.query("select count(*) n from tool_calls").to_pylist() == [{"n": 1}]
    texts = store.query("select text from steps where source = 'agent' order by step").to_pylist()
    assert texts[1]["text"] == "rye " * 40


def test_a_line_that_is_not_of_its_size_is_kept_as_it_is(tmp_path):
    record = json.loads(ROWS.read_text())
    record["transcript_events"][4]["event_utf8_bytes"] += 1
    path = tmp_path / "rows.json"
    path.write_text(json.dumps(record))
    ask = convert(path, tmp_path / "store")
    kept = ask("select extra from steps where kind = 'event' order by step")
    packed = record["transcript_events"][4]["event_zstd"]
    assert json.loads(kept[0]["extra"])["event_zstd"] == packed
