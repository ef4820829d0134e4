"""What a reward of a rollout is: numbers for the finished episodes of one step of a training.

    scores = reward(rollouts, stage)        # one number an episode; None: not applicable

A reward sees all episodes of a step together, so it may compare those of one task with each other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from adp.core.registry import Registry
from adp.rollouts.environment import Settings
from adp_schema.model import Trajectory


@dataclass(frozen=True, slots=True)
class FinishedRollout:
    """One episode, as a reward sees it.

    Attributes:
        group: the same for all episodes of one task in this step.
        trajectory: the episode, judged by its environment: ``success``, ``reward``, ``rewards``.
        response_tokens: tokens from where the model first writes to the last one that it wrote,
            results of tools included.
        written_tokens: those of them that the model wrote.
    """

    group: str
    trajectory: Trajectory
    response_tokens: int = 0
    written_tokens: int = 0


@dataclass(frozen=True, slots=True)
class RewardStage:
    """Where a training is.

    Attributes:
        step: steps of the optimiser that are done.
        steps: steps of the whole training.
        training: whether these episodes are trained on; else they only measure.
    """

    step: int = 0
    steps: int = 1
    training: bool = True


class RolloutReward(Protocol):
    """Rewards the episodes of one step.

    Attributes:
        name: what to call it in metrics.
    """

    name: str

    def __call__(
        self, rollouts: Sequence[FinishedRollout], stage: RewardStage
    ) -> Sequence[float | None]:
        """One number an episode, in their order; None where it does not apply."""
        ...


@dataclass(frozen=True)
class RolloutRewardKind:
    """A reward that can be named in a configuration: ``NAME[:key=value,...]``.

    Attributes:
        name: its name.
        about: what it rewards, one sentence, with the source of its definition.
        settings: its settings, a class with defaults.
        make: makes one.
    """

    name: str
    about: str
    settings: type[Settings]
    make: Callable[[Any], RolloutReward]


ROLLOUT_REWARDS: Registry[RolloutRewardKind] = Registry(
    "rollout reward",
    "adp.rollout_rewards",
    {
        "environment": "adp.trainers.rollouts.environment_reward:KIND",
        "et_agent": "adp.trainers.rollouts.et_agent:KIND",
    },
)
"""The rewards by name, each imported when it is asked for."""
