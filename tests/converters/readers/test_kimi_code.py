"""Kimi Code: steps of the loop, calls whose ids come again, prompts that are said twice."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import adp
from adp.converters.framing import lines_as_array
from tests import samples
from tests.converters.readers.test_readers import EXAMPLES
from tests.fuzz.leaves import read_lines

FOLDER = EXAMPLES / "kimi_code"
REAL = samples.ROOT / "formats_new/kimi_cli"
needs_samples = pytest.mark.skipif(not REAL.is_dir(), reason="the sample files are not here")


def rows(path: Path) -> dict[str, list[dict]]:
    return read_lines("kimi_code", lines_as_array(path.read_bytes())).rows


def test_the_events_of_a_step_are_one_step():
    read = rows(FOLDER / "session_mill/agents/main/wire.jsonl")
    agent = [row for row in read["steps"] if row["source"] == "agent"]
    first = agent[0]
    assert (first["reasoning"], first["text"]) == (
        "The stone has to turn first.", "I start the stone now.")  # fmt: skip
    assert (first["tokens_in"], first["tokens_cached"], first["tokens_out"]) == (135, 30, 20)
    assert (first["stop_reason"], first["response_id"]) == ("tool_use", "chatcmpl-e1")
    assert (first["model"], first["reasoning_effort"]) == ("kimi-mill", "on")
    assert read["steps"][0]["text"] == "You are made up, and grind flour."
    assert read["trajectories"][0]["tools_origin"] == "recorded"


def test_ids_that_come_again_are_paired_step_by_step():
    read = rows(FOLDER / "session_mill/agents/main/wire.jsonl")
    ids = [(row["call_id"], row.get("native_id")) for row in read["tool_calls"]]
    assert ids == [("Bash_0", None), ("Bash_1", None), ("Bash_0#2", "Bash_0"), ("call_9", None)]
    results = [(row["call_id"], row.get("is_error")) for row in read["observations"]]
    assert results == [("Bash_0", None), ("Bash_1", True), ("Bash_0#2", None), ("call_9", None)]


def test_prompts_are_counted_once_and_edits_are_steps():
    read = rows(FOLDER / "session_mill/agents/main/wire.jsonl")
    users = [row for row in read["steps"] if row["source"] == "user"]
    assert [(row["text"], row.get("synthetic")) for row in users] == [
        ("Grind two sacks of rye", None),
        ("<system-reminder>The wind is low today.</system-reminder>", True),
        ("Now sweep the whole floor", None),
        ("Stop all of the sweeping", None),
    ]
    edits = [row for row in read["steps"] if row["kind"] == "context_edit"]
    assert [row["edit_boundary"] for row in edits] == ["replace", "truncate", "truncate"]
    assert edits[0]["edit_summary"] == "Two sacks of rye were ground."
    assert edits[1]["edit_to"] == users[2]["step"]


def test_a_subagent_leads_to_its_session(tmp_path):
    store = adp.convert([str(FOLDER)], str(tmp_path / "store"))
    joined = store.query(
        "select l.kind, t.source_id from links l join trajectories t on l.target_id = t.source_id"
    )
    assert joined.to_pylist() == [{"kind": "subagent", "source_id": "session_mill"}]


def test_the_state_of_a_session_goes_with_its_main_agent(tmp_path):
    shutil.copytree(FOLDER / "session_mill", tmp_path / "in" / "session_mill")
    state = {"title": "Flour", "updatedAt": "2026-09-21T15:00:00Z", "agents": {}}
    (tmp_path / "in/session_mill/state.json").write_text(json.dumps(state))
    store = adp.convert([str(tmp_path / "in")], str(tmp_path / "store"))
    main, sub = store.query("select * from trajectories order by length(source_id)").to_pylist()
    assert json.loads(main["extra"])["state"]["title"] == "Flour"
    assert "state" not in json.loads(sub["extra"] or "{}")


@needs_samples
@pytest.mark.parametrize("path", sorted(REAL.glob("*.jsonl")), ids=lambda path: path.name)
def test_real_wires(path):
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]
    events = [it["event"] for it in lines if it["type"] == "context.append_loop_event"]
    read = rows(path)
    kinds = [it["type"] for it in events]
    assert len(read["tool_calls"]) == kinds.count("tool.call")
    assert len(read["observations"]) == kinds.count("tool.result")
    assert all(row.get("call_step") is not None for row in read["observations"])
    agent = [row for row in read["steps"] if row["source"] == "agent"]
    assert len(agent) == kinds.count("step.begin")
    used = sum(sum(it["usage"].values()) for it in events if it["type"] == "step.end")
    assert sum((row.get("tokens_in") or 0) + (row.get("tokens_out") or 0) for row in agent) == used
    messages = [it for it in lines if it["type"] == "context.append_message"]
    assert sum(row["source"] == "user" for row in read["steps"]) == len(messages)
