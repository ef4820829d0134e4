"""SWE-agent: a run that a file tells twice, its refused answers, attempts and rows."""

from __future__ import annotations

import json

import pytest

from tests.converters.readers.samples_store import convert, example, numbers, real


def test_history_and_trajectory_become_one_run():
    rows = example("swe_agent", "calc__calc-7.traj")
    main, attempt = rows["trajectories"]
    assert (main["task_id"], main["agent_model"]) == ("calc__calc-7", "example/model-1")
    assert (main["stop_reason"], main["terminated"], main["attempt"]) == ("submitted", True, 1)
    assert (main["total_tokens_in"], main["total_cost_usd"]) == (5400, 0.031)
    assert (attempt["branch_kind"], attempt["attempt"], attempt["truncated"]) == (
        "attempt",
        0,
        True,
    )
    steps = [step for step in rows["steps"] if step["trajectory_id"] == main["trajectory_id"]]
    assert [step["source"] for step in steps] == [
        "system", "user", "user", "agent", "agent", "agent", "agent",
    ]  # fmt: skip
    assert [step.get("is_copied_context") for step in steps[:3]] == [None, True, None]
    assert steps[3]["reasoning"] == "The file is small."
    assert rows["tasks"][0]["instruction"] == "Fix the sum in calc.py."


def test_calls_are_exact_and_outputs_are_whole():
    rows = example("swe_agent", "calc__calc-7.traj")
    calls = [call for call in rows["tool_calls"] if call["kind"] == "function"]
    assert [call["name"] for call in calls] == ["open", "edit", "submit"]
    assert calls[0]["arguments"] == '{"path": "calc.py"}'
    assert json.loads(calls[0]["extra"])["action"] == "open calc.py"
    assert [call["duration_ms"] for call in calls] == [250.0, 1500.0, 2000.0]
    first = rows["observations"][0]
    assert first["text"].startswith("1:def")
    assert first["visible_text"].startswith("OBSERVATION")
    assert first["call_id"] == "call_a1"
    assert json.loads(first["structured"])["working_dir"] == "/w"


def test_the_input_of_a_turn_refers_to_the_history():
    steps = example("swe_agent", "calc__calc-7.traj")["steps"]
    assert json.loads(steps[3]["extra"])["query"] == [[0, 3]]
    query = json.loads(steps[6]["extra"])["query"]
    assert query[0] == [0, 4]
    assert query[2] == [5, 7]
    assert query[1]["content"] == "Old environment output: (2 lines omitted)"


def test_commands_in_the_text():
    rows = example("swe_agent", "old.traj")
    (call,) = rows["tool_calls"]
    step = rows["steps"][2]
    assert step["text"][call["span_start"] : call["span_end"]] == call["arguments_raw"] == "ls"
    assert (step["prose"], rows["trajectories"][0]["truncated"]) == ("List.", True)
    assert rows["observations"][0]["visible_text"] == "calc.py\n(Current directory: /w)"


def test_rows_of_a_data_set():
    rows = example("swe_agent_rows", "rows.jsonl", 0)
    assert rows["trajectories"][0]["success"] is True
    assert [step["source"] for step in rows["steps"]] == [
        "system",
        "user",
        "user",
        "agent",
        "agent",
    ]
    assert rows["steps"][1]["loss_weight"] == 0.0
    assert rows["tool_calls"][0]["arguments_raw"] == "open calc.py\n"
    assert rows["observations"][0]["call"] == 0


@pytest.mark.parametrize("number", range(10))
def test_real_files(number, tmp_path):
    paths = real("formats*/swe_agent/*.traj", "eval/swe_agent/*.traj")
    if number >= len(paths):
        pytest.skip("there are fewer files")
    document = json.loads(paths[number].read_text(encoding="utf-8"))
    sql = convert(paths[number], tmp_path / "store", "swe_agent")
    turns = [it for it in document["history"] if it["role"] == "assistant"]
    calls = sum(len(it.get("tool_calls") or [it["action"]]) for it in turns)
    entries = document.get("trajectory") or []
    calls = max(
        calls, sum(bool(entry["action"]) for entry in entries)
    )  # the last may be there only
    assert numbers(sql) == (calls, calls, calls)
    steps = sql("select count(*) n from steps where source != 'agent'")[0]["n"]
    others = [it for it in document["history"] if it["role"] in ("system", "user")]
    outputs = 0 if any(it["role"] == "tool" for it in document["history"]) else len(turns)
    last = document["history"][-1]["role"] == "assistant"
    assert steps == len(others) - (outputs - last if outputs else 0)
    texts = {row["text"] for row in sql("select text from observations")}
    assert {entry["observation"] for entry in entries} <= texts | {""}
