"""Figures of BFCL: accuracy by category, and how version 4 puts them together."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from adp.eval.bfcl.categories import AGENTIC, LIVE, MULTI_TURN, NON_LIVE
from adp.eval.scorer import Figure, Scored

WEIGHTS = {"non_live": 10, "live": 10, "irrelevance": 10, "multi_turn": 30, "agentic": 40}
"""Percent of the overall score of BFCL v4."""

_SIMPLE = ("simple_python", "simple_java", "simple_javascript")
_NON_LIVE_AST = ("simple_ast", "multiple", "parallel", "parallel_multiple")
_LIVE_AST = tuple(name for name in LIVE if "relevance" not in name)
_LIVE_SIZES = {
    "live_simple": 258,
    "live_multiple": 1053,
    "live_parallel": 16,
    "live_parallel_multiple": 24,
}
"""Numbers of entries, with which a category that was not run is weighted when it counts as 0."""


@dataclass(frozen=True)
class Part:
    """A number that is put together of others.

    Attributes:
        value: the number; None when parts are missing.
        missing: the categories that were not run.
    """

    value: float | None
    missing: tuple[str, ...] = ()


@dataclass
class Tally:
    """Right and judged entries of a category, by task: attempts at one task are not independent."""

    by_task: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    unscored: int = 0
    infrastructure: int = 0

    @property
    def count(self) -> int:
        """Judged trajectories."""
        return sum(map(len, self.by_task.values()))

    @property
    def mean(self) -> float | None:
        """Share of right ones."""
        return sum(map(sum, self.by_task.values())) / self.count if self.count else None


def aggregate(
    accuracy: Mapping[str, float],
    counts: Mapping[str, int] | None = None,
    *,
    missing_as_zero: bool = False,
) -> dict[str, Part]:
    """The figures of the leaderboard of BFCL v4.

    Args:
        accuracy: accuracy by category, between 0 and 1; only categories that were run.
        counts: judged entries by category; live is a mean weighted with them.
        missing_as_zero: whether a category that was not run counts as 0, as in BFCL's own tables;
            else a figure that needs it has no value, and names it.

    Returns:
        ``simple_ast``, ``non_live``, ``live``, ``irrelevance``, ``relevance``, ``multi_turn``,
        ``agentic`` and ``overall``.
    """
    sizes = {**_LIVE_SIZES, **(counts or {})}
    leaf = {
        name: Part(accuracy[name]) if name in accuracy else Part(None, (name,))
        for name in (*NON_LIVE, *LIVE, *MULTI_TURN, *AGENTIC)
    }

    def mean(parts: Sequence[Part], weights: Sequence[float] | None = None) -> Part:
        missing = tuple(dict.fromkeys(name for part in parts for name in part.missing))
        if missing and not missing_as_zero:
            return Part(None, missing)
        shares = weights or [1.0] * len(parts)
        total = sum((part.value or 0.0) * share for part, share in zip(parts, shares, strict=True))
        return Part(total / sum(shares) if sum(shares) else None, missing)

    found = {"simple_ast": mean([leaf[name] for name in _SIMPLE])}
    found["non_live"] = mean([{**leaf, **found}[name] for name in _NON_LIVE_AST])
    found["live"] = mean([leaf[name] for name in _LIVE_AST], [sizes[name] for name in _LIVE_AST])
    found["irrelevance"] = mean([leaf["irrelevance"], leaf["live_irrelevance"]])
    found["relevance"] = mean([leaf["live_relevance"]])
    found["multi_turn"] = mean([leaf[name] for name in MULTI_TURN])
    web = mean([leaf["web_search_base"], leaf["web_search_no_snippet"]])
    memory = mean([leaf[name] for name in AGENTIC if name.startswith("memory")])
    found["agentic"] = mean([web, memory])
    found["overall"] = mean([found[name] for name in WEIGHTS], list(WEIGHTS.values()))
    return found


def tallies(rows: Sequence[Scored]) -> dict[tuple[str, str], Tally]:
    """Scores by metric and category."""
    found: dict[tuple[str, str], Tally] = defaultdict(Tally)
    for row in rows:
        category = str(row.score.evidence.get("category") or "unknown")
        tally = found[row.score.metric, category]
        if row.score.value is None:
            tally.unscored += 1
            tally.infrastructure += row.score.infrastructure
        else:
            tally.by_task[row.task_id or row.trajectory_id].append(row.score.value)
    return dict(found)


def figure_of(name: str, tally: Tally) -> Figure:
    """Accuracy of a category with an interval of 95 %.

    With one attempt at each task the interval is Wilson's (1927), else it is made of the sums by
    task (the clustered standard error, with factor C / (C - 1)).
    """
    low, high, method = _interval(tally)
    return Figure(
        name=name,
        value=tally.mean,
        low=low,
        high=high,
        method=method,
        count=tally.count,
        tasks=len(tally.by_task),
        unscored=tally.unscored,
        infrastructure=tally.infrastructure,
        reason=None if tally.count else "nothing was scored",
    )


def _interval(tally: Tally) -> tuple[float | None, float | None, str | None]:
    count, mean, z = tally.count, tally.mean, 1.959963984540054
    if mean is None:
        return None, None, None
    if all(len(values) == 1 for values in tally.by_task.values()):
        middle = (mean + z * z / (2 * count)) / (1 + z * z / count)
        root = math.sqrt(mean * (1 - mean) / count + z * z / (4 * count * count))
        half = z * root / (1 + z * z / count)
        return max(0.0, middle - half), min(1.0, middle + half), "wilson"
    clusters = len(tally.by_task)
    if clusters < 2:
        return None, None, None
    sums = [sum(value - mean for value in values) for values in tally.by_task.values()]
    error = math.sqrt(sum(one * one for one in sums) * clusters / (clusters - 1)) / count
    return max(0.0, mean - z * error), min(1.0, mean + z * error), "cluster"
