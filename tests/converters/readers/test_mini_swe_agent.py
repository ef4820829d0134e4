"""mini-swe-agent: structured calls, commands in the text, whole responses, and early lists."""

from __future__ import annotations

import itertools
import json
import re

import pytest

from tests.converters.readers.real_files import Rows, real
from tests.converters.readers.samples_store import example


def test_a_run_with_calls():
    rows = example("mini_swe_agent", "calls.traj.json")
    (run,) = rows["trajectories"]
    assert (run["task_id"], run["agent_version"]) == ("sums__sums-12", "2.4.0")
    assert (run["stop_reason"], run["terminated"], run["truncated"]) == ("Submitted", True, False)
    assert (run["final_answer"], run["total_cost_usd"]) == ("diff --git a/x b/x\n", 0.0125)
    steps = rows["steps"]
    assert [step["source"] for step in steps] == [
        "system", "user", "agent", "user", "agent", "environment",
    ]  # fmt: skip
    turn = steps[2]
    assert (turn["tokens_in"], turn["tokens_cached"], turn["cost_usd"]) == (210, 128, 0.0075)
    assert (turn["model"], turn["stop_reason"]) == ("model-9-exact", "tool_calls")
    assert steps[5]["visibility"] == "none"
    assert "refused" in turn["extra"]
    assert "Two looks" not in turn["extra"]


def test_outputs_are_whole_and_the_model_saw_a_template():
    rows = example("mini_swe_agent", "calls.traj.json")
    calls, (first, second) = rows["tool_calls"], rows["observations"]
    assert [call.get("arguments_raw") is None for call in calls] == [True, True, False]
    assert (first["text"], first["exit_code"], first["call_id"]) == ("sum.py\n", 0, "call_m1")
    assert first["visible_text"].startswith("<returncode>0</returncode>")
    assert (second["is_error"], second["error_type"]) == (True, "TimeoutExpired")


def test_commands_in_the_text():
    rows = example("mini_swe_agent", "text.traj.json")
    (run,) = rows["trajectories"]
    assert (run["truncated"], run["agent_model"]) == (True, "example/model-8")
    assert run["error_message"].startswith("Traceback")
    assert [call["arguments_raw"] for call in rows["tool_calls"]] == ["ls -la", "cat sum.py"]
    call, step = rows["tool_calls"][0], rows["steps"][2]
    assert step["text"][call["span_start"] : call["span_end"]] == "```bash\nls -la\n```"
    assert step["prose"] == "THOUGHT: I look.\n\n\nThat is all."
    assert [it["call_step"] for it in rows["observations"]] == [2, 5]


def test_responses_stand_in_the_place_of_messages():
    rows = example("mini_swe_agent", "responses.traj.json")
    turn = rows["steps"][2]
    assert (turn["reasoning"], turn["tokens_reasoning"], turn["cost_usd"]) == ("I count.", 4, 0.25)
    (output,) = rows["observations"]
    assert (output["call_id"], output["text"]) == ("call_r7", "3")


@pytest.mark.parametrize("path", real("formats*/mini_swe_agent/*.json"))
def test_real_files(path, tmp_path):
    document = json.loads(path.read_text(encoding="utf-8"))
    messages = document["messages"] if isinstance(document, dict) else document
    rows = Rows([path], tmp_path / "store")
    turns = [it for it in messages if it["role"] == "assistant"]
    calls = sum(len(it.get("tool_calls") or []) for it in turns)
    text_calls = [it for it in turns if not it.get("tool_calls")]
    calls += sum(len(re.findall("```mswea_bash_command", it["content"])) for it in text_calls)
    assert rows.count("tool_calls") == calls > 0
    assert rows.count("steps", "source = 'agent'") == len(turns)
    results = sum(it["role"] == "tool" for it in messages)
    answers = sum(
        after["role"] == "user" and not before.get("tool_calls")
        for before, after in itertools.pairwise(messages)
        if before["role"] == "assistant"
    )
    assert rows.count("observations", "call is not null") == results + answers
    texts = {it["text"] for it in rows.all("select text from steps")}
    shown = {it["t"] for it in rows.all("select coalesce(visible_text, text) t from observations")}
    assert {it["content"] for it in messages} <= texts | shown
