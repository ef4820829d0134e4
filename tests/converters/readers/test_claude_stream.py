"""The stream-json of Claude Code: what the example means."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from adp.converters.registry import formats
from adp_schema import jsontext
from adp_schema.protocols import Match
from tests.converters.readers.real_files import Rows
from tests.converters.readers.stores import EXAMPLES as ALL_EXAMPLES
from tests.fuzz.leaves import read_lines

EXAMPLE = Path(__file__).parent / "examples" / "claude_stream_json" / "run.jsonl"
LINES = [json.loads(line) for line in EXAMPLE.read_text().splitlines()]
SESSION = "57e00000-0000-4000-8000-000000000001"


@pytest.fixture(scope="module")
def rows():
    return read_lines("claude_stream_json", json.dumps(LINES).encode()).rows


def test_what_the_run_was_and_how_it_ended(rows):
    run = next(it for it in rows["trajectories"] if it["parent_id"] is None)
    assert (run["source_id"], run["session_id"]) == (SESSION, SESSION)
    assert (run["agent_model"], run["agent_version"]) == ("claude-opus-9", "2.1.280")
    assert (run["stop_reason"], run["terminated"]) == ("success", True)
    assert run["final_answer"] == "High tide is at 06:12."
    totals = ("total_cost_usd", "total_tokens_in", "total_tokens_out", "total_tokens_cached")
    assert [run[name] for name in totals] == [0.0625, 208, 42, 200]
    assert run["error_type"] is None


def test_blocks_of_a_response_are_one_turn(rows):
    turns = [it for it in rows["steps"] if it["kind"] == "llm_turn"]
    assert [(it["response_id"], it["tokens_out"]) for it in turns] == [
        ("msg_s1", 22),
        ("msg_s3", 9),
        ("msg_s2", 11),
    ]


def test_a_subagent_is_a_branch_with_a_link_from_its_call(rows):
    branch = next(it for it in rows["trajectories"] if it["parent_id"] is not None)
    assert (branch["branch_kind"], branch["source_id"]) == ("subagent", f"{SESSION}/ts1")
    (link,) = rows["links"]
    call = next(it for it in rows["tool_calls"] if it["call_id"] == "ts1")
    assert (link["kind"], link["target_id"]) == ("subagent", branch["source_id"])
    assert (link["step"], link["call"]) == (call["step"], call["call"])
    assert {it["call_id"] for it in rows["observations"]} == {"ts1", "ts2"}


def test_limits_and_errors():
    end = {**LINES[-1], "subtype": "error_max_turns", "is_error": True, "errors": ["Too many"]}
    end.pop("result")
    run = read_lines("claude_stream_json", json.dumps([*LINES[:-1], end]).encode())
    (main,) = [it for it in run.rows["trajectories"] if it["parent_id"] is None]
    assert (main["terminated"], main["truncated"]) == (False, True)
    assert (main["error_type"], main["error_message"]) == ("error_max_turns", "Too many")


def test_each_format_knows_its_records():
    stream, disk, flow = map(formats.get, ("claude_stream_json", "claude_code", "claude_workflow"))
    for line in LINES:
        record = jsontext.decode_object(json.dumps(line).encode())
        assert stream.sniff(record) is not Match.NO
        assert disk.sniff(record) is flow.sniff(record) is Match.NO
    both = {
        **LINES[3],
        "sessionId": "s",
        "isSidechain": False,
    }  # newer sessions on disk have both spellings
    record = jsontext.decode_object(json.dumps(both).encode())
    assert (disk.sniff(record), stream.sniff(record)) == (Match.STAMP, Match.NO)


def test_qwen_code_prints_a_record_for_each_block(tmp_path):
    """Blocks until one has tokens are a turn; its prompt tokens count cached ones, too."""
    path = ALL_EXAMPLES / "claude_stream_json" / "qwen_code.jsonl"
    rows = Rows([path], tmp_path / "store")
    (run,) = rows.all("select * from trajectories")
    assert (run["agent_name"], run["agent_version"]) == ("qwen-code", "0.24.4")
    assert (run["total_tokens_in"], run["total_tokens_cached"]) == (231, 140)
    turns = rows.all("select reasoning r, tokens_in i from steps where kind = 'llm_turn'"
                     " order by step")  # fmt: skip
    assert [(it["r"], it["i"]) for it in turns] == [("First the list.", 101), ("Done.", 130)]
