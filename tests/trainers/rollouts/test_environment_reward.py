"""The reward ``environment``."""

from __future__ import annotations

from adp.trainers.rollouts.reward import ROLLOUT_REWARDS, FinishedRollout, RewardStage
from adp_schema.model import Trajectory


def test_the_verdict_is_the_reward():
    kind = ROLLOUT_REWARDS.get("environment")
    rollouts = [
        FinishedRollout("a", Trajectory(trajectory_id=str(number), **columns))
        for number, columns in enumerate(
            [{"reward": 0.25, "success": True}, {"success": True}, {"success": False}, {}]
        )
    ]
    assert kind.make(kind.settings())(rollouts, RewardStage()) == [0.25, 1.0, 0.0, None]
