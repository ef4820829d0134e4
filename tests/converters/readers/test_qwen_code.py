"""Qwen Code: the tree and its rewinds, results with their outcome, usage and what is repeated."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from adp.converters.framing import lines_as_array
from tests import samples
from tests.converters.readers.test_readers import EXAMPLES
from tests.fuzz.leaves import read_lines

FOLDER = EXAMPLES / "qwen_code"
REAL = samples.ROOT / "formats_new/qwen_code"
needs_samples = pytest.mark.skipif(not REAL.is_dir(), reason="the sample files are not here")


def rows(path: Path) -> dict[str, list[dict]]:
    return read_lines("qwen_code", lines_as_array(path.read_bytes())).rows


def test_turns_of_the_model():
    read = rows(FOLDER / "session.jsonl")
    agent = [row for row in read["steps"] if row["source"] == "agent"]
    first = agent[0]
    assert first["reasoning"] == "I should count the cows first."
    assert (first["response_id"], first["duration_ms"]) == ("resp-barn-1", 420.0)
    assert (first["tokens_in"], first["tokens_out"], first["tokens_reasoning"]) == (700, 42, 12)
    assert agent[1]["tokens_out"] == 20  # the total has no room for thoughts beside the rest
    assert read["trajectories"][0]["agent_model"] == "qwen-barn-2"


def test_results_with_their_outcome():
    read = rows(FOLDER / "session.jsonl")
    good, bad = read["observations"]
    assert (good["text"], good["is_error"], good["duration_ms"]) == (
        "there are nine of the cows", False, 75.0)  # fmt: skip
    assert (bad["is_error"], bad["error_type"]) == (True, "file_not_found")
    assert [row["call"] for row in (good, bad)] == [0, 1]


def test_a_rewind_leaves_a_branch():
    read = rows(FOLDER / "session.jsonl")
    main, branch = read["trajectories"]
    assert branch["branch_kind"] == "rewind"
    texts = [row.get("text") for row in read["steps"]
             if row["trajectory_id"] == branch["trajectory_id"]]  # fmt: skip
    assert texts == ["Sell all of the cows at once", "I would not sell all of them."]
    assert main["session_id"] == "barn-0001"


def test_a_repeated_history_is_stored_once():
    read = rows(FOLDER / "session.jsonl")
    [edit] = [row for row in read["steps"] if row["kind"] == "context_edit"]
    assert edit["edit_summary"] == "The barn has nine cows; sell one of them."
    history = json.loads(edit["extra"])["compressedHistory"]
    assert history[1] == {"uuid": "c1", "role": "user"}
    [synthetic] = [row for row in read["steps"] if row.get("synthetic")]
    assert synthetic["text"].startswith("A background task")


def test_a_file_of_a_subagent():
    read = rows(FOLDER / "agent-hay-3.jsonl")
    assert read["trajectories"][0]["source_id"] == "agent-hay-3"
    assert {(it["kind"], it["target_id"]) for it in read["links"]} == {
        ("subagent", "barn-0001"), ("fork", "barn-0000")}  # fmt: skip


@needs_samples
@pytest.mark.parametrize("path", sorted(REAL.glob("*.jsonl")), ids=lambda path: path.name[-22:])
def test_real_sessions(path):
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]
    parts = [part for line in lines for part in line.get("message", {}).get("parts", [])]
    read = rows(path)
    calls = [part["functionCall"]["id"] for part in parts if "functionCall" in part]
    assert [row["call_id"] for row in read["tool_calls"]] == calls
    results = [part["functionResponse"]["id"] for part in parts if "functionResponse" in part]
    assert [row["call_id"] for row in read["observations"]] == results
    for source, kind in (("user", "user"), ("agent", "assistant")):
        count = sum(line["type"] == kind for line in lines)
        assert sum(row["source"] == source for row in read["steps"]) == count
    used = sum(line.get("usageMetadata", {}).get("promptTokenCount", 0) for line in lines)
    assert sum(row.get("tokens_in") or 0 for row in read["steps"]) == used
