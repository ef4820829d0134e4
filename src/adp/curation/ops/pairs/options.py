"""The options of `pairs`: the rule, and what the rule takes."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from adp.curation.op import OpOptions

Rule = Literal[
    "alternates",
    "attempts",
    "branches",
    "format_corruption",
    "m3_step",
    "m3_trajectory",
    "ranked",
]
Corruption = Literal["tags_removed", "json_broken", "argument_dropped", "tool_renamed"]

TAKES: dict[str, frozenset[str]] = {
    "alternates": frozenset({"prefer", "actors", "labels", "min_gap"}),
    "attempts": frozenset({"min_gap", "extra_rounds", "max_per_task"}),
    "branches": frozenset({"min_gap", "compare", "max_per_task"}),
    "format_corruption": frozenset({"corruptions", "per_trajectory", "max_pairs"}),
    "m3_step": frozenset(),
    "m3_trajectory": frozenset({"chosen", "rejected", "alternates", "mask_suboptimal_traces"}),
    "ranked": frozenset({"min_gap", "score", "max_per_task"}),
}
"""Rule -> the options that it takes."""

GAPS = {"alternates": 0.0, "attempts": 0.1, "branches": 0.5, "ranked": 0.1}
"""Rule -> the gap of scores that it asks for when none is given."""

CAPS = {"attempts": 4, "branches": 4, "ranked": None}
"""Rule -> the most pairs of a task when nothing else is said."""


class Pairs(OpOptions):
    """Options of `pairs`."""

    rule: Rule
    """How pairs are found: m3_step, alternates, branches, attempts, m3_trajectory,
    format_corruption or ranked."""
    prefer: Literal["actor", "reward", "label", "outcome"] = "actor"
    """alternates: what decides between the step that was taken and its alternate: who wrote it,
    its reward, its labels, or how the run and the branch ended that go on from them (outcome; for
    alternates that were followed to the end)."""
    actors: tuple[str, ...] = ("expert", "agent")
    """alternates, prefer actor: the actors, the best one first."""
    labels: tuple[str, ...] = ()
    """alternates, prefer label: labels, the best one first; a step counts as the worst of those
    that it has."""
    min_gap: float | None = Field(None, ge=0)
    """alternates, attempts, branches: least gap of the scores; without one 0 (and more than 0),
    0.1 and 0.5. ranked: the gap must be larger than it; without one 0.1."""
    compare: Literal["actions", "all"] = "actions"
    """branches: what two attempts must share: calls and observations, and texts of steps without
    calls (actions); or every word, reasoning included (all)."""
    max_per_task: int | None = Field(None, ge=1)
    """attempts, branches, ranked: most pairs of one task, those with the largest gap; without
    one 4, 4 and no limit."""
    extra_rounds: int | None = Field(5, ge=0)
    """attempts: the rejected side ends after this many turns of the agent more than the chosen
    side has; null leaves it whole."""
    score: str | None = None
    """ranked: column of the pool with the score; without one the reward, else 1 for success and
    0 for failure."""
    chosen: str | None = None
    """m3_trajectory: SQL condition over the pool for the runs that may be chosen; without one
    those in which the expert wrote every turn."""
    rejected: str | None = None
    """m3_trajectory: SQL condition for the runs that may be rejected; without one all other runs
    with a turn of the agent."""
    alternates: bool = False
    """m3_trajectory: pair, instead of runs of two agents, what a run did from a step on with what
    its alternate did that was followed to the end; chosen is the side with the better outcome."""
    mask_suboptimal_traces: bool = True
    """m3_trajectory: note the mask policy of that name on both sides: only good turns of the
    chosen and only bad turns of the rejected side are trained."""
    corruptions: tuple[Corruption, ...] = Field(
        ("tags_removed", "json_broken", "argument_dropped", "tool_renamed"), min_length=1
    )
    """format_corruption: what may be done to a call; one is drawn for each step."""
    per_trajectory: int = Field(1, ge=1)
    """format_corruption: most steps that are drawn from a trajectory."""
    max_pairs: int = Field(10_000, ge=1)
    """format_corruption: most pairs in all; they are drawn by the seed."""

    @model_validator(mode="after")
    def _fits(self) -> Pairs:
        takes = TAKES[self.rule]
        if wrong := sorted(self.given() - takes - {"rule"}):
            known = ", ".join(sorted(takes)) or "no options"
            raise ValueError(f"the rule {self.rule} does not take {wrong[0]}; it takes {known}")
        if self.rule == "alternates" and self.prefer == "label" and not self.labels:
            raise ValueError("prefer: label needs labels, the best one first")
        if (self.chosen is None) != (self.rejected is None):
            raise ValueError("give both chosen and rejected, or neither")
        if self.alternates and self.chosen is not None:
            raise ValueError("of alternates the outcome decides; leave out chosen and rejected")
        return self

    @property
    def gap(self) -> float:
        """The least gap of scores."""
        return GAPS.get(self.rule, 0.0) if self.min_gap is None else self.min_gap

    @property
    def cap(self) -> int | None:
        """The most pairs of a task."""
        return CAPS[self.rule] if self.max_per_task is None else self.max_per_task
