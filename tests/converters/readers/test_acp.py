"""ACP: chunks are one text, updates of a call hold, results are paired."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from adp.converters.framing import lines_as_array
from tests.converters.readers.test_readers import EXAMPLES
from tests.fuzz.leaves import read_lines

REAL = Path("/work/shared/data/formats/grok_cli/vct_grok_updates.jsonl")
needs_samples = pytest.mark.skipif(not REAL.is_file(), reason="the sample files are not here")


def rows(path: Path) -> dict[str, list[dict]]:
    return read_lines("acp", lines_as_array(path.read_bytes())).rows


def test_chunks_are_one_text():
    read = rows(EXAMPLES / "acp/updates.jsonl")
    first, second = [row for row in read["steps"] if row["source"] == "agent"]
    assert first["reasoning"] == "The vine has grown a long way over the wall by now."
    assert first["text"] == "I will now begin to prune the vine right away."
    assert second["text"] == "The shears have to be repaired."
    assert second["stop_reason"] == "end_turn"
    users = [row["text"] for row in read["steps"] if row["source"] == "user"]
    assert users == ["Prune the vine by the wall", "Thank you for the vine"]
    assert read["trajectories"][0]["source_id"] == "sess-vine"
    assert len(read["media"]) == 1


def test_the_last_update_of_a_call_holds():
    read = rows(EXAMPLES / "acp/updates.jsonl")
    cut, edit = read["tool_calls"]
    assert (cut["name"], cut["status"]) == ("run_terminal_command", "failed")
    assert (edit["name"], edit["status"]) == ("Edit notes", "completed")
    assert json.loads(edit["arguments"]) == {"path": "notes.txt"}
    broken, edited = read["observations"]
    assert (broken["text"], broken["exit_code"], broken["is_error"]) == (
        "the shears are broken now", 3, True)  # fmt: skip
    assert "cutting the vine slowly" in broken["extra"]
    assert (edited["call_id"], edited["is_error"]) == ("edit-1", False)


@needs_samples
def test_a_real_log():
    lines = [json.loads(line) for line in REAL.read_text("utf-8").splitlines()]
    updates = [line["params"]["update"] for line in lines]
    calls = [it["toolCallId"] for it in updates if it["sessionUpdate"] == "tool_call"]
    read = rows(REAL)
    assert [row["call_id"] for row in read["tool_calls"]] == calls
    done = {it["toolCallId"]: it for it in updates if it["sessionUpdate"] == "tool_call_update"}
    assert sorted(row["call_id"] for row in read["observations"]) == sorted(done)
    failed = {name for name, it in done.items() if it["status"] == "failed"}
    assert {row["call_id"] for row in read["observations"] if row["is_error"]} == failed
