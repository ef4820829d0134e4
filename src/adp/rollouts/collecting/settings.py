"""What a run of many episodes is told."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from adp.rollouts.collecting.branching.settings import BranchingSettings
from adp.rollouts.collecting.limits import Limits, first_reached, limits_in
from adp.rollouts.environment import Settings


class Totals(Settings):
    """Budgets of a whole run. At the first that is used up no further episode begins.

    Tokens and cost count all that the store holds; seconds count from the beginning of the call.
    """

    tokens: int | None = Field(default=None, ge=1)
    """Tokens, those of prompts included."""
    cost: float | None = Field(default=None, gt=0)
    """Cost in US dollars."""
    seconds: float | None = Field(default=None, gt=0)
    """Wall time, in seconds."""

    def reached(self, tokens: int, cost: float, seconds: float) -> str | None:
        """The name of the budget that is used up; None when there is some of each left."""
        return first_reached(
            {
                "total_tokens": (tokens, self.tokens),
                "total_cost": (cost, self.cost),
                "total_seconds": (seconds, self.seconds),
            }
        )


class CollectSettings(Settings):
    """Settings of a run. Those of the upper half decide what an episode is, and never change."""

    dataset: str | None = Field(default=None, min_length=1)
    """Data set of the trajectories; the store's name."""
    environment: str | None = None
    """Name of the environment."""
    policy: str | None = None
    """Name of the policy."""
    seed: int = 0
    """Seed of the run."""
    limits: Limits = Field(default_factory=Limits)
    """Budgets of an episode."""
    timed: bool = True
    """Keep times, which differ from run to run."""
    branching: BranchingSettings | None = None
    """How the attempts at one task branch; null: each of them begins at the beginning."""
    facts: Mapping[str, Any] = Field(default_factory=dict)
    """What else must not change: JSON, without secrets."""
    since: tuple[str, ...] = ()
    """Finished stores of the same run; what they hold is left out."""

    n: int = Field(default=1, ge=1)
    """Attempts at each task."""
    concurrency: int = Field(default=64, ge=1)
    """Episodes that run at once."""
    totals: Totals = Field(default_factory=Totals)
    """Budgets of the run."""
    max_failures: int = Field(default=20, ge=1)
    """Episodes in a row that broke for one reason stop the run."""
    retry_failed: bool = False
    """Try broken episodes again."""
    seal: bool | None = None
    """End the store; None: when all is done and nothing broke."""

    def within(self, environment: Any) -> CollectSettings:
        """The settings with the limits that an environment has of its own; see `limits_in`."""
        return self.model_copy(update={"limits": limits_in(environment, self.limits)})
