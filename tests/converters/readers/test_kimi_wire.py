"""Recordings of Kimi CLI by themselves, against a plain walk over the raw lines."""

from __future__ import annotations

import json
from pathlib import Path

from tests.converters.readers.samples_store import convert
from tests.fuzz.readers import EXAMPLES

FILE = EXAMPLES / "kimi_wire" / "5c3e" / "wire.jsonl"


def events(path: Path) -> list[dict]:
    """The messages of a recording, those of subagents in their place."""
    lines = map(json.loads, path.read_text("utf-8").splitlines())
    messages = [line["message"] for line in lines if "message" in line]
    return [it["payload"]["event"] if it["type"] == "SubagentEvent" else it for it in messages]


def test_calls_results_and_tokens(tmp_path):
    sql = convert(FILE.parents[1], tmp_path / "store")
    walk = events(FILE)
    kinds = [event["type"] for event in walk]
    assert sql("select count(*) n from tool_calls") == [{"n": kinds.count("ToolCall")}]
    assert sql("select count(*) n from observations where call is not null") == [
        {"n": kinds.count("ToolResult")}
    ]
    turns = "select count(*) n from steps where source = 'agent'"
    assert sql(turns) == [{"n": kinds.count("StepBegin")}]
    used = [event["payload"]["token_usage"] for event in walk if event["type"] == "StatusUpdate"]
    (row,) = sql("select sum(tokens_in) i, sum(tokens_out) o, sum(tokens_cached) c from steps")
    assert row == {
        "i": sum(it["input_other"] + it["input_cache_read"] + it["input_cache_creation"]
                 for it in used),
        "o": sum(it["output"] for it in used),
        "c": sum(it["input_cache_read"] for it in used),
    }  # fmt: skip


def test_the_message_stands_for_an_empty_output(tmp_path):
    sql = convert(FILE.parents[1], tmp_path / "store")
    rows = sql("select text, is_error from observations order by text")
    assert [tuple(row.values()) for row in rows] == [
        ("No such file.", True),
        ("There are two sacks.", False),
        ("sack1\nsack2", False),
    ]


def test_a_subagent_is_a_branch_at_its_call(tmp_path):
    sql = convert(FILE.parents[1], tmp_path / "store")
    (run,) = sql("select source_id, branch_kind from all_trajectories where parent_id is not null")
    assert run == {"source_id": "5c3e/a7", "branch_kind": "subagent"}
    (link,) = sql("select kind, target_id, call from links")
    assert link == {"kind": "subagent", "target_id": "5c3e/a7", "call": 1}


def test_beside_the_messages_it_belongs_to_them(tmp_path):
    folder = tmp_path / "5c3e"
    folder.mkdir()
    (folder / "wire.jsonl").write_bytes(FILE.read_bytes())
    lines = [{"role": "_system_prompt", "content": "Mill."}, {"role": "user", "content": "Hi"}]
    (folder / "context.jsonl").write_text("".join(json.dumps(it) + "\n" for it in lines))
    sql = convert(folder, tmp_path / "store")
    assert sql("select source_format f from trajectories") == [{"f": "kimi_cli"}]
