"""Tasksets of verifiers as environments, with the package itself: ``make rl-tests`` installs it."""

from __future__ import annotations

import asyncio
import json

import pytest

from adp.rollouts.collecting.actor import Alone
from adp.rollouts.collecting.episode import run_episode
from adp.rollouts.collecting.recorder import About
from adp.rollouts.environment import ENVIRONMENTS
from adp.rollouts.policies.scripted import Scripted
from adp.rollouts.spec import load
from adp.rollouts.turns import Call, Turn
from adp_schema.errors import UsageError
from adp_schema.model import Task
from tests.rollouts.environments.sums_taskset import TASKSET

NAME = "adp_test_sums"


def add(a: int, b: int) -> Turn:
    return Turn(calls=(Call("sums_add", json.dumps({"a": a, "b": b})),))


def test_the_import_has_to_be_allowed() -> None:
    kind, settings = load(ENVIRONMENTS, "verifiers:env=os")
    with pytest.raises(UsageError, match="allow_import=true if you trust it"):
        kind.make(settings)
    with pytest.raises(UsageError, match="allow_import=true"):
        kind.tasks(settings, "train", None, 0)


@pytest.fixture
def environment(tmp_path, monkeypatch):
    """The kind and the settings of the taskset."""
    pytest.importorskip("verifiers.v1", reason="make rl-tests installs verifiers")
    (tmp_path / f"{NAME}.py").write_text(TASKSET, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    return load(ENVIRONMENTS, f"verifiers:env={NAME},allow_import=true,solved_at=2")


def played(environment, task: Task, *turns: Turn):
    kind, settings = environment
    about = About(dataset="sums", task=task, timed=False)
    return asyncio.run(run_episode(about, kind.make(settings), Alone(Scripted(list(turns)))))


def test_its_tasks_are_tasks(environment) -> None:
    kind, settings = environment
    tasks = kind.tasks(settings, "train", None, 0)
    assert [task.task_id for task in tasks] == ["17+25", "3+4"]
    assert [task.instruction for task in tasks] == ["17 + 25?", "3 + 4?"]
    assert json.loads(tasks[0].extra)["verifiers"]["a"] == 17
    assert [task.task_id for task in kind.tasks(settings, "train", 1, 0)] == ["17+25"]


def test_its_tools_are_called_and_its_rewards_judge(environment) -> None:
    kind, settings = environment
    tasks = kind.tasks(settings, "train", None, 0)
    run = played(environment, tasks[0], add(17, 25), Turn(text="42"))
    assert [step.text for step in run.steps[:2]] == ["You add.", "17 + 25?"]
    (tool,) = json.loads(run.tools)
    assert tool["function"]["name"] == "sums_add"
    assert tool["function"]["description"] == "Adds two numbers."
    assert sorted(tool["function"]["parameters"]["properties"]) == ["a", "b"]
    (result,) = (seen for step in run.steps for seen in step.observations)
    assert result.text == "42"
    # weight 2 for the right answer, and a half for one of two turns
    assert (run.reward, run.success) == (2.5, True)
    assert json.loads(run.rewards) == {"right": 1.0, "turns": 0.5, "calls": 1.0}
    wrong = played(environment, tasks[1], Turn(text="8"))
    assert (wrong.reward, wrong.success) == (1.0, False)


def test_a_stop_ends_the_episode_and_errors_are_told(environment) -> None:
    kind, settings = environment
    task = kind.tasks(settings, "train", None, 0)[0]
    turns = [add(-1, 2), Turn(calls=(Call("sums_add", '{"a": "x"}'),)), add(1, 2), add(3, 3)]
    run = played(environment, task, *turns, add(4, 4), Turn(text="42"))
    results = [seen for step in run.steps for seen in step.observations]
    assert [seen.error_type for seen in results] == ["execution", "invalid_args", None, None]
    assert "no negative numbers" in results[0].text
    assert run.stop_reason == "too_many"
    assert run.terminated


def test_what_is_not_its_own_is_refused(environment) -> None:
    kind, settings = environment
    run = played(environment, Task(task_id="other", instruction="?"), Turn(text="1"))
    assert run.error_type == "environment"
    assert "none of this taskset" in run.error_message
    missing = settings.model_copy(update={"env": "adp_no_such_taskset"})
    with pytest.raises(UsageError, match="cannot load the taskset 'adp_no_such_taskset'"):
        kind.make(missing)
