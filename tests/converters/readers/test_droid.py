"""Droid: kept sessions, and printed ones."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import adp
from tests.converters.readers.real_files import Rows, real, silent

EXAMPLES = Path(__file__).parent / "examples/droid"


def test_a_kept_session(tmp_path):
    rows = Rows([EXAMPLES / "session.jsonl"], tmp_path / "store")
    steps = rows.all("select source, kind, visibility, reasoning, text from steps order by step")
    kinds = ["message", "message", "llm_turn", "event", "context_edit", "llm_turn", "event"]
    assert [step["kind"] for step in steps] == kinds
    assert steps[0]["visibility"] == "llm"
    assert (steps[2]["reasoning"], steps[2]["text"]) == ("Find paint.", "Looking.")
    results = rows.all('select call, is_error from observations order by step, "order"')
    assert results == [{"call": 1, "is_error": False}, {"call": 0, "is_error": True}]
    assert rows.value("select edit_summary from steps where kind = 'context_edit'").startswith(
        "The"
    )


def test_a_printed_session(tmp_path):
    rows = Rows([EXAMPLES / "printed.jsonl"], tmp_path / "store")
    turns = rows.all("select text from steps where kind = 'llm_turn' order by step")
    assert [turn["text"] for turn in turns] == [None, "I ask again.", "Tuesday."]
    results = rows.all("select text, exit_code, is_error, call from observations order by step")
    assert results[0] == {
        "text": "Tuesday\nslow clock",
        "exit_code": 1,
        "is_error": True,
        "call": 0,
    }
    assert results[1]["is_error"] is False
    (run,) = rows.all("select final_answer, total_tokens_in, agent_model from trajectories")
    assert run == {"final_answer": "Tuesday.", "total_tokens_in": 150, "agent_model": "model-d"}


@pytest.mark.parametrize("path", real("formats/droid/*.jsonl", "formats_new/droid/*store*.jsonl"))
def test_real_sessions(path, tmp_path):
    rows = Rows([path], tmp_path / "store")
    lines = [json.loads(line) for line in path.read_text().splitlines() if line]
    messages = [line["message"] for line in lines if line["type"] == "message"]
    blocks = [(message["role"], block["type"]) for message in messages
              for block in message["content"]]  # fmt: skip
    results = blocks.count(("user", "tool_result"))
    assert rows.count("tool_calls") == blocks.count(("assistant", "tool_use"))
    assert rows.count("observations") == results
    named = {block["id"] for message in messages for block in message["content"]
             if block["type"] == "tool_use"}  # fmt: skip
    paired = sum(block["tool_use_id"] in named for message in messages
                 for block in message["content"] if block["type"] == "tool_result")  # fmt: skip
    assert rows.count("observations", "call is not null") == paired
    asked = sum(message["role"] == "user" and any(block["type"] != "tool_result"
                for block in message["content"]) for message in messages)  # fmt: skip
    assert rows.count("steps", "source = 'user'") == asked
    turns = sum(message["role"] == "assistant" for message in messages)
    assert rows.count("steps", "source = 'agent'") == turns
    thoughts = sum(any(block["type"] == "thinking" for block in message["content"])
                   for message in messages)  # fmt: skip
    assert rows.count("steps", "reasoning is not null") == thoughts
    assert silent("droid", path) == []


@pytest.mark.parametrize("path", real("formats*/droid/*stream*.jsonl"))
def test_real_printed_sessions(path, tmp_path):
    rows = Rows([path], tmp_path / "store")
    kinds = [json.loads(line)["type"] for line in path.read_text().splitlines() if line]
    assert rows.count("tool_calls") == kinds.count("tool_call")
    assert rows.count("observations", "call is not null") == kinds.count("tool_result")
    assert silent("droid", path) == []


@pytest.mark.parametrize("name", ["droid", "pi"])
def test_a_session_without_its_header_is_recognised(name, tmp_path):
    """Such as one that another program cut; an unknown line in it makes no branch."""
    path = EXAMPLES.parent / name / "session.jsonl"
    lines = path.read_text("utf-8").splitlines()
    lines.insert(3, '{"type": "of_the_future", "value": 1}')
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "data.jsonl").write_text("\n".join(lines[1:]), "utf-8")
    whole = adp.convert([str(path)], str(tmp_path / "whole"))
    cut = adp.convert([str(tmp_path / "logs")], str(tmp_path / "cut"))
    assert set(
        cut.query("select source_format from trajectories")["source_format"].to_pylist()
    ) == {name}
    for table in ("tool_calls", "observations", "all_trajectories"):
        sql = f"select count(*) as n from {table}"
        assert cut.query(sql).to_pylist() == whole.query(sql).to_pylist()
