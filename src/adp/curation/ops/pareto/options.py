"""Options of `pareto`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from adp.curation.op import OpOptions
from adp.curation.ops.pareto.statistics import Of

CALLS = "tool_calls"
CORRECTNESS = "correctness"


class Objective(OpOptions):
    """A statistic of a group that should be large (or small)."""

    column: str
    """tool_calls, correctness (see the options of these names), or a column of numbers."""
    of: Of = "variance"
    """What of it, over the rollouts of a group: variance (population), mean, min, max. Unknown
    values are left out; a group without any gets 0."""
    smaller: bool = False
    """Whether less is better."""

    @property
    def column_name(self) -> str:
        """The column that holds it."""
        return f"group_{self.of}_{self.column}"

    @property
    def sign(self) -> int:
        """-1 when less is better."""
        return -1 if self.smaller else 1


class Pareto(OpOptions):
    """Options of `pareto`."""

    by: str = "task"
    """What the groups are: a column, or an SQL expression over the view pool. A trajectory where
    it is null is a group of its own."""
    count: Annotated[int, Field(ge=1)] | None = 8000
    """How many groups to choose; null: all, so only contrast is looked at."""
    within: str | None = None
    """What groups compete within: a column, or an SQL expression over the view pool, such as
    dataset. Fronts and counts are then of each value for itself; that of a group's first rollout
    counts."""
    counts: dict[str, Annotated[int, Field(ge=0)]] = Field(default_factory=dict)
    """How many groups to choose of single values of within; count is for each of the others."""
    objectives: list[Objective] = Field(
        [Objective(column=CALLS), Objective(column=CORRECTNESS)], min_length=1, max_length=8
    )
    """The objectives. Up to two are sorted in O(n log n)."""
    tool_calls: str | None = None
    """Column with the number of tool calls; by default they are counted."""
    correctness: str | None = None
    """Column with the correctness; by default the reward, else success as 1 or 0."""
    contrast: Literal["qa", "math", "none"] = "qa"
    """Which chosen groups stay. qa: those with a correctness >= threshold and one below. math:
    those with a correctness of 0 and one of 1. none: all."""
    math_where: str | None = None
    """SQL condition over the view pool: groups with a rollout that meets it are judged by the
    rule math, the others by qa."""
    threshold: float = Field(0.75, allow_inf_nan=False)
    """From which correctness on a rollout is right; also for pass@k, where success is not known."""
    k: list[Annotated[int, Field(ge=1, le=1000)]] = Field([1])
    """The k of the columns group_pass_at_k."""

    @model_validator(mode="after")
    def _possible(self) -> Pareto:
        names = [objective.column_name for objective in self.objectives]
        if len(set(names)) < len(names):
            raise ValueError("two objectives are the same; leave one out")
        if self.counts and self.within is None:
            raise ValueError("counts are by the values of within; name it")
        if self.math_where is not None and self.contrast != "qa":
            raise ValueError("math_where tells which groups are not qa, so it needs contrast: qa")
        return self
