"""Means, ratios of sums, and ET-Agent's tool productivity."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from adp.eval.metrics.intervals import (
    DEFAULT,
    Intervals,
    around,
    clustered_error,
    mean_ends,
    ratio_ends,
    share_ends,
)
from adp.eval.metrics.metric_scores import Collected, collect, collect_all, is_number, task_of
from adp.eval.scorer import Figure, Scored


def mean_figures(
    rows: Sequence[Scored],
    metrics: Sequence[str] | None = None,
    intervals: Intervals = DEFAULT,
    amounts: Collection[str] = (),
) -> list[Figure]:
    """The mean of each metric over all scored trajectories, with an interval.

    Args:
        rows: the scores.
        metrics: metrics wanted, in this order, each of them a figure even if no row has it; None:
            all that are there, in the order in which they first come up.
        intervals: how intervals are made.
        amounts: metrics that are amounts, such as calls: 0 and 1 among them are no truths.
    """
    result = collect_all(rows)
    names = list(result) if metrics is None else metrics
    means = [
        _mean(name, result.get(name, Collected()), intervals, name in amounts) for name in names
    ]
    return [replace(mean, amount=mean.name in amounts) for mean in means]


def _mean(name: str, value: Collected, intervals: Intervals, amounts: bool) -> Figure:
    if not value.values:
        return value.undefined(name)
    mean = math.fsum(value.values) / len(value.values)
    return value.figure(
        name, mean, mean_ends(value.values, value.tasks, intervals, amounts=amounts)
    )


def ratio_figure(
    rows: Sequence[Scored],
    top: str,
    bottom: str,
    name: str,
    intervals: Intervals = DEFAULT,
    *,
    amount: bool = False,
) -> Figure:
    """Sum of one metric over the sum of another: a number about the whole corpus.

    A trajectory with ten calls counts ten times as much as one with one call; a mean of shares
    counts both alike.

    Args:
        rows: the scores.
        top: metric that is counted, such as ``failed_calls``.
        bottom: metric that it is a part of, such as ``calls``.
        name: name of the figure.
        intervals: how intervals are made.
        amount: the first is no part of the second, so the ratio is no share.
    """
    figure = _ratio(rows, top, bottom, name, intervals, amount)
    return replace(figure, amount=amount)


def _ratio(
    rows: Sequence[Scored], top: str, bottom: str, name: str, intervals: Intervals, amount: bool
) -> Figure:
    result, tops, bottoms = joined(rows, top, bottom)
    if not result.values:
        return result.undefined(name)
    total = math.fsum(bottoms)
    if total == 0:
        return result.undefined(name, f"{bottom} is 0 in all trajectories")
    if not is_number(math.fsum(tops) / total):
        return result.undefined(name, f"{bottom} is next to 0 in all trajectories")
    ends = (ratio_ends if amount else share_ends)(tops, bottoms, result.tasks, intervals)
    return result.figure(name, math.fsum(tops) / total, ends)


def evidence_figure(
    rows: Sequence[Scored],
    metric: str,
    parts: tuple[str, str],
    name: str,
    intervals: Intervals = DEFAULT,
) -> Figure:
    """Like `ratio_figure`, of two numbers that the evidence of one metric holds.

    Args:
        rows: the scores.
        metric: the metric whose evidence is read; rows without both numbers are unscored.
        parts: key of what is counted, and key of what it is a part of.
        name: name of the figure.
        intervals: how intervals are made.
    """
    split: list[Scored] = []
    for row in rows:
        if row.score.metric != metric:
            continue
        for part in parts:
            value = row.score.evidence.get(part)
            known = isinstance(value, int | float) and is_number(value)
            reason = row.score.reason or f"the evidence has no {part}"
            score = replace(
                row.score,
                metric=part,
                value=value if known else None,
                reason=None if known else reason,
            )
            split.append(replace(row, score=score))
    return ratio_figure(split, *parts, name=name, intervals=intervals)


def productivity_figure(
    rows: Sequence[Scored],
    correct: str,
    calls: str,
    name: str = "tool_productivity",
    intervals: Intervals = DEFAULT,
) -> Figure:
    """ET-Agent's tool productivity, 100 * a * T / (T + 0.1).

    ``a`` is the mean correctness and ``T`` the mean number of calls (ET-Agent, arXiv 2601.06860,
    ``evaluate.py``). The interval is the delta method's, with errors clustered by task.

    Args:
        rows: the scores.
        correct: metric of correctness, 0 to 1.
        calls: metric of the number of calls.
        name: name of the figure.
        intervals: how intervals are made; any other method than none is ``cluster``.
    """
    figure = _productivity(rows, correct, calls, name, intervals)
    return replace(figure, amount=True)


def _productivity(
    rows: Sequence[Scored], correct: str, calls: str, name: str, intervals: Intervals
) -> Figure:
    result, rights, counts = joined(rows, correct, calls)
    number = len(result.values)
    if not number:
        return result.undefined(name)
    right, count = math.fsum(rights) / number, math.fsum(counts) / number
    value = 100 * right * count / (count + 0.1)
    if intervals.method == "none":
        return result.figure(name, value)
    by_right, by_count = 100 * count / (count + 0.1), 100 * right * 0.1 / (count + 0.1) ** 2
    residuals = [
        by_right * (match - right) + by_count * (other - count)
        for match, other in zip(rights, counts, strict=True)
    ]
    error = clustered_error(residuals, result.tasks)
    if error is None:
        return result.figure(name, value)
    low, high, method = around(value, error / number, len(set(result.tasks)), intervals)
    if low is not None and high is not None and all(0 <= item <= 1 for item in rights):
        low, high = max(0.0, low), min(100.0, high)
    return result.figure(name, value, (low, high, method))


def weighted_mean_figure(
    rows: Sequence[Scored],
    weights: Mapping[str, float],
    name: str,
    intervals: Intervals = DEFAULT,
    *,
    whole: bool = False,
) -> Figure:
    """The weighted mean of the means of several metrics that are of different tasks.

    Its error is that of a stratified mean: the square root of the sum of squares of the weighted
    errors, each clustered by task, with Student's quantile for the tasks less one a metric. With a
    single task in one of them there is no interval.

    Args:
        rows: the scores.
        weights: metric -> weight, not negative.
        name: name of the figure.
        intervals: how intervals are made; any other method than none is ``cluster``.
        whole: weights are shares of those of all metrics, so that one without a score counts as 0;
            else of those of the metrics that have scores.
    """
    parts = {metric: collect(rows, metric) for metric, weight in weights.items() if weight}
    there = {metric: part for metric, part in parts.items() if part.values}
    full = Collected(
        [value for part in parts.values() for value in part.values],
        [task for part in parts.values() for task in part.tasks],
        sum(part.unscored for part in parts.values()),
        sum(part.infrastructure for part in parts.values()),
    )
    for part in parts.values():
        full.reasons.update(part.reasons)
    if not there:
        return full.undefined(name)
    total = math.fsum(weights[metric] for metric in (parts if whole else there))
    value, squares, freedom, single = 0.0, 0.0, 0, []
    for metric, part in there.items():
        share, mean = weights[metric] / total, math.fsum(part.values) / len(part.values)
        value += share * mean
        error = clustered_error([entry - mean for entry in part.values], part.tasks)
        single += [metric] if error is None else []
        squares += (share * (error or 0.0) / len(part.values)) ** 2
        freedom += len(set(part.tasks)) - 1
    left_out = ", ".join(metric for metric in parts if metric not in there)
    as_zero = ", which counts as 0" if whole else ""
    note = f"without {left_out}{as_zero}" if left_out else None
    if intervals.method == "none":
        return full.figure(name, value, reason=note)
    if single:
        alone = f"no interval: {', '.join(single)} of a single task"
        return full.figure(name, value, reason=f"{alone}; {note}" if note else alone)
    low, high, method = around(value, math.sqrt(squares), freedom + 1, intervals)
    if low is not None and high is not None and all(0 <= item <= 1 for item in full.values):
        low, high = max(0.0, low), min(1.0, high)
    return full.figure(name, value, (low, high, method), note)


def joined(
    rows: Sequence[Scored], first: str, second: str
) -> tuple[Collected, list[float], list[float]]:
    """Two metrics of the trajectories that are scored by both.

    Returns:
        The first, where both are scored; and both lists of numbers. A trajectory that lacks one of
        them is unscored.
    """
    others = {
        row.trajectory_id: row.score.value
        for row in rows
        if row.score.metric == second and is_number(row.score.value)
    }
    ours = [row for row in rows if row.score.metric == first]
    both = [row for row in ours if row.trajectory_id in others and is_number(row.score.value)]
    frame = collect(ours, first)
    frame.unscored += len(frame.values) - len(both)
    if len(both) < len(frame.values):
        frame.reasons[f"{second} is not scored"] += len(frame.values) - len(both)
    frame.values = [float(row.score.value or 0.0) for row in both]
    frame.tasks = [task_of(row) for row in both]
    return frame, frame.values, [float(others[row.trajectory_id] or 0.0) for row in both]
