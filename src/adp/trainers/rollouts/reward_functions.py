"""Rewards of rollouts as functions that TRL calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from adp.rollouts.spec import checked, read_spec
from adp.trainers.config_methods import GrpoSection
from adp.trainers.reward_numbers import reward_numbers
from adp.trainers.rewards import NAMES, check_weights, is_code, user_reward
from adp.trainers.rollouts.reward import (
    ROLLOUT_REWARDS,
    FinishedRollout,
    RewardStage,
    RolloutReward,
)
from adp_schema.errors import UsageError

DEFAULT = ("environment",)
"""Rewards where none are named."""

RewardFunction = Callable[..., list[float | None]]
"""Called by TRL with all rows of a batch; ``rollout`` and ``stage`` are among the columns."""


def rollout_reward(text: str) -> RolloutReward:
    """A reward of the registry, with its settings.

    Args:
        text: ``NAME``, ``NAME:key=value,...``, or ``scorer:NAME``.

    Raises:
        UsageError: there is no such reward, or a setting is wrong.
    """
    name, colon, rest = text.partition(":")
    # scorer:tool_f1 is short for scorer:name=tool_f1.
    first = rest.partition(",")[0]
    spec = f"{name}:name={rest}" if colon and "=" not in first else text
    name, given = read_spec(spec)
    if name in NAMES and name not in ROLLOUT_REWARDS:
        raise UsageError(
            f"the reward {name} is of single answers; in an environment take environment, or a "
            "scorer, such as scorer:answer"
        )
    kind = ROLLOUT_REWARDS.get(name)
    return kind.make(checked(kind, f"reward '{name}'", given))


def make_rollout_rewards(section: GrpoSection, folder: Path) -> list[RewardFunction]:
    """The rewards of a training in an environment.

    Args:
        section: the section ``grpo``.
        folder: where modules of the user's own are looked for first.

    Raises:
        UsageError: there is no such reward, or weights and rewards differ in number.
    """
    assert section.environment is not None
    names = section.rewards or DEFAULT
    check_weights(section.reward_weights, names)
    if len(set(names)) < len(names):
        raise UsageError("grpo.rewards names one reward twice; give each of them once")
    zero = section.environment.truncated == "zero"
    return [_function(name, zero, folder) for name in names]


def _function(name: str, zero: bool, folder: Path) -> RewardFunction:
    if is_code(name):
        function = _of_user(user_reward(name, folder))
    else:
        function = _of_registry(rollout_reward(name))

    def reward(
        rollout: Sequence[FinishedRollout], stage: Sequence[RewardStage], **given: Any
    ) -> list[float | None]:
        # What broke says nothing about the agent, so no reward sees it.
        unbroken = [i for i, item in enumerate(rollout) if item.trajectory.error_type is None]
        scores: list[float | None] = [None] * len(rollout)
        if unbroken:
            columns = {key: _taken(value, unbroken, len(rollout)) for key, value in given.items()}
            seen = [rollout[i] for i in unbroken]
            values = reward_numbers(
                name, lambda: function(seen, stage[0], columns), len(seen), "episodes"
            )
            for place, value in zip(unbroken, values, strict=True):
                scores[place] = value
        if zero:
            return [
                0.0 if score is not None and item.trajectory.truncated else score
                for score, item in zip(scores, rollout, strict=True)
            ]
        return scores

    # TRL shows rewards by the name of their function.
    reward.__name__ = name
    return reward


def _taken(value: Any, places: Sequence[int], count: int) -> Any:
    """The values of some rows; what is not a column stays."""
    if isinstance(value, list) and len(value) == count:
        return [value[place] for place in places]
    return value


def _of_registry(made: RolloutReward) -> Callable[..., Any]:
    def function(
        rollouts: Sequence[FinishedRollout], stage: RewardStage, columns: dict[str, Any]
    ) -> Any:
        return made(rollouts, stage)

    return function


def _of_user(made: Callable[..., Any]) -> Callable[..., Any]:
    """A function of the user's: it gets what TRL's reward functions get, and the episodes."""

    def function(
        rollouts: Sequence[FinishedRollout], stage: RewardStage, columns: dict[str, Any]
    ) -> Any:
        trajectories = [item.trajectory for item in rollouts]
        return made(**columns, rollouts=list(rollouts), trajectories=trajectories, stage=stage)

    return function
