"""The difference between two runs over the same tasks.

Both runs are asked the same tasks, and tasks differ much more than runs do; the difference within
each task is what tells them apart (Miller 2024, "Adding Error Bars to Evals", section 4.2).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from adp.eval.metrics.intervals import DEFAULT, Intervals, ratio_ends
from adp.eval.metrics.metric_scores import Cluster, collect, key_of
from adp.eval.scorer import Figure, Scored
from adp.stores.tasks import TaskKey, same_tasks

_EXACT = 12
_DRAWS = 10_000
_CLOSE = 1e-9


@dataclass(frozen=True)
class Difference:
    """Second run minus first run, over the tasks that both have scores for.

    Attributes:
        figure: the mean over tasks of the difference of the task's means. ``count`` is the number
            of scored trajectories of both runs.
        first: mean over these tasks in the first run; each task counts alike.
        second: the same in the second run.
        better: tasks in which the second run is better.
        worse: tasks in which it is worse.
        equal: tasks in which both are equal.
        only_first: tasks that only the first run has scores for; they do not count.
        only_second: tasks that only the second run has scores for.
        p_sign: two-sided p-value of the exact sign test on better and worse.
        p_permutation: two-sided p-value of the sign-flip permutation test on the differences; exact
            up to twelve tasks that differ, otherwise from 10,000 draws with the seed.
    """

    figure: Figure
    first: float | None
    second: float | None
    better: int = 0
    worse: int = 0
    equal: int = 0
    only_first: int = 0
    only_second: int = 0
    p_sign: float | None = None
    p_permutation: float | None = None


def paired_difference(
    first: Sequence[Scored],
    second: Sequence[Scored],
    metric: str,
    intervals: Intervals = DEFAULT,
    *,
    amounts: bool = False,
) -> Difference:
    """Compare two runs over the same tasks.

    Args:
        first: scores of one run.
        second: scores of the other run.
        metric: what is compared; more is better.
        intervals: how the interval is made: ``cluster`` (also for auto and wilson), by the standard
            error of the differences of tasks; ``bootstrap`` over tasks; or none. Where all scores
            lie between 0 and 1 it stays between -1 and 1.
        amounts: the scores are amounts, such as seconds, even where all lie between 0 and 1.
    """
    rows = {"first": collect(first, metric), "second": collect(second, metric)}
    means = {name: _by_task(row.values, row.tasks) for name, row in rows.items()}
    means["second"] = _renamed(means["second"], *(_keys(run, metric) for run in (first, second)))
    both = [task for task in means["first"] if task in means["second"]]
    counts: dict[str, Any] = {
        "count": len(rows["first"].values) + len(rows["second"].values),
        "tasks": len(both),
        "unscored": sum(row.unscored for row in rows.values()),
        "infrastructure": sum(row.infrastructure for row in rows.values()),
    }
    only_first, only_second = len(means["first"]) - len(both), len(means["second"]) - len(both)
    if not both:
        reason = "the two runs have no scored task in common"
        figure = Figure(name=metric, value=None, reason=reason, amount=amounts, **counts)
        return Difference(figure, None, None, only_first=only_first, only_second=only_second)
    differences = [means["second"][task] - means["first"][task] for task in both]
    low, high, method = ratio_ends(differences, [1.0] * len(both), both, intervals)
    scores = [score for row in rows.values() for score in row.values]
    if low is not None and high is not None and not amounts and all(0 <= x <= 1 for x in scores):
        low, high = max(-1.0, low), min(1.0, high)
    mean = math.fsum(differences) / len(both)
    how = (None, method) if low is None else (method, None)
    figure = Figure(metric, mean, low, high, method=how[0], reason=how[1], amount=amounts, **counts)
    better = sum(difference > _CLOSE for difference in differences)
    worse = sum(difference < -_CLOSE for difference in differences)
    return Difference(
        figure=figure,
        first=math.fsum(means["first"][task] for task in both) / len(both),
        second=math.fsum(means["second"][task] for task in both) / len(both),
        better=better,
        worse=worse,
        equal=len(both) - better - worse,
        only_first=only_first,
        only_second=only_second,
        p_sign=sign_test(better, worse),
        p_permutation=permutation_test(differences, intervals.seed),
    )


def _keys(rows: Sequence[Scored], metric: str) -> list[TaskKey]:
    keys = (key_of(row) for row in rows if row.score.metric == metric)
    return [key for key in keys if key is not None]


def _renamed(
    means: Mapping[Cluster, float], first: Sequence[TaskKey], second: Sequence[TaskKey]
) -> dict[Cluster, float]:
    """The means of the second run under the names that the first one has for the tasks."""
    same: dict[Any, TaskKey] = dict(same_tasks(first, second))
    return {same.get(task, task): mean for task, mean in means.items()}


def _by_task(values: Sequence[float], tasks: Sequence[Cluster]) -> dict[Cluster, float]:
    results: dict[Cluster, list[float]] = {}
    for value, task in zip(values, tasks, strict=True):
        results.setdefault(task, []).append(value)
    return {task: math.fsum(child) / len(child) for task, child in results.items()}


def sign_test(better: int, worse: int) -> float:
    """Two-sided exact sign test; ties are left out.

    Args:
        better: number of positive differences.
        worse: number of negative differences.
    """
    number, few = better + worse, min(better, worse)
    below = sum(math.comb(number, index) for index in range(few + 1))
    return min(1.0, 2 * below / (1 << number))


def permutation_test(differences: Sequence[float], seed: int = 0) -> float:
    """Two-sided sign-flip permutation test of a mean of 0.

    Args:
        differences: one for each task.
        seed: seed of the draws, which are needed with more than twelve differences that are not 0.
    """
    some = np.array([difference for difference in differences if abs(difference) > _CLOSE])
    if not some.size:
        return 1.0
    seen = abs(some.sum()) - _CLOSE
    if some.size <= _EXACT:
        flips = np.arange(2**some.size)[:, None] >> np.arange(some.size) & 1
        far = abs((1 - 2 * flips) @ some) >= seen
        return float(np.mean(far))
    generator = np.random.Generator(np.random.PCG64(seed))
    block, result, left = max(1, 1_000_000 // some.size), 0, _DRAWS
    while left:
        size = min(block, left)
        flips = generator.integers(0, 2, size=(size, some.size), dtype=np.int8)
        result += int((abs((1 - 2 * flips) @ some) >= seen).sum())
        left -= size
    return (result + 1) / (_DRAWS + 1)
