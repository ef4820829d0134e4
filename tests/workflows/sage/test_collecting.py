"""Collecting with an agent in Python: what it did, what came back, and its rewards."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from adp.workflows.sage.collecting import CollectorConfig, TrajectoryCollector, collect_and_convert
from adp_schema.errors import InputError, UsageError

TASKS: list[dict[str, Any]] = [
    {
        "task_id": "a",
        "instruction": "Find A.",
        "available_tools": ["search", "open"],
        "ground_truth": {
            "expected_tools": ["search"],
            "expected_args": {"search": {"q": "Find A."}},
        },
    },
    {"instruction": "Find B."},
]


class Agent:
    """Searches, opens what it found, and ends."""

    def __init__(self) -> None:
        self.seen: list[dict[str, Any]] = []

    def act(self, context: dict[str, Any]) -> dict[str, Any]:
        self.seen.append(context)
        done = [step["action"] for step in context["history"]]
        if not done:
            return {
                "thought": "I look.",
                "action": "search",
                "action_input": {"q": context["instruction"]},
            }
        if done == ["search"]:
            return {"action": "open", "action_input": {"page": 1}}
        return {"thought": "I know.", "action": "finish", "action_input": {"answer": "x"}}


class Pages:
    def execute(self, action: str, given: dict[str, Any]) -> Any:
        if action == "open":
            raise ValueError("it is closed")
        return {"found": given["q"]}


def test_what_the_agent_did_and_what_came_back() -> None:
    agent = Agent()
    first, second = TrajectoryCollector(
        agent, CollectorConfig(require_success=False), Pages()
    ).collect(TASKS)
    assert [step.action for step in first.steps] == ["search", "open", "finish"]
    assert [step.thought for step in first.steps] == ["I look.", "", "I know."]
    assert first.steps[0].observation == '{"found": "Find A."}'
    assert first.steps[1].observation == "Error executing open: it is closed"
    assert first.steps[2].action_input == {"answer": "x"}
    # +1 the expected tool, +.5 its arguments; -1 an error; an end costs nothing.
    assert [step.reward for step in first.steps] == [1.5, -1.0, 0.0]
    assert (first.success, first.total_reward, first.ground_truth) == (
        True, 0.5, TASKS[0]["ground_truth"],
    )  # fmt: skip
    # Nothing is expected of the second task, and a result reads like an error.
    assert (second.task_id, second.success, second.total_reward) == ("task_1", False, -1.0)
    assert agent.seen[2]["history"][1]["observation"] == "Error executing open: it is closed"
    assert agent.seen[0]["available_tools"] == ["search", "open"]


def test_only_successes_and_no_intermediate_observations() -> None:
    config = CollectorConfig(save_intermediate=False)
    [run] = TrajectoryCollector(Agent(), config, Pages()).collect(TASKS)
    assert run.task_id == "a"
    assert [step.observation for step in run.steps] == ["", "", ""]
    assert TrajectoryCollector(Agent(), config, Pages()).collect([]) == []


def test_a_single_task_that_fails_comes_back_too() -> None:
    run = TrajectoryCollector(Agent(), CollectorConfig(), Pages()).collect_single(TASKS[1])
    assert not run.success


def test_an_agent_that_breaks_leaves_one_step() -> None:
    def broken(context: dict[str, Any]) -> dict[str, Any]:
        raise RuntimeError("no model")

    run = TrajectoryCollector(broken).collect_single(TASKS[0])
    [step] = run.steps
    assert (step.action, step.reward, run.success) == ("error", -1.0, False)
    assert "no model" in step.observation


def test_a_run_ends_after_most_steps() -> None:
    def restless(context: dict[str, Any]) -> dict[str, Any]:
        return {"action": "search", "action_input": {"q": len(context["history"])}}

    run = TrajectoryCollector(restless, CollectorConfig(max_steps=4)).collect_single(TASKS[0])
    assert [step.action_input["q"] for step in run.steps] == [0, 1, 2, 3]


def test_collect_and_convert_in_one_call(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    rows = collect_and_convert(Agent(), TASKS, Pages(), min_reward=0.5, save_path=str(file))
    assert [row["metadata"]["task_id"] for row in rows] == ["a"]
    assert [json.loads(line) for line in file.read_text().splitlines()] == rows
    assert collect_and_convert(Agent(), TASKS, Pages(), min_reward=0.6) == []
    with pytest.raises(InputError, match="cannot be written"):
        collect_and_convert(Agent(), TASKS, Pages(), save_path=str(tmp_path))


def test_what_is_no_agent() -> None:
    with pytest.raises(UsageError, match="the agent is a int; give it run_step or act"):
        TrajectoryCollector(3)
    with pytest.raises(UsageError, match="instruction"):
        TrajectoryCollector(Agent()).collect([{"task_id": "x"}])
