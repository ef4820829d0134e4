"""What a run of the operators is told."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field

from adp.rollouts.collecting.limits import Limits
from adp.rollouts.environment import Settings

Rule = Literal["environment", "answer", "math", "qa", "et_agent"]
"""Who says whether a trajectory is right; see `adp.rollouts.evolving.correctness`."""


class EvolveSettings(Settings):
    """Settings of a run. Those of the upper half decide what is made, and never change."""

    dataset: str | None = Field(default=None, min_length=1)
    """Data set of the trajectories; the store's name."""
    environment: str | None = None
    """Name of the environment."""
    policy: str | None = None
    """Name of the policy."""
    seed: int = 0
    """Seed of the run."""
    operators: tuple[str, ...] = ()
    """Names of the operators; none: the six of adp."""
    correct: Rule = "environment"
    """Who says whether a trajectory is right."""
    limits: Limits = Field(default_factory=Limits)
    """Budgets of an episode."""
    additional_calls: int = Field(default=4, ge=0)
    """Calls, and turns for them, that a trajectory may take beyond these when it goes on."""
    tries: int = Field(default=4, ge=1)
    """How often an answer is asked for until it can be used."""
    tagged: bool = False
    """Read calls and answers in what the policy writes in ET-Agent's tags."""
    first_is_used: bool = False
    """Select as ET-Agent's code does, see `adp.rollouts.evolving.selection`."""
    timed: bool = True
    """Keep times, which differ from run to run."""
    facts: Mapping[str, Any] = Field(default_factory=dict)
    """What else must not change: JSON, without secrets."""

    rounds: int = Field(default=3, ge=1)
    """Rounds for each task."""
    concurrency: int = Field(default=16, ge=1)
    """Tasks that are worked on at once."""
    max_failures: int = Field(default=20, ge=1)
    """Trajectories in a row that broke for one reason stop the run."""
    retry_failed: bool = False
    """Make again what could not be made."""
    seal: bool | None = None
    """End the store; None: when all is done and nothing broke."""
