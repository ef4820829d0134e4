"""verifiers: graphs of messages with tokens, branches and subagents; rows of results."""

from __future__ import annotations

import json

from tests.converters.readers.samples_store import example
from tests.fuzz.leaves import read_lines
from tests.fuzz.readers import EXAMPLES

TRACES = [
    json.loads(line)
    for line in (EXAMPLES / "verifiers" / "traces.jsonl").read_text("utf-8").splitlines()
]


def of(rows, run, table):
    return [it for it in rows[table] if it["trajectory_id"] == run["trajectory_id"]]


def test_the_way_to_the_last_message_is_the_trajectory():
    rows = example("verifiers", "traces.jsonl")
    main, before, helper = rows["trajectories"]
    assert (main["source_id"], main["task_id"], main["source_version"]) == (
        "trace-9f", "sum-41", "1",
    )  # fmt: skip
    assert [step["native_id"] for step in of(rows, main, "steps")] == ["0", "1", "5", "6"]
    assert (before["branch_kind"], before["parent_step"]) == ("continuation", 2)
    assert [step["native_id"] for step in of(rows, before, "steps")] == ["2", "4"]
    assert (helper["branch_kind"], helper["parent_step"]) == ("subagent", 0)
    assert [step["native_id"] for step in of(rows, helper, "steps")] == ["7", "8", "9"]


def test_every_message_stands_once():
    rows = example("verifiers", "traces.jsonl")
    nodes = TRACES[0]["nodes"]
    assert len(rows["steps"]) + len(rows["observations"]) == len(nodes)
    calls = [call for node in nodes for call in node["message"].get("tool_calls") or []]
    assert [it["call_id"] for it in rows["tool_calls"]] == [call["id"] for call in calls]
    assert [it["call_id"] for it in rows["observations"]] == ["call_v1"]
    usages = [call["usage"]["completion_tokens"] for call in TRACES[0]["calls"] if "usage" in call]
    assert sum(step.get("tokens_out", 0) for step in rows["steps"]) == sum(usages)


def test_rewards_are_weighted():
    (main, *_) = example("verifiers", "traces.jsonl")["trajectories"]
    assert json.loads(main["rewards"]) == {"exact": 1.0, "brief": 0.25}
    assert (main["reward"], main["success"]) == (1.0, True)
    assert json.loads(main["extra"])["rewards"]["brief"]["weight"] == 2.0
    assert (main["terminated"], main["truncated"]) == (True, False)


def test_tokens_come_back_whole():
    """What the template put before the written tokens, and these, in the order of the way."""
    rows = example("verifiers", "traces.jsonl")
    main, before, _ = rows["trajectories"]
    (seen,) = of(rows, before, "observations")
    steps = of(rows, main, "steps")[:2] + of(rows, before, "steps")[:1] + [seen]
    steps += of(rows, before, "steps")[1:]
    ids: list[int] = []
    for step in steps:
        ids += json.loads(step.get("extra", "{}")).get("token_ids", [])
        ids += step.get("completion_token_ids", [])
    assert ids == [
        token for place in (0, 1, 2, 3, 4) for token in TRACES[0]["nodes"][place]["token_ids"]
    ]
    turn = of(rows, before, "steps")[0]
    assert (turn["completion_token_ids"], turn["token_mask"]) == ([15, 16, 17], [1, 1, 1])
    assert turn["logprobs"] == [-0.125, -0.5, -1.75]


def test_what_is_not_trained():
    rows = example("verifiers", "traces.jsonl")
    assert [step.get("llm_call_count") for step in of(rows, rows["trajectories"][2], "steps")] == [
        None, 0, None,
    ]  # fmt: skip
    failed = example("verifiers", "traces.jsonl", 1)
    assert [step.get("loss_weight") for step in failed["steps"]] == [None, 0.0, None]
    assert failed["trajectories"][0]["truncated"] is True
    assert failed["trajectories"][0]["error_type"] == "HarnessError"


def test_rows_of_results():
    rows = example("verifiers", "results.jsonl")
    (run,) = rows["trajectories"]
    assert (run["task_id"], run["reward"], run["terminated"]) == ("7", 0.75, True)
    assert json.loads(run["tools"])[0]["name"] == "look_up"
    assert [step["source"] for step in rows["steps"]] == ["system", "user", "agent", "agent"]
    assert rows["observations"][0]["call_id"] == "call_g1"
    assert json.loads(rows["tasks"][0]["answers"]) == "Lima"
    plain = example("verifiers", "results.jsonl", 1)
    assert [(step["source"], step["text"]) for step in plain["steps"]] == [
        ("user", "Translate the word house to German."), ("agent", "Haus, it is said."),
    ]  # fmt: skip


def test_a_prompt_that_changes_each_turn_is_no_other_agent():
    """The tree with the last turn has the whole conversation."""
    nodes = [
        {"parent": None, "message": {"role": "system", "content": "It is noon."}, "sampled": False},
        {"parent": 0, "message": {"role": "user", "content": "Go on."}, "sampled": False},
        {"parent": 1, "message": {"role": "assistant", "content": "First."}, "sampled": True},
        {"parent": None, "message": {"role": "system", "content": "It is one."}, "sampled": False},
        {"parent": 3, "message": {"role": "user", "content": "Go on."}, "sampled": False},
        {"parent": 4, "message": {"role": "assistant", "content": "First."}, "sampled": False},
        {"parent": 5, "message": {"role": "assistant", "content": "Second."}, "sampled": True},
    ]
    trace = {**TRACES[0], "nodes": nodes, "calls": []}
    rows = read_lines("verifiers", json.dumps(trace).encode()).rows
    main, other = rows["trajectories"]
    assert other["branch_kind"] == "alternate"
    assert [step["native_id"] for step in of(rows, main, "steps")] == ["3", "4", "5", "6"]


def test_a_trace_without_messages_is_read():
    trace = {**TRACES[1], "nodes": [], "id": "empty"}
    rows = read_lines("verifiers", json.dumps(trace).encode()).rows
    assert rows["trajectories"][0]["source_id"] == "empty"
