"""Cursor: transcripts, and conversations of its databases."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from tests.converters.readers.real_files import Rows, real, silent

EXAMPLES = Path(__file__).parent / "examples/cursor"


def test_a_transcript_pairs_by_order_where_calls_have_no_id(tmp_path):
    rows = Rows([EXAMPLES / "transcript.jsonl"], tmp_path / "store")
    results = rows.all(
        "select c.name, o.text, o.is_error, o.native_call_id from observations o left join"
        " tool_calls c on c.step = o.call_step and c.call = o.call order by o.step, o.order"
    )
    assert [(row["name"], row["text"]) for row in results] == [
        ("Shell", "3 kg"),
        ("Read", "none"),
        (None, "late"),
    ]
    assert results[1]["is_error"] is True
    assert [row["native_call_id"] for row in results] == ["t1", "t2", "t9"]
    assert rows.value("select reasoning from steps where step = 1") == "A scale is needed."
    (run,) = rows.all("select tools_origin, agent_model, session_id from trajectories")
    assert run == {"tools_origin": "recorded", "agent_model": "model-c", "session_id": "cur-1"}


def test_a_conversation_of_the_editor(tmp_path):
    rows = Rows([EXAMPLES / "editor.jsonl"], tmp_path / "store")
    steps = rows.all("select native_id, source, reasoning, tokens_in from steps order by step")
    assert [step["native_id"] for step in steps] == ["b1", "b2", "b3", "b4", None]
    assert (steps[1]["reasoning"], steps[1]["tokens_in"]) == ("Run it first.", 10)
    results = rows.all("select name, exit_code, is_error, text from observations order by step")
    assert (results[0]["exit_code"], results[0]["is_error"]) == (3, False)
    assert (results[1]["is_error"], results[1]["text"]) == (True, "no such file")


def test_a_conversation_of_the_terminal(tmp_path):
    rows = Rows([EXAMPLES / "terminal.jsonl"], tmp_path / "store")
    sources = rows.all("select source from steps order by step")
    assert [row["source"] for row in sources] == ["system", "user", "agent", "environment"]
    assert rows.count("observations", "call is not null and text = 'Monday'") == 1
    assert rows.value("select session_id from trajectories") == "cli-77"


@pytest.mark.parametrize("path", real("formats*/cursor/*.jsonl"))
def test_real_transcripts(path, tmp_path):
    rows = Rows([path], tmp_path / "store")
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    blocks = [(line["role"], block["type"]) for line in lines if "role" in line
              for block in line["message"]["content"]]  # fmt: skip
    calls = blocks.count(("assistant", "tool_use"))
    results = blocks.count(("user", "tool_result"))
    assert rows.count("tool_calls") == calls
    assert rows.count("observations") == rows.count("observations", "call is not null") == results
    assert rows.count("steps", "source = 'user'") == blocks.count(("user", "text"))
    turns = sum(line.get("role") == "assistant" for line in lines)
    assert rows.count("steps", "source = 'agent'") == turns
    assert silent("cursor", path) == []


@pytest.mark.parametrize("path", real("formats_new/cursor/*.vscdb"))
def test_real_rows(path, tmp_path):
    base = sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)
    stored = [{"key": key, "value": value} for key, value in
              base.execute("select key, value from cursorDiskKV order by rowid")]  # fmt: skip
    head = next(row for row in stored if row["key"].startswith("composerData:"))
    pieces = [row for row in stored if row["key"].startswith("bubbleId:")]
    record = tmp_path / "record.json"
    record.write_text(json.dumps({"cursorDiskKV": head, "bubbleId": pieces}))
    rows = Rows([record], tmp_path / "store")
    bubbles = [json.loads(row["value"]) for row in pieces if row["value"]]
    assert rows.count("steps", "kind <> 'event'") == len(bubbles)
    tools = [bubble for bubble in bubbles if "toolFormerData" in bubble]
    assert rows.count("observations", "call is not null") == len(tools)
    assert rows.total("tokens_in") == sum(
        bubble.get("tokenCount", {}).get("inputTokens", 0) for bubble in bubbles
    )
