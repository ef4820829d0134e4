"""Grok CLI: reasoning and hosted calls belong to their message; the summary lies beside."""

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

LOG = EXAMPLES / "grok_cli/chat_history.jsonl"
REAL = samples.ROOT / "formats_new/grok_cli"
LOGS = sorted(REAL.rglob("*chat_history.jsonl"))
needs_samples = pytest.mark.skipif(not LOGS, reason="the sample files are not here")


def rows(path: Path) -> dict[str, list[dict]]:
    return read_lines("grok_cli", lines_as_array(path.read_bytes())).rows


def test_what_stands_before_a_message_of_the_model_is_part_of_its_turn():
    read = rows(LOG)
    first, second = [row for row in read["steps"] if row["source"] == "agent"]
    assert first["reasoning"] == "I look at the list of hives first."
    assert (first["model"], first["reasoning_effort"]) == ("grok-bee", "high")
    names = [(row["name"], row["step"], row["arguments_kind"]) for row in read["tool_calls"]]
    assert names == [("web_search", 3, "object"), ("read_file", 3, "json_string"),
                     ("run_terminal_cmd", 3, "invalid")]  # fmt: skip
    assert [(row["call_id"], row["call"]) for row in read["observations"]] == [
        ("call-2", 2), ("call-1", 1)]  # fmt: skip
    assert second["text"] == "There are four hives and a half."


def test_messages_that_the_program_wrote_are_marked():
    users = [row for row in rows(LOG)["steps"] if row["source"] == "user"]
    assert [row.get("synthetic") for row in users] == [True, None, None, None]


def test_a_summary_says_which_session_it_is(tmp_path):
    folder = tmp_path / "in" / "s-1"
    folder.mkdir(parents=True)
    shutil.copy(LOG, folder / "chat_history.jsonl")
    summary = {"info": {"id": "grok-7", "cwd": "/srv"}, "parent_session_id": "grok-6",
               "created_at": "2026-08-01T00:00:00Z", "agent_name": "grok-build",
               "session_kind": "subagent", "generated_title": "Bees"}  # fmt: skip
    (folder / "summary.json").write_text(json.dumps(summary))
    (folder / "signals.json").write_text('{"turnCount": 2}')
    store = adp.convert([str(tmp_path / "in")], str(tmp_path / "store"))
    [row] = store.query("select * from trajectories").to_pylist()
    assert (row["source_id"], row["agent_name"]) == ("grok-7", "grok-build")
    assert json.loads(row["extra"])["signals"] == {"turnCount": 2}
    [link] = store.query("select kind, target_id from links").to_pylist()
    assert link == {"kind": "subagent", "target_id": "grok-6"}


@needs_samples
@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.parent.name)
def test_real_sessions(path):
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]
    read = rows(path)
    kinds = [line["type"] for line in lines]
    calls = sum(len(line.get("tool_calls", [])) for line in lines)
    assert len(read["tool_calls"]) == calls + kinds.count("backend_tool_call")
    assert len(read["observations"]) == kinds.count("tool_result")
    assert all(row.get("call_step") is not None for row in read["observations"])
    for source in ("user", "system"):
        assert sum(row["source"] == source for row in read["steps"]) == kinds.count(source)
