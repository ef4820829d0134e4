"""Which trajectories an expert took part in, and how much of them is the expert's.

What comes out of such a run is not what the policy can do by itself, so figures about it are
marked. The mode is what a rollout, or a converted run of M3, keeps in
``extra.run_metadata.expert_assistance``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from adp.core.json_values import json_or_none
from adp.rollouts.experts.history import EXPERT
from adp_schema.model import Trajectory

ALONE = "none"
"""The mode in which the agent always acts."""


@dataclass(frozen=True)
class Assisted:
    """How much an expert did.

    Attributes:
        mode: the mode of assistance; ``expert`` where it is not recorded.
        trajectories: trajectories of this mode.
        steps: steps of the agent and of the expert.
        expert_steps: of these, the expert's.
    """

    mode: str
    trajectories: int
    steps: int
    expert_steps: int

    def __add__(self, other: Assisted) -> Assisted:
        return Assisted(
            self.mode,
            self.trajectories + other.trajectories,
            self.steps + other.steps,
            self.expert_steps + other.expert_steps,
        )

    @property
    def words(self) -> str:
        """``informed, 38 % of the steps``."""
        if not self.steps:
            return self.mode
        return f"{self.mode}, {100 * self.expert_steps / self.steps:.0f} % of the steps"


def assisted(trajectory: Trajectory) -> Assisted | None:
    """How much an expert did in a trajectory; None when the policy was alone."""
    steps = [
        step for step in trajectory.steps if step.source == "agent" and not step.is_copied_context
    ]
    experts = sum(step.actor == EXPERT for step in steps)
    mode = _mode(trajectory.extra)
    if (mode is None or mode == ALONE) and not experts:
        return None
    return Assisted(mode if mode and mode != ALONE else EXPERT, 1, len(steps), experts)


def _mode(extra: str | None) -> str | None:
    value = json_or_none(extra)
    for key in ("run_metadata", "expert_assistance", "mode"):
        value = value.get(key) if isinstance(value, Mapping) else None
    return value if isinstance(value, str) else None
