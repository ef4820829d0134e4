"""Tools that a task names: calls are noted, and an episode is judged by the kind of its task."""

from __future__ import annotations

import asyncio
import json

import pytest

from adp.rollouts.collecting.actor import Alone
from adp.rollouts.collecting.episode import run_episode
from adp.rollouts.collecting.recorder import About
from adp.rollouts.environments.candidate_tools import CandidateTools
from adp.rollouts.policies.scripted import Scripted
from adp.rollouts.turns import Call, Turn
from adp_schema.errors import UsageError
from adp_schema.model import Task

TOOLS = ["a_001", {"function": {"name": "b_002", "description": "B.", "parameters": {}}},
         {"tool_id": "c_003"}]  # fmt: skip


def play(kind, truth, *called, answers=None):
    extra = json.dumps({"task_type": kind, "ground_truth": truth, "candidate_tools": TOOLS})
    task = Task(task_id="t", instruction="Do it", extra=extra, answers=answers)
    turns = [Turn(calls=(Call(name, '{"x": 1}'),)) for name in called]
    actor = Alone(Scripted([*turns, Turn(text="done")]))
    return asyncio.run(run_episode(About("d", task=task), CandidateTools(), actor))


@pytest.mark.parametrize(
    ("kind", "truth", "called", "success"),
    [
        ("tool_selection", {"top_k": ["b_002"]}, ["a_001", "b_002"], True),
        ("tool_selection", {"top_k": ["b_002"]}, [], False),
        ("task_planning", {"tool_sequence": ["a_001", "c_003"]}, ["a_001", "c_003"], True),
        ("task_planning", {"tool_sequence": ["a_001", "c_003"]}, ["c_003", "a_001"], False),
        ("timing_judgment", {"should_call_tool": False}, [], True),
        ("timing_judgment", {"should_call_tool": False}, ["a_001"], False),
        ("timing_judgment", {}, ["a_001"], None),
        ("other", {}, [], None),
    ],
)
def test_the_kind_of_a_task_says_what_a_success_is(kind, truth, called, success):
    trajectory = play(kind, truth, *called)
    assert trajectory.success is success
    assert trajectory.reward == (None if success is None else float(success))
    results = [row.text for step in trajectory.steps for row in step.observations]
    assert results == [f"Called {name}." for name in called]


def test_other_tasks_are_judged_by_their_answers():
    assert play("qa", {}, answers='["done"]').success is True
    assert play("qa", {}, answers='["else"]').success is False


def test_a_tool_that_is_not_on_offer_is_an_error():
    trajectory = play("tool_selection", {"top_k": ["z"]}, "z")
    assert trajectory.steps[1].observations[0].error_type == "unknown_tool"
    names = [tool["function"]["name"] for tool in json.loads(trajectory.tools)]
    assert names == ["a_001", "b_002", "c_003"]


@pytest.mark.parametrize("extra", [None, "{}", "[", '{"candidate_tools": [7]}',
                                   '{"candidate_tools": ["a", "a"]}'])  # fmt: skip
def test_a_task_without_tools_is_refused(extra):
    with pytest.raises(UsageError, match="tool"):
        CandidateTools().reset(Task(instruction="x", extra=extra))
