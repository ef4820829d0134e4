"""The scores of one metric: values by task, and what is not scored."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeGuard

from adp.eval.scorer import Figure, Scored
from adp.stores.tasks import TaskKey

_MOST = 1e100

Cluster = TaskKey | str
"""A task, or the id of a trajectory without one."""


@dataclass
class Collected:
    """The scores of one metric.

    Attributes:
        values: the numbers, in the order of the rows.
        tasks: the task of each; a trajectory without a task is one of its own.
        unscored: rows without a number.
        infrastructure: of these, how many because something else than the agent failed.
        reasons: why rows are unscored, and how often.
    """

    values: list[float] = field(default_factory=list)
    tasks: list[Cluster] = field(default_factory=list)
    unscored: int = 0
    infrastructure: int = 0
    reasons: Counter[str] = field(default_factory=Counter)

    def undefined(self, name: str, reason: str | None = None) -> Figure:
        """A figure without a number."""
        return self.figure(name, None, reason=reason or self.why())

    def figure(
        self,
        name: str,
        value: float | None,
        interval: tuple[float | None, float | None, str | None] = (None, None, None),
        reason: str | None = None,
    ) -> Figure:
        """A figure over these rows; where an interval is missing for a reason, it is the note."""
        low, high, method = interval
        if low is None:
            method, reason = None, reason or method
        return Figure(
            name=name,
            value=value,
            low=low,
            high=high,
            method=method,
            count=len(self.values),
            tasks=len(set(self.tasks)),
            unscored=self.unscored,
            infrastructure=self.infrastructure,
            reason=reason,
        )

    def why(self) -> str:
        """Why nothing is scored."""
        if not self.reasons:
            return "nothing was scored"
        reason, count = min(self.reasons.items(), key=lambda item: (-item[1], item[0]))
        return f"nothing was scored: {reason} ({count} of {self.unscored})"


def collect(rows: Sequence[Scored], metric: str) -> Collected:
    """The scores of one metric. A number that cannot be added up is unscored."""
    result = Collected()
    for row in rows:
        if row.score.metric == metric:
            _add(result, row)
    return result


def collect_all(rows: Sequence[Scored]) -> dict[str, Collected]:
    """The scores of every metric, in the order in which they first come up."""
    results: dict[str, Collected] = {}
    for row in rows:
        _add(results.setdefault(row.score.metric, Collected()), row)
    return results


def _add(value: Collected, row: Scored) -> None:
    score = row.score
    if not is_number(score.value):
        value.unscored += 1
        value.infrastructure += score.infrastructure
        none = "no reason is given" if score.value is None else "the number is no usual one"
        value.reasons[score.reason or none] += 1
        return
    value.values.append(float(score.value))
    value.tasks.append(task_of(row))


def is_number(value: float | None) -> TypeGuard[float]:
    """Whether a value can be added up: it is finite, and its square is.

    Args:
        value: the value. Beyond 1e100 it says nothing about an agent, and sums of squares of such
            numbers overflow.
    """
    return value is not None and math.isfinite(value) and abs(value) <= _MOST


def task_of(row: Scored) -> Cluster:
    """What the row is clustered by: its task, or the trajectory itself where it has none."""
    key = key_of(row)
    return row.trajectory_id if key is None else key.name


def key_of(row: Scored) -> TaskKey | None:
    """What tells the task of a row from others; None without a task."""
    if row.task is None and row.task_id is not None:
        return TaskKey(None, None, row.task_id)
    return row.task
