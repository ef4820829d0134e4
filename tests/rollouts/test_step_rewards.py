"""Rewards of steps by SAGE's rules, against the rules written out."""

from __future__ import annotations

import asyncio
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import adp
from adp.rollouts.collecting.collect_options import CollectOptions, prepare_collect
from adp.rollouts.environment import as_async
from adp.rollouts.environments.toolworld import Toolworld, ToolworldSettings, make_tasks
from adp.rollouts.experts.expert import inner_of
from adp.rollouts.step_rewards import (
    StepRewarded,
    StepRewardSettings,
    StepTally,
    read_step_rewards,
)
from adp.rollouts.turns import Call, ErrorType, Outcome, Result, Turn
from adp_schema.errors import OutputExistsError, UsageError
from adp_schema.model import Task

NAMES = st.sampled_from(["f", "g", "h"])
STEPS = st.lists(
    st.tuples(NAMES, st.integers(0, 1), st.sampled_from(["ok", "An ERROR", "fine"])), max_size=6
)


def task_of(tools, arguments):
    truth = {"expected_tools": tools, "expected_args": arguments}
    return Task(task_id="t", instruction="x", extra=json.dumps({"ground_truth": truth}))


@given(STEPS, st.lists(NAMES, max_size=2), st.dictionaries(NAMES, st.integers(0, 1)))
def test_rewards_and_success_are_those_of_the_collector(steps, tools, values):
    arguments = {name: {"x": value} for name, value in values.items()}
    tally = StepTally(task_of(tools, arguments), StepRewardSettings())
    total = 0.0
    for name, x, text in steps:
        wanted = -1.0 if "error" in text.lower() else 0.0
        if not wanted:
            wanted = 1.0 * (name in tools) + 0.5 * (arguments.get(name) == {"x": x})
        turn = Turn(calls=(Call(name, json.dumps({"x": x, "y": 1}), "c"),))
        assert tally.take(turn, Outcome((Result(text, "c", name),))) == wanted
        total += wanted
    assert tally.take(Turn(text="done"), Outcome(terminated=True)) == 0
    used = {name for name, _, _ in steps}
    success = set(tools) <= used or total >= 0.5 * (len(steps) + 1)
    if not tools:
        success = all("error" not in text.lower() for _, _, text in steps)
    assert (tally.total, tally.is_success()) == (total, success)


def test_several_calls_of_a_turn_count_one_by_one():
    wanted = [{"name": "f", "arguments": {"x": 1}}, {"name": "f", "arguments": {"x": 2}}]
    task = Task(task_id="t", expected_calls=json.dumps(wanted))
    tally = StepTally(task, StepRewardSettings(success=5))
    calls = (Call("f", '{"x": 2}', "1"), Call("f", "{", "2"), Call("g", "{}", "3"))
    failed = Result("no", "2", "f", ErrorType.INVALID_ARGS)
    outcome = Outcome((Result("ok", "1"), failed, Result("ok", "3")))
    assert tally.take(Turn(calls=calls), outcome) == 1.5 - 1.0
    assert (tally.steps, tally.failed) == (3, True)
    assert tally.take(Turn(text="done"), Outcome(terminated=True)) == 5
    assert tally.total == 5.5


def test_settings_are_read():
    assert read_step_rewards("sage") == StepRewardSettings()
    assert read_step_rewards("sage:error=-2,success=5").error == -2
    for wrong in ("dense", "sage:mistake=1", "sage:error=.nan", "sage:error=x"):
        with pytest.raises(UsageError, match="--step-rewards"):
            read_step_rewards(wrong)


def test_a_copy_counts_by_itself():
    world = Toolworld(ToolworldSettings())
    first = StepRewarded(as_async(world), StepRewardSettings())
    assert inner_of(first) is world
    task = make_tasks(ToolworldSettings(), "test", 1, 0)[0]
    asyncio.run(first.reset(task, seed=1))
    second = first.fork()
    wrong = Turn(calls=(Call("no_such_tool", "{}", "1"),))
    assert asyncio.run(second.step(wrong)).reward == -1
    assert asyncio.run(first.score(None)).reward == 0
    assert asyncio.run(second.score(None)).reward == -1


def collected(out, **options):
    given = {"env": "toolworld", "policy": "expert", "tasks": "test:3", "no_times": True}
    prepared = prepare_collect(CollectOptions(**given | options))
    prepared.run(out)
    return adp.open(str(out))


def test_they_stand_in_the_store(tmp_path):
    store = collected(tmp_path / "runs", step_rewards="sage:success_by=environment")
    for trajectory in store.trajectories():
        steps = [step for step in trajectory.steps if step.source == "agent"]
        assert all(step.reward is not None for step in steps)
        assert trajectory.reward == sum(step.reward for step in steps)
        assert trajectory.success is True
        assert json.loads(trajectory.rewards)["environment_success"] == 1
        calls = [call for step in steps for call in step.calls]
        assert trajectory.reward >= len(calls)
    with pytest.raises(OutputExistsError, match="--step-rewards"):
        collected(tmp_path / "runs", step_rewards="sage:error=-3")
    with pytest.raises(OutputExistsError, match="--step-rewards"):
        collected(tmp_path / "runs")
