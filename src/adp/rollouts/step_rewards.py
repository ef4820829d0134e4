"""Rewards for each step of an episode, by the rules of SAGE's `TrajectoryCollector`.

    adp collect --env toolworld --policy expert --step-rewards sage:error=-0.5 -o world

A call whose result reads like an error costs 1. Any other brings 1 when its tool is one that the
task expects, and half as much more when it has the arguments that the task expects of that tool. A
turn that asks for several calls has the sum; a turn without a call is a step of its own, with 0.
The reward of the run is the sum of its steps.

The run is a success when it used all tools that the task expects, or when its reward is at least
half of its number of steps; where the task expects nothing, when no result reads like an error.
SAGE has a reward of 5 for success in its configuration that nothing ever pays; ``success=5`` pays
it with the turn that ends an episode, where the run is a success by then.

Source: intellistream/SAGE, ``sage.libs.finetune.agent.trajectory``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from pydantic import Field, ValidationError

from adp.rendering.arguments import object_of
from adp.rollouts.benchmark_tasks import extra_of, target_tools, truth_of
from adp.rollouts.environment import AsyncEnvironment, Settings, Start, Verdict
from adp.rollouts.spec import read_spec, wrong_setting
from adp.rollouts.task_references import expected_calls
from adp.rollouts.trajectory_reading import same
from adp.rollouts.turns import Call, Outcome, Result, Tool, Turn
from adp_schema.errors import UsageError
from adp_schema.model import Task, Trajectory

NAME = "sage"


class StepRewardSettings(Settings):
    """How steps are rewarded."""

    correct_tool: float = Field(default=1.0, allow_inf_nan=False)
    """For a call of an expected tool."""
    correct_args: float = Field(default=0.5, allow_inf_nan=False)
    """For the arguments that are expected of it, besides."""
    error: float = Field(default=-1.0, allow_inf_nan=False)
    """For a call whose result reads like an error."""
    success: float = Field(default=0.0, allow_inf_nan=False)
    """For the turn that ends an episode which is a success by then."""
    success_by: Literal["steps", "environment"] = "steps"
    """Who says whether the run is a success: these rules, or the environment."""


def read_step_rewards(text: str) -> StepRewardSettings:
    """Read how steps are rewarded: ``sage``, or ``sage:key=value,...``.

    Raises:
        UsageError: the name or a setting is unknown, or a value is wrong.
    """
    name, given = read_spec(text)
    if name != NAME:
        raise UsageError(f"--step-rewards: there is no '{name}'; write {NAME} or {NAME}:key=value")
    try:
        return StepRewardSettings.model_validate(given)
    except ValidationError as error:
        raise UsageError(f"--step-rewards: {wrong_setting(error, StepRewardSettings)}") from error


@dataclass
class StepTally:
    """The rewards of an episode so far.

    Attributes:
        task: what is expected.
        settings: the rewards.
        total: sum of the rewards.
        steps: calls, and turns without one.
        used: tools that were called.
        failed: whether a result read like an error.
    """

    task: Task | None
    settings: StepRewardSettings
    total: float = 0.0
    steps: int = 0
    used: set[str] = field(default_factory=set)
    failed: bool = False

    def take(self, turn: Turn, outcome: Outcome) -> float:
        """Count a turn, and return its reward."""
        reward = 0.0
        for call in turn.calls:
            results = [result for result in outcome.results if result.call_id == call.call_id]
            reward += self._failure(results) or self._right(call)
        if not turn.calls:
            reward += self._failure(outcome.results)
        self.steps += max(1, len(turn.calls))
        self.used.update(call.name for call in turn.calls)
        self.total += reward
        if outcome.terminated and self.is_success():
            self.total += self.settings.success
            reward += self.settings.success
        return reward

    def is_success(self) -> bool:
        """Whether the run is a success so far, by SAGE's rule."""
        wanted = target_tools(self.task)
        if not wanted:
            return not self.failed
        return self.used.issuperset(wanted) or self.total >= 0.5 * self.steps

    def _failure(self, results: Sequence[Result]) -> float:
        """The reward of results that read like an error; 0 for others."""
        if not any(result.error or "error" in result.text.lower() for result in results):
            return 0.0
        self.failed = True
        return self.settings.error

    def _right(self, call: Call) -> float:
        reward = self.settings.correct_tool if call.name in target_tools(self.task) else 0.0
        return reward + (self.settings.correct_args if _has_arguments(call, self.task) else 0.0)


def _has_arguments(call: Call, task: Task | None) -> bool:
    """Whether a call has all arguments that are expected of its tool, if there are any."""
    arguments, is_object = object_of(call.arguments)
    if not is_object:
        return False
    listed = truth_of(task).get("expected_args", extra_of(task).get("expected_args"))
    if isinstance(listed, Mapping):
        wanted = listed.get(call.name)
        given = wanted if isinstance(wanted, Mapping) else {}
        return bool(given) and all(
            name in arguments and same(arguments[name], value) for name, value in given.items()
        )
    return any(
        known and all(expected.accepts(name, arguments) for name in known)
        for expected in expected_calls(task) or ()
        if expected.name == call.name and (known := expected.argument_names())
    )


class StepRewarded:
    """An environment whose steps are rewarded by these rules, and else the same.

    What the environment itself says is kept among the rewards of the run, as
    ``environment_reward`` and ``environment_success``.

    Args:
        inner: the environment.
        settings: the rewards.
    """

    def __init__(self, inner: AsyncEnvironment, settings: StepRewardSettings) -> None:
        self.inner, self._settings = inner, settings
        self._tally = StepTally(None, settings)

    def tools(self) -> Sequence[Tool]:
        """The tools on offer now."""
        return self.inner.tools()

    async def reset(self, task: Task | None = None, *, seed: int | None = None) -> Start:
        """Begin an episode."""
        self._tally = StepTally(task, self._settings)
        return await self.inner.reset(task, seed=seed)

    async def step(self, turn: Turn) -> Outcome:
        """Carry out a turn, and reward it."""
        outcome = await self.inner.step(turn)
        return replace(outcome, reward=self._tally.take(turn, outcome))

    async def score(self, trajectory: Trajectory) -> Verdict:
        """The sum of the rewards, and whether the run is a success."""
        verdict = await self.inner.score(trajectory)
        rewards = dict(verdict.rewards)
        if verdict.reward is not None:
            rewards["environment_reward"] = verdict.reward
        if verdict.success is not None:
            rewards["environment_success"] = float(verdict.success)
        by_steps = self._settings.success_by == "steps"
        success = self._tally.is_success() if by_steps else verdict.success
        return replace(verdict, success=success, reward=self._tally.total, rewards=rewards)

    def fork(self) -> StepRewarded:
        """An independent copy in the same state."""
        copy = StepRewarded(self.inner.fork(), self._settings)
        copy._tally = replace(self._tally, used=set(self._tally.used))
        return copy

    async def close(self) -> None:
        """Free what the environment holds."""
        await self.inner.close()
