"""What most scorers are: a few numbers about each trajectory, and their means.

A trajectory that something else than the agent broke is unscored in all metrics, as
infrastructure. Subclasses give ``name``, ``metrics`` and `PerTrajectory.measure`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from adp.eval.metrics import Intervals, mean_figures
from adp.eval.metrics.intervals import DEFAULT
from adp.eval.scorer import Figure, Item, Score, Scored
from adp.rollouts.trajectory_reading import broken


class PerTrajectory:
    """Base of scorers whose figures are means over trajectories.

    Attributes:
        name: its name in the registry.
        version: raised when its numbers change.
        metrics: its metrics, in the order of a report.
        amounts: metrics that are amounts, such as calls, and no shares.
        intervals: how intervals are made.
    """

    name = ""
    version = "1"
    metrics: tuple[str, ...] = ()
    amounts: frozenset[str] = frozenset()
    intervals: Intervals = DEFAULT

    def score(self, item: Item) -> Sequence[Score]:
        """Score one trajectory. Whatever is in it, this raises nothing."""
        reason = broken(item.trajectory)
        if reason is not None:
            return unscored(self.metrics, reason, infrastructure=True)
        return self.measure(item)

    def measure(self, item: Item) -> Sequence[Score]:
        """Score a trajectory that ran as it should."""
        raise NotImplementedError

    def figures(self, rows: Sequence[Scored]) -> Sequence[Figure]:
        """The mean of each metric."""
        return mean_figures(rows, self.metrics, self.intervals, self.amounts)


def scored(metric: str, value: float, evidence: Mapping[str, Any] | None = None) -> Score:
    """A score with a number."""
    return Score(metric, float(value), evidence=evidence or {})


def unscored(
    metrics: Sequence[str],
    reason: str,
    evidence: Mapping[str, Any] | None = None,
    *,
    infrastructure: bool = False,
) -> list[Score]:
    """Scores without a number."""
    return [
        Score(metric, None, reason, evidence or {}, infrastructure=infrastructure)
        for metric in metrics
    ]


def share(metric: str, part: float, full: float, reason: str, evidence: Mapping[str, Any]) -> Score:
    """A part of a whole; unscored with the reason where the whole is 0."""
    if not full:
        return Score(metric, None, reason, evidence)
    return Score(metric, part / full, evidence=evidence)
