"""The reward ``environment``: what the environment says about an episode."""

from __future__ import annotations

from collections.abc import Sequence

from adp.rollouts.environment import Settings
from adp.trainers.rollouts.reward import FinishedRollout, RewardStage, RolloutRewardKind
from adp_schema.model import Trajectory


class EnvironmentRewardSettings(Settings):
    """Settings of the reward ``environment``: none."""


class EnvironmentReward:
    """The environment's own reward; without one 1 for success and 0 for failure.

    Args:
        settings: none.
    """

    name = "environment"

    def __init__(self, settings: EnvironmentRewardSettings | None = None) -> None:
        self.settings = settings or EnvironmentRewardSettings()

    def __call__(
        self, rollouts: Sequence[FinishedRollout], stage: RewardStage
    ) -> list[float | None]:
        """The verdicts, as they are; None for an episode that was not judged."""
        return [verdict(rollout.trajectory) for rollout in rollouts]


def verdict(trajectory: Trajectory) -> float | None:
    """What the environment says about an episode; None when it says nothing."""
    if trajectory.reward is not None:
        return float(trajectory.reward)
    return None if trajectory.success is None else float(trajectory.success)


KIND = RolloutRewardKind(
    name="environment",
    about="The environment's own reward; without one 1 for success and 0 for failure.",
    settings=EnvironmentRewardSettings,
    make=EnvironmentReward,
)
