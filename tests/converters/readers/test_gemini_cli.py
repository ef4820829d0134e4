"""Gemini CLI: the last version of a message holds, and what was taken back is a branch."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import adp
from adp.converters.framing import lines_as_array
from tests import samples
from tests.converters.readers.real_files import Rows
from tests.converters.readers.test_readers import EXAMPLES
from tests.fuzz.leaves import read_lines

FOLDER = EXAMPLES / "gemini_cli"
REAL = samples.ROOT
LOG = REAL / "formats/gemini_cli/vct_gemini.jsonl"
needs_samples = pytest.mark.skipif(not LOG.is_file(), reason="the sample files are not here")


def rows(path: Path) -> dict[str, list[dict]]:
    data = path.read_bytes()
    if path.suffix == ".jsonl":
        data = lines_as_array(data)
    return read_lines("gemini_cli", data).rows


def texts(read: dict, trajectory: dict) -> list[str]:
    return [row["text"] for row in read["steps"] if row.get("text")
            and row["trajectory_id"] == trajectory["trajectory_id"]]  # fmt: skip


def test_a_document():
    read = rows(FOLDER / "document.json")
    agent = next(row for row in read["steps"] if row["source"] == "agent")
    assert agent["reasoning"].startswith("**Bread**\nDucks like bread")
    assert (agent["tokens_in"], agent["tokens_cached"]) == (900, 300)
    assert (agent["tokens_out"], agent["tokens_reasoning"]) == (65, 25)
    calls = [(row["name"], row["status"]) for row in read["tool_calls"]]
    assert calls == [("run_shell_command", "success"), ("read_file", "success"),
                     ("write_file", "error"), ("pond_helper", "cancelled")]  # fmt: skip
    results = [(row["call"], row.get("is_error"), row.get("text")) for row in read["observations"]]
    assert results == [(0, False, "two loaves of bread"),
                       (1, False, "Binary content provided (1 item)."),
                       (2, True, "permission denied for note.txt")]  # fmt: skip
    assert len(read["media"]) == 1
    [link] = read["links"]
    assert (link["kind"], link["target_id"], link["call"]) == ("subagent", "agent-pond-7", 3)
    assert read["trajectories"][0]["error_message"] == "The quota of the day is used up"


def test_the_last_version_of_a_message_holds_and_the_others_stay_with_it():
    read = rows(FOLDER / "session.jsonl")
    agent = [row for row in read["steps"] if row["source"] == "agent"]
    assert [row["native_id"] for row in agent] == ["g1", "g2", "g4", "g3"]
    assert sum(row.get("tokens_out") or 0 for row in agent) == 10
    assert [row["status"] for row in read["tool_calls"]] == ["success"]
    assert [row["text"] for row in read["observations"]] == ["three metres and a half"]
    assert "executing" in agent[0]["extra"]


def test_what_was_taken_back_is_a_branch_and_a_new_history_an_edit():
    read = rows(FOLDER / "session.jsonl")
    main, branch = read["trajectories"]
    assert texts(read, branch)[0] == "Then drain the pond completely"
    assert (branch["branch_kind"], branch["parent_id"]) == ("rewind", main["trajectory_id"])
    [edit] = [row for row in read["steps"] if row["kind"] == "context_edit"]
    assert json.loads(edit["extra"])["messages"] == ["s1", "g4"]
    assert texts(read, main)[-2:] == [
        "Summary: the pond is deep and cold.", "Thank you for all of that"]  # fmt: skip


def test_patches_change_a_message_and_its_calls():
    read = rows(FOLDER / "patches.jsonl")
    calls = [(row["call_id"], row["status"]) for row in read["tool_calls"]]
    assert calls == [("l-1", "success"), ("l-2", "success"), ("l-3", "cancelled")]
    results = {row["call_id"]: row["text"] for row in read["observations"]}
    assert results == {"l-1": "a rowing boat", "l-2": "two sailing boats"}
    first, second = (row for row in read["steps"] if row["source"] == "agent")
    assert (first["tokens_in"], first["tokens_out"]) == (400, 20)
    assert "executing" in first["extra"]
    assert second["text"] == "Three boats are on it."
    assert "later" in second["extra"]
    [main] = read["trajectories"]
    kept = [patch["$patch"] for patch in json.loads(main["extra"])["$$set"]]
    assert [patch["id"] for patch in kept] == ["g1", "g9"]


def test_an_unknown_id_takes_back_everything():
    read = rows(FOLDER / "chats/pond-0002/session-b.jsonl")
    main, branch = read["trajectories"]
    assert texts(read, main) == ["Count all of the geese"]
    assert branch.get("parent_step") == 0
    assert texts(read, branch) == ["Count all of the ducks", "I count eleven of the ducks."]


@needs_samples
def test_a_real_log_has_what_its_last_versions_have():
    last = {}
    for line in LOG.read_text("utf-8").splitlines():
        message = json.loads(line)
        if "id" in message:
            last[message["id"]] = message
    models = [it for it in last.values() if it["type"] == "gemini"]
    calls = [call for it in models for call in it.get("toolCalls", [])]
    read = rows(LOG)
    assert [row["call_id"] for row in read["tool_calls"]] == [call["id"] for call in calls]
    assert [row["call_id"] for row in read["observations"]] == [
        call["id"] for call in calls if call.get("result")
    ]
    agent = [row for row in read["steps"] if row["source"] == "agent"]
    assert len(agent) == len(models)
    for column, keys in (("tokens_in", ["input"]), ("tokens_out", ["output", "thoughts"])):
        used = sum(it["tokens"][key] for it in models for key in keys)
        assert sum(row[column] for row in agent) == used
    users = [it for it in last.values() if it["type"] == "user"]
    assert len([row for row in read["steps"] if row["source"] == "user"]) == len(users)


@needs_samples
@pytest.mark.parametrize("path", sorted(REAL.glob("formats*/gemini_cli/*.json")), ids=str)
def test_real_documents(path):
    messages = json.loads(path.read_bytes())["messages"]
    read = rows(path)
    assert [row["native_id"] for row in read["steps"]] == [it["id"] for it in messages]
    calls = [call for it in messages for call in it.get("toolCalls", [])]
    assert len(read["tool_calls"]) == len(calls)


@pytest.mark.parametrize(
    ("file", "calls", "results"),
    [("checkpoint-old", 1, 1), ("checkpoint-new", 2, 2), ("before-write", 1, 0)],
)
def test_checkpoints(file, calls, results, tmp_path):
    store = Rows([EXAMPLES / f"gemini_checkpoint/{file}.json"], tmp_path / "store")
    assert store.count("calls") == calls
    assert store.count("observations", "call is not null") == results


def test_a_document_without_the_id_of_its_session_is_recognised(tmp_path):
    document = json.loads((FOLDER / "document.json").read_text("utf-8"))
    document["sessionId"] = None
    path = tmp_path / "session.json"
    path.write_text(json.dumps(document), "utf-8")
    store = adp.convert([str(path)], str(tmp_path / "store"))
    formats = store.query("select distinct source_format from trajectories").to_pylist()
    assert formats == [{"source_format": "gemini_cli"}]
