"""Copilot CLI: messages, executions, subagents, and the end."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from tests.converters.readers.real_files import Rows, real, silent

EXAMPLE = Path(__file__).parent / "examples/copilot_cli/events.jsonl"
MAIN = "trajectory_id in (select trajectory_id from trajectories)"


@pytest.fixture
def rows(tmp_path):
    return Rows([EXAMPLE], tmp_path / "store")


def test_turns(rows):
    first, whole, executed = rows.all(
        f"select * from steps where kind = 'llm_turn' and {MAIN} order by step"
    )
    assert (first["reasoning"], first["text"]) == ("I look at both.", "I look.")
    assert (first["tokens_in"], first["tokens_cached"], first["tokens_out"]) == (500, 300, 42)
    assert first["model"] == "model-large"
    assert whole["text"] == "Two hives\n\nand 900 bees."  # two pieces of one message
    assert executed["llm_call_count"] == 0  # a call that no message asked for
    (user,) = rows.all("select * from steps where source = 'user'")
    assert user["text"] == "<now>8:00</now>\nHow many hives?"
    system = rows.all("select is_copied_context from steps where source = 'system'"
                      " and kind = 'message' order by step")  # fmt: skip
    assert [row["is_copied_context"] for row in system] == [None, True]


def test_calls_and_results(rows):
    results = rows.all(
        "select o.name, o.is_error, o.exit_code, o.text, c.duration_ms from observations o join"
        f" tool_calls c on c.step = o.call_step and c.call = o.call where o.{MAIN} and c.{MAIN}"
        " order by o.step, o.order"
    )
    assert [(row["name"], row["is_error"], row["exit_code"]) for row in results] == [
        ("web_search", True, None),
        ("bash", False, 2),
        ("task", False, None),
        ("shell", False, None),
    ]
    assert results[0]["text"] == "no network"
    assert results[1]["duration_ms"] == 3000.0


def test_a_subagent_is_a_branch(rows):
    (branch,) = rows.all("select * from all_trajectories where branch_kind = 'subagent'")
    (link,) = rows.all("select kind, call, target_id from links")
    assert link == {"kind": "subagent", "call": 2, "target_id": branch["source_id"]}
    name = branch["trajectory_id"]
    assert rows.count("steps", f"trajectory_id = '{name}' and kind = 'llm_turn'") == 2
    assert rows.count("observations", f"trajectory_id = '{name}' and call is not null") == 1


def test_the_run(rows):
    (run,) = rows.all("select * from trajectories")
    assert run["final_answer"] == "Two hives, 900 bees."
    assert run["error_type"] == "query"
    assert run["stop_reason"] == "routine"
    assert (run["total_tokens_in"], run["total_tokens_out"]) == (960, 63)
    edits = rows.all("select edit_boundary, edit_summary from steps where kind = 'context_edit'"
                     " order by step")  # fmt: skip
    assert [edit["edit_boundary"] for edit in edits] == ["truncate", "replace"]
    assert edits[1]["edit_summary"] == "Hives were counted."


@pytest.mark.parametrize("path", real("formats*/copilot_cli/*.jsonl"))
def test_real_files(path, tmp_path):
    rows = Rows([path], tmp_path / "store")
    events = [json.loads(line) for line in path.read_text().splitlines()]
    seen = Counter(event["type"] for event in events)
    messages = [event["data"] for event in events if event["type"] == "assistant.message"]
    asked = [call["toolCallId"] for data in messages for call in data["toolRequests"]]
    started = [event["data"]["toolCallId"] for event in events
               if event["type"] == "tool.execution_start"]  # fmt: skip
    assert rows.count("tool_calls") == len(asked) + len(set(started) - set(asked))
    assert rows.count("observations") == seen["tool.execution_complete"]
    assert rows.count("steps", "source = 'user'") == seen["user.message"]
    written = sum(data["outputTokens"] for data in messages)
    assert rows.total("tokens_out") == written
    if len(set(asked)) == len(asked):
        assert rows.count("observations", "call is not null") == len(set(asked) | set(started))
    assert silent("copilot_cli", path) == []


def test_a_document_of_the_first_versions(tmp_path):
    path = Path(__file__).parent / "examples/copilot_cli/document.json"
    store = Rows([path], tmp_path / "store")
    assert store.count("calls") == 1
    assert store.count("observations", "call is not null and text = 'a.txt'") == 1
    assert store.value("select session_id from trajectories") == "copilot-old"


def test_usage_records_and_reasoning_that_is_printed_again(tmp_path):
    """A record stands before or after the message of its call; reasoning after it is no turn."""
    store = Rows([EXAMPLE.parent / "usage_records.jsonl"], tmp_path / "store")
    turns = store.all("select tokens_in i, tokens_cached c, reasoning r from steps"
                      " where kind = 'llm_turn' order by step")  # fmt: skip
    assert [tuple(turn.values()) for turn in turns] == [(100, 40, "A listing."), (130, 100, None)]
    assert store.manifest.unknown == {}
