"""How sure a mean or a ratio is.

- ``wilson``: Wilson's score interval (Wilson 1927, eq. 8) of a share; runs are independent.
- ``cluster``: the mean plus and minus a quantile times the standard error that is clustered by
  task, as Inspect AI's ``stderr(cluster=)`` and Miller 2024 ("Adding Error Bars to Evals", section
  2.2) compute it: sqrt(C/(C-1) * sum_c (sum_i (x_i - mean))^2) / N for C tasks and N runs.
  For a ratio of sums the residual is top_i - ratio * bottom_i, divided by the sum of the bottoms.
  The quantile is that of Student's t with C-1 degrees of freedom (Cameron and Miller 2015, "A
  Practitioner's Guide to Cluster-Robust Inference", section VI.D); Miller's normal one is too small
  for few tasks: 1.96 in the place of 2.78 for five.
- ``bootstrap``: percentiles of the ratio over draws of whole tasks with replacement.

- ``wilson-cluster``: Wilson's interval of a share with the effective number of runs in the place of
  the number of runs, N* = p (1 - p) / error^2 for the clustered error above (Kish 1965, "Survey
  Sampling", section 8.2; Korn and Graubard 1998, "Confidence Intervals for Proportions with Small
  Expected Number of Positive Counts Estimated from Survey Data", use it with another interval), and
  Student's quantile with C-1 degrees of freedom in the place of the normal one. Near 0 and 1 the
  symmetric ``cluster`` holds the true share too seldom: its error is estimated from the same few
  failures as the share, and it ends beyond 1.

``auto`` takes Wilson for truths where each task has one run, ``wilson-cluster`` for other shares
and ``cluster`` for all else. When all tasks agree (0 of 200), the clustered error is 0, which
nobody should believe: for a share Wilson's interval over the number of tasks is taken instead, and
what is no share has none and says so.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import Literal

import numpy as np

Ends = tuple[float | None, float | None, str | None]
"""Lower end, upper end, method; without ends what is to be said of that, if anything."""

NONE: Ends = (None, None, None)
FLAT: Ends = (None, None, "no interval: the tasks do not differ")
"""In the place of an interval without width."""

_BLOCK = 1_000_000
_MANY = 200
_NOTHING = 1e-12


@dataclass(frozen=True)
class Intervals:
    """How intervals are made.

    Attributes:
        method: auto, wilson, cluster, bootstrap or none.
        level: share of intervals that hold the true number, such as 0.95.
        draws: draws of a bootstrap.
        seed: seed of a bootstrap.
    """

    method: Literal["auto", "wilson", "cluster", "bootstrap", "none"] = "auto"
    level: float = 0.95
    draws: int = 2000
    seed: int = 0

    @property
    def quantile(self) -> float:
        """The normal quantile of both tails, 1.96 for 0.95."""
        return NormalDist().inv_cdf(0.5 + self.level / 2)

    def student(self, clusters: int) -> float:
        """The quantile of both tails of Student's t with one degree of freedom less than clusters.

        Args:
            clusters: number of clusters, at least 2.
        """
        return student(self.level, clusters - 1)


DEFAULT = Intervals()


def wilson(
    successes: float, count: float, level: float = 0.95, quantile: float | None = None
) -> tuple[float, float]:
    """Wilson's score interval of a share.

    Args:
        successes: number of successes.
        count: number of runs, above 0; an effective number need not be whole.
        level: share of intervals that hold the true share.
        quantile: quantile of both tails in the place of the normal one for that level.
    """
    quantile = Intervals(level=level).quantile if quantile is None else quantile
    share, square = successes / count, quantile * quantile
    center = (share + square / (2 * count)) / (1 + square / count)
    spread = math.sqrt(share * (1 - share) / count + square / (4 * count * count))
    half = quantile * spread / (1 + square / count)
    low = 0.0 if successes <= 0 else max(0.0, center - half)
    return low, 1.0 if successes >= count else min(1.0, center + half)


@lru_cache(maxsize=1024)
def student(level: float, freedom: int) -> float:
    """The quantile of both tails of Student's t, 2.776 for 0.95 and 4 degrees of freedom.

    Args:
        level: share between both quantiles.
        freedom: degrees of freedom, at least 1.
    """
    normal = NormalDist().inv_cdf(0.5 + level / 2)
    if freedom > _MANY:
        # Abramowitz and Stegun 1964, 26.7.5, to the third power of 1 / freedom.
        first = (normal**3 + normal) / 4
        second = (5 * normal**5 + 16 * normal**3 + 3 * normal) / 96
        third = (3 * normal**7 + 19 * normal**5 + 17 * normal**3 - 15 * normal) / 384
        return normal + first / freedom + second / freedom**2 + third / freedom**3
    low, high = normal, 2 * normal
    while _between(high, freedom) < level:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        if _between(middle, freedom) < level:
            low = middle
        else:
            high = middle
    return high


def _between(end: float, freedom: int) -> float:
    """Chance that Student's t lies between -end and end (Abramowitz and Stegun, 26.7.3-4)."""
    angle = math.atan(end / math.sqrt(freedom))
    cosine, odd = math.cos(angle), freedom % 2
    term, total = (cosine if odd else 1.0), 0.0
    for power in range(1 + odd, freedom, 2):
        total += term
        term *= cosine * cosine * power / (power + 1)
    total *= math.sin(angle)
    return 2 / math.pi * (angle + total) if odd else total


def clustered_error(residuals: Sequence[float], clusters: Sequence[Hashable]) -> float | None:
    """Standard error of a sum of residuals that is clustered; None with one cluster.

    Args:
        residuals: what each run adds to the sum, zero in the mean.
        clusters: the cluster of each run.
    """
    sums: dict[Hashable, float] = {}
    for residual, cluster in zip(residuals, clusters, strict=True):
        sums[cluster] = sums.get(cluster, 0.0) + residual
    count = len(sums)
    if count < 2:
        return None
    return math.sqrt(math.fsum(value * value for value in sums.values()) * count / (count - 1))


def mean_ends(
    values: Sequence[float],
    clusters: Sequence[Hashable],
    options: Intervals,
    *,
    amounts: bool = False,
) -> Ends:
    """Interval of a mean.

    Args:
        values: the numbers.
        clusters: the task of each.
        options: how the interval is made.
        amounts: the numbers are amounts, such as calls: 0 and 1 among them are no truths.
    """
    if options.method == "none" or not values:
        return NONE
    truths = not amounts and all(value in (0.0, 1.0) for value in values)
    single = len(set(clusters)) == len(values)
    if truths and (options.method == "wilson" or (options.method == "auto" and single)):
        return (*wilson(sum(values), len(values), options.level), "wilson")
    if amounts:
        return ratio_ends(values, [1.0] * len(values), clusters, options)
    return share_ends(values, [1.0] * len(values), clusters, options)


def share_ends(
    tops: Sequence[float],
    bottoms: Sequence[float],
    clusters: Sequence[Hashable],
    options: Intervals,
) -> Ends:
    """Interval of a ratio of two sums that is a share, if its parts say that it is one.

    It stays between 0 and 1. With the methods ``auto`` and ``wilson`` it is Wilson's with the
    effective number of runs, and over the number of tasks when all tasks agree.
    """
    low, high, method = ratio_ends(tops, bottoms, clusters, options)
    if not all(0 <= top <= bottom for top, bottom in zip(tops, bottoms, strict=True)):
        return low, high, method
    none, every = not any(tops), all(map(math.isclose, tops, bottoms))
    flat = none or every or method == FLAT[2]
    if method is not None and options.method in ("auto", "wilson") and flat:
        # A task whose bottoms are all 0 says nothing.
        known = len({name for name, bottom in zip(clusters, bottoms, strict=True) if bottom})
        share = float(every) if none or every else math.fsum(tops) / math.fsum(bottoms)
        return (*wilson(share * known, known, options.level), "wilson")
    if low is None or high is None:
        return low, high, method
    if options.method in ("auto", "wilson"):
        share, quantile = math.fsum(tops) / math.fsum(bottoms), options.student(len(set(clusters)))
        error = (high - low) / 2 / quantile
        effective = share * (1 - share) / error**2
        ends = wilson(share * effective, effective, options.level, quantile)
        return (*ends, "wilson-cluster")
    return max(0.0, low), min(1.0, high), method


def ratio_ends(
    tops: Sequence[float],
    bottoms: Sequence[float],
    clusters: Sequence[Hashable],
    options: Intervals,
) -> Ends:
    """Interval of a ratio of two sums, clustered. The sum of the bottoms is not 0."""
    if options.method == "none":
        return NONE
    if options.method == "bootstrap":
        return _bootstrap(tops, bottoms, clusters, options)
    total = math.fsum(bottoms)
    ratio = math.fsum(tops) / total
    residuals = [top - ratio * bottom for top, bottom in zip(tops, bottoms, strict=True)]
    error = clustered_error(residuals, clusters)
    if error is None:
        return NONE
    return around(ratio, error / abs(total), len(set(clusters)), options)


def around(value: float, error: float, clusters: int, options: Intervals) -> Ends:
    """A value plus and minus its clustered error times the quantile.

    Args:
        value: the value.
        error: its standard error.
        clusters: number of clusters, at least 2.
        options: how the interval is made.
    """
    if error <= _NOTHING * max(1.0, abs(value)):
        return FLAT
    half = options.student(clusters) * error
    return value - half, value + half, "cluster"


def _bootstrap(
    tops: Sequence[float],
    bottoms: Sequence[float],
    clusters: Sequence[Hashable],
    options: Intervals,
) -> Ends:
    names = {name: index for index, name in enumerate(dict.fromkeys(clusters))}
    if len(names) < 2:
        return NONE
    place = np.array([names[name] for name in clusters])
    above = np.bincount(place, weights=np.asarray(tops, float), minlength=len(names))
    below = np.bincount(place, weights=np.asarray(bottoms, float), minlength=len(names))
    generator = np.random.Generator(np.random.PCG64(options.seed))
    block, ratios = max(1, _BLOCK // len(names)), []
    for start in range(0, options.draws, block):
        size = (min(block, options.draws - start), len(names))
        drawn = generator.integers(0, len(names), size=size)
        sums = below[drawn].sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios.append(above[drawn].sum(axis=1) / sums)
    values = np.concatenate(ratios)
    values = values[np.isfinite(values)]
    if not values.size:
        return NONE
    tail = (1 - options.level) / 2
    low, high = np.quantile(values, [tail, 1 - tail])
    if high - low <= _NOTHING * max(1.0, abs(low)):
        return FLAT
    return float(low), float(high), "bootstrap"
