"""Settings of the modes of assistance."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, model_validator

from adp.rollouts.environment import Settings
from adp.rollouts.experts.history import ErrorRule

Mode = Literal["none", "ground_truth", "random", "informed"]

_FOLLOWING = frozenset({"alternate_depth", "alternate_branches"})
"""Settings of alternates that are followed to the end."""


class AssistSettings(Settings):
    """How an expert helps an agent."""

    mode: Mode = "informed"
    """Who acts when."""
    init_limit: int = Field(default=2, ge=1)
    """Steps before help is thought of."""
    recent_limit: int = 2
    """Steps that are looked back at; M3 writes it with a minus."""
    expert_probability: float | None = Field(default=None, ge=0, le=1)
    """Mode random: how likely a turn is the expert's."""
    m3_epsilon: float | None = Field(default=None, ge=0, le=1)
    """The same in M3's sense: how likely a turn is the agent's."""
    save_alternates: bool = True
    """Mode informed: keep what the other actor would have done."""
    alternates: Literal["step", "end"] = "step"
    """Keep one step of it, or follow it to the end of the episode."""
    alternate_depth: int = Field(default=1, ge=1)
    """With alternates=end: how many turns that were not taken lie between a branch and the run."""
    alternate_branches: int = Field(default=32, ge=1)
    """With alternates=end: branches of an episode, at most."""
    bad_labels: tuple[str, ...] = ()
    """Labels that, besides M3's, say that a step was bad, such as redundant."""
    expert: Literal["auto", "gold", "environment"] = "auto"
    """Where the expert's turns come from."""
    errors: ErrorRule = "typed"
    """A result is an error by its type, or (M3) by its text."""

    @model_validator(mode="after")
    def _fits(self) -> AssistSettings:
        if self.recent_limit == 0:
            raise ValueError("recent_limit must not be 0")
        if self.mode == "random":
            if (self.expert_probability is None) == (self.m3_epsilon is None):
                raise ValueError("the mode random needs one of expert_probability and m3_epsilon")
        elif self.expert_probability is not None or self.m3_epsilon is not None:
            raise ValueError(f"the mode {self.mode} has no expert_probability and no m3_epsilon")
        if self.alternates == "end" and not (self.mode == "informed" and self.save_alternates):
            raise ValueError("alternates=end needs the mode informed and save_alternates")
        limits = _FOLLOWING & self.model_fields_set
        if self.alternates == "step" and limits:
            raise ValueError(f"{min(limits)} needs alternates=end")
        return self

    @property
    def recent(self) -> int:
        """Steps that are looked back at, at least 1."""
        return abs(self.recent_limit)

    def plain(self) -> dict[str, Any]:
        """As JSON; settings of what is not done are left out."""
        unused = set() if self.follows else {"alternates", *_FOLLOWING}
        return self.model_dump(include=set(AssistSettings.model_fields) - unused)

    @property
    def follows(self) -> bool:
        """Whether alternates are followed to the end."""
        return self.alternates == "end"

    @property
    def probability(self) -> float:
        """How likely a turn is the expert's in the mode random."""
        if self.m3_epsilon is not None:
            return 1.0 - self.m3_epsilon
        return self.expert_probability or 0.0
