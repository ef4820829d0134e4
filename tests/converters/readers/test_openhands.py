"""OpenHands: events of both generations, and rows of evaluations."""

from __future__ import annotations

import json

import pytest

import adp
from tests.converters.readers.samples_store import convert, example, numbers, real
from tests.fuzz.leaves import read_lines
from tests.fuzz.readers import EXAMPLES


def test_a_response_is_one_step_with_all_its_calls():
    rows = example("openhands_v0", "download.json")
    main = rows["trajectories"][0]
    assert (main["agent_model"], main["agent_version"]) == ("example/model-1", "0.48.0")
    assert (main["terminated"], main["final_answer"]) == (True, "All done.")
    assert json.loads(main["tools"])[0]["function"]["name"] == "execute_bash"
    step = next(step for step in rows["steps"] if step.get("response_id") == "resp-1")
    assert (step["text"], step["reasoning"]) == (
        "I look and edit at once.",
        "Two things can be done together.",
    )
    assert (step["tokens_in"], step["tokens_out"], step["tokens_cached"]) == (1000, 60, 400)
    calls = [call for call in rows["tool_calls"] if call["step"] == step["step"]]
    assert [call["call_id"] for call in calls] == ["call_1", "call_2"]
    assert json.loads(calls[1]["arguments"])["file_text"] == "hello\nworld"
    text = json.dumps(rows["steps"] + rows["tool_calls"] + rows["observations"], default=str)
    assert text.count("Two things can be done together.") == 1


def test_results_answer_by_call_or_by_cause():
    rows = example("openhands_v0", "download.json")
    paired = {it["call_id"]: it for it in rows["observations"] if "call" in it}
    assert list(paired) == ["call_2", "call_1", "9", "12", "16"]
    assert (paired["call_1"]["exit_code"], paired["call_1"]["is_error"]) == (2, True)
    assert (paired["9"]["url"], paired["16"]["exit_code"]) == ("http://localhost:8/", 0)
    assert "media" in paired["9"]["content"]
    user = next(call for call in rows["tool_calls"] if call["call_id"] == "16")
    assert (user["requestor"], user["arguments_raw"]) == ("user", "pwd")


def test_delegates_are_branches_and_condensations_edits():
    rows = example("openhands_v0", "download.json")
    main, branch = rows["trajectories"]
    assert (branch["branch_kind"], branch["final_answer"]) == ("subagent", "It says hello.")
    assert rows["links"][0]["target_id"] == branch["source_id"]
    edit = next(step for step in rows["steps"] if step["kind"] == "context_edit")
    assert (edit["edit_summary"], edit["edit_to"]) == ("A file was made.", edit["step"])
    kept = rows["steps"][edit["edit_from"]]
    assert kept["native_id"] == "9"
    assert main["total_tokens_in"] == 3400


def test_events_of_the_sdk():
    rows = example("openhands_v1", "events.jsonl")
    (main,) = rows["trajectories"]
    assert (main["agent_model"], main["stop_reason"]) == ("example/model-2", "finished")
    assert (main["total_tokens_in"], main["total_cost_usd"]) == (1500, 0.5)
    assert main["error_type"] == "LLMTimeout"
    turns = [step for step in rows["steps"] if step["kind"] == "llm_turn"]
    assert [turn.get("tokens_in") for turn in turns[:3]] == [600, 900, None]
    assert turns[0]["reasoning"] == "Both can be listed together."
    assert turns[2]["reasoning"] == "I stop here."
    assert rows["steps"][0]["text"] == "You are an agent.\n\nToday is Tuesday."
    assert len(rows["media"]) == 2
    paired = [(it["call_id"], it["is_error"]) for it in rows["observations"]]
    assert paired == [
        ("call_a2", True),
        ("call_a1", False),
        ("call_b1", True),
        ("call_d1", True),
        ("acp_1", False),
    ]
    edit = next(step for step in rows["steps"] if step["kind"] == "context_edit")
    assert rows["steps"][edit["edit_from"]]["native_id"].endswith("07")


def test_a_folder_of_events():
    state = {"id": "c-1", "agent": {"llm": {"model": "m"}}, "workspace": {}, "stats": {}}
    message = {"role": "user", "content": [{"type": "text", "text": "Hi"}]}
    event = {"id": "e-1", "kind": "MessageEvent", "source": "user", "llm_message": message}
    sides = {
        "c/events/event-00001-b.json": b"no json",
        "c/events/event-00000-a.json": json.dumps(event).encode(),
    }
    rows = read_lines("openhands_v1", json.dumps(state).encode(), sides).rows
    assert [step["text"] for step in rows["steps"]] == ["Hi", None]
    assert (rows["trajectories"][0]["session_id"], rows["trajectories"][0]["agent_model"]) == (
        "c-1",
        "m",
    )


def _branches(leaf):
    path = EXAMPLES / "openhands_v1" / "branches.jsonl"
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    state = {"id": "c-2", "agent": {"llm": {"model": "m"}}, "workspace": {}}
    state["leaf_event_id"] = next(line["id"] for line in lines if line["id"].endswith(leaf))
    sides = {f"events/event-{99990 + place}-x.json": json.dumps(line).encode()
             for place, line in enumerate(lines)}  # fmt: skip
    return read_lines("openhands_v1", json.dumps(state).encode(), sides).rows, lines


@pytest.mark.parametrize(
    ("leaf", "main"), [("14", "9 bytes."), ("17", "What is to be done?"), ("08", "It is big.bin.")]
)
def test_branches_of_events(leaf, main):
    """The main line leads to the event that the state names; nothing is lost or comes twice."""
    rows, lines = _branches(leaf)
    assert len(rows["trajectories"]) == 3
    assert [step["text"] for step in rows["steps"] if step["seq"] == 0][-1] == main
    assert rows["trajectories"][0]["session_id"] == "c-2"
    calls = [line["tool_call_id"] for line in lines if line["kind"] == "ActionEvent"]
    assert sorted(it["call_id"] for it in rows["tool_calls"]) == calls
    assert sorted(it["call_id"] for it in rows["observations"] if it["call"] == 0) == calls
    texts = [step["text"] for step in rows["steps"] if step["kind"] != "event"]
    written = [line["llm_message"]["content"][0]["text"] for line in lines if "llm_message" in line]
    assert sorted(text for text in texts if text in written) == sorted(written)
    spent = {step["response_id"]: (step["tokens_in"], step["tokens_out"])
             for step in rows["steps"] if step["response_id"]}  # fmt: skip
    assert spent == {"resp-t1": (100, 10), "resp-t2": (200, 20), "resp-t4": (400, 50),
                     "resp-t5": (100, 10)}  # fmt: skip
    (edit,) = [step for step in rows["steps"] if step["kind"] == "context_edit"]
    assert (edit["edit_from"], edit["edit_to"]) == (4, edit["step"])
    kinds = [(it["branch_kind"], it["parent_step"]) for it in rows["trajectories"][1:]]
    assert {kind for kind, _ in kinds} == {"rewind"}
    assert sorted(start for _, start in kinds) == [0, 4]


def test_rows_of_evaluations():
    rows = example("openhands_output", "output.jsonl", 0)
    (main,) = rows["trajectories"]
    assert (main["task_id"], main["success"]) == ("calc__calc-7", True)
    assert main["final_answer"] == "diff --git a"
    assert (main["total_cost_usd"], main["total_tokens_in"]) == (0.75, 3400)
    old = example("openhands_output", "output.jsonl", 1)
    assert [call["arguments_raw"] for call in old["tool_calls"][:2]] == [
        "touch LICENSE",
        "print(1)",
    ]
    assert [it["call"] for it in old["observations"]] == [0, 0]
    assert old["tasks"][0]["task_id"] == "example/calc#7"
    pairs = example("openhands_output", "output.jsonl", 2)
    assert pairs["trajectories"][0]["error_message"].startswith("AgentStuck")
    assert pairs["observations"][0]["call_id"] == "9"
    assert len(example("openhands_output", "output.jsonl", 3)["tool_calls"]) == 2


def _events(path):
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".json":
        return [json.loads(text)]
    lines = [json.loads(line) for line in text.splitlines() if line]
    return [line["history"] for line in lines] if "history" in lines[0] else [lines]


@pytest.mark.parametrize("number", range(6))
def test_real_files(number, tmp_path):
    paths = real("formats*/openhands_v*/*.json*")
    if number >= len(paths):
        pytest.skip("there are fewer files")
    sql = convert(paths[number], tmp_path / "store")
    events = [event for run in _events(paths[number]) for event in run]
    quiet = {"message", "system", "recall", "change_agent_state", "null"}
    calls = [it for it in events if isinstance(it.get("action"), str)]
    calls = [it for it in calls if it["action"] not in quiet]
    calls += [it for it in events if it.get("kind") == "ActionEvent"]
    results = [it for it in events if it.get("observation")]
    answered = [it for it in results if it["observation"] != "recall"]
    known = {it["tool_call_id"] for it in calls if "kind" in it}
    answered = [it for it in answered if "kind" not in it or it["tool_call_id"] in known]
    assert numbers(sql) == (len(calls), len(results), len(answered))
    responses = {
        it["tool_call_metadata"]["model_response"]["id"]: it["tool_call_metadata"]["model_response"]
        for it in events
        if it.get("tool_call_metadata")
    }
    if responses:
        spent = sum(it["usage"]["prompt_tokens"] for it in responses.values())
        assert sql("select sum(tokens_in) n from steps")[0]["n"] == spent


def test_the_state_beside_the_events_has_the_tokens_of_each_response(tmp_path):
    """Events of a folder have none; the state names them by the id of the response."""
    folder = tmp_path / "conversation"
    (folder / "events").mkdir(parents=True)
    usage = {"prompt_tokens": 90, "completion_tokens": 7, "cache_read_tokens": 40,
             "cache_write_tokens": 0, "reasoning_tokens": 3, "response_id": "r-1"}  # fmt: skip
    metrics = {"model_name": "m", "accumulated_cost": 0.5, "token_usages": [usage],
               "accumulated_token_usage": usage, "costs": [{"cost": 0.5}]}  # fmt: skip
    state = {"id": "c-1", "agent": {"llm": {"model": "m"}}, "workspace": {"working_dir": "/w"},
             "stats": {"usage_to_metrics": {"agent": metrics}}}  # fmt: skip
    (folder / "base_state.json").write_text(json.dumps(state))
    stamp = {"timestamp": "2026-03-01T10:00:00", "llm_response_id": "r-1"}
    event = {"id": "e-1", "source": "agent", "kind": "MessageEvent", **stamp,
             "llm_message": {"role": "assistant", "content": "Hi."}}  # fmt: skip
    (folder / "events" / "event-00000-e-1.json").write_text(json.dumps(event))
    adp.convert([str(folder)], str(tmp_path / "store"))
    (step,) = adp.query(str(tmp_path / "store"), "select * from steps").to_pylist()
    assert (step["tokens_in"], step["tokens_out"], step["tokens_reasoning"]) == (90, 7, 3)
    assert step["cost_usd"] == 0.5
    (run,) = adp.query(str(tmp_path / "store"), "select * from trajectories").to_pylist()
    assert (run["total_tokens_in"], run["total_cost_usd"]) == (90, 0.5)
