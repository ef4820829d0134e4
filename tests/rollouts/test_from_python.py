"""Collecting and scoring from Python."""

from __future__ import annotations

import json

import pytest

import adp
from adp.rollouts.policies.scripted import Scripted
from adp.rollouts.tool_environment import ToolEnvironment
from adp.rollouts.turns import Call, Turn
from adp_schema.errors import UsageError


class Counter:
    """Counts trees."""

    def reset(self, instruction: str) -> str:
        """Begin."""
        return instruction

    def count_trees(self, garden: str) -> int:
        """Count the trees of a garden.

        Args:
            garden: name of the garden.
        """
        return len(garden)


TASKS = [
    {"task_id": "a", "question": "How many trees are at the mill?", "answer": "4"},
    {"task_id": "b", "question": "And by the river?", "answer": "9"},
]


def act(request):
    if request.turn == 0:
        return Turn(calls=(Call("count_trees", json.dumps({"garden": "mill"})),))
    return Turn(text=request.messages[-1]["content"])


def test_an_object_a_function_and_tasks_make_a_store_with_scores(tmp_path):
    report = adp.collect(Counter, act, TASKS, tmp_path / "runs", n=2, timed=False)
    assert (report.asked, report.done_now, report.failed) == (4, 4, 0)
    store = adp.open(tmp_path / "runs")
    solved = store.query("SELECT task_id, avg(success::INT) AS s FROM trajectories GROUP BY 1")
    assert sorted(map(tuple, (row.values() for row in solved.to_pylist()))) == [("a", 1), ("b", 0)]
    again = adp.collect(Counter, act, TASKS, tmp_path / "runs", n=2, timed=False)
    assert (again.done_before, again.done_now) == (4, 0)
    score = adp.score(store, "outcome,answer")
    figures = {figure.name: figure.value for figure in score.scorers[0].figures}
    assert figures["success"] == 0.5
    assert adp.query(
        store, "SELECT count(DISTINCT trajectory_id) AS n FROM scores"
    ).to_pylist() == [{"n": 4}]


def test_names_work_too(tmp_path):
    report = adp.collect("toolworld", "expert", "test:3", tmp_path / "runs")
    assert report.whole.plain()["success"]["succeeded"] == 3


def test_an_environment_of_ones_own(tmp_path):
    class Silent(ToolEnvironment):
        def offered(self):
            return []

    report = adp.collect(Silent, Scripted([Turn(text="4")]), TASKS, tmp_path / "runs")
    assert report.done_now == 2


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"env": 3}, "an environment is a name"),
        ({"policy": 3}, "a policy is a name"),
        ({"tasks": [7]}, "task 0"),
        ({"tasks": [{"task_id": "x"}]}, "it has no instruction"),
        ({"max_turns": 3}, "unknown setting 'max_turns'"),
        ({"n": 0}, "n must be a whole number, 1 or more, not 0"),
    ],
)
def test_what_is_wrong_is_said(tmp_path, given, message):
    whole = {"env": Counter, "policy": act, "tasks": TASKS, **given}
    with pytest.raises(UsageError, match=message):
        adp.collect(out=tmp_path / "runs", **whole)
    assert not (tmp_path / "runs").exists()
