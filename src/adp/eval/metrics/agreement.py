"""How far verdicts agree: with what is known, and among those who gave them.

- ``cohen_kappa`` (Cohen 1960): (p_o - p_e) / (1 - p_e), two raters;
- ``krippendorff_alpha`` (Krippendorff 2004, "Content Analysis", chapter 11): 1 - D_o / D_e over
  coincidences of any number of raters, with missing verdicts; nominal, or ordinal;
- ``brier`` (Brier 1950): mean of (p - y)^2; ``calibration_error``: the mean gap of confidence and
  frequency over ten bins of equal width, weighted by their runs (ECE, Guo et al. 2017);
- ``spearman``: correlation of ranks, ties with their mean rank.

Intervals are percentiles over draws of whole tasks (`resampled`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from adp.eval.metrics.intervals import FLAT, NONE, Ends

Numbers = npt.NDArray[np.float64]
_DRAWS, _LEVEL = 1_000, 0.95


def cohen_kappa(first: Sequence[Any], second: Sequence[Any]) -> float | None:
    """Cohen's kappa of two raters; None where both always say the same one thing, or nothing."""
    labels = {label: place for place, label in enumerate(dict.fromkeys([*first, *second]))}
    if len(labels) < 2:
        return None
    table = np.zeros((len(labels), len(labels)))
    np.add.at(table, ([labels[x] for x in first], [labels[x] for x in second]), 1)
    table /= len(first)
    expected = float(table.sum(axis=0) @ table.sum(axis=1))
    return (float(np.trace(table)) - expected) / (1 - expected)


def coincidences(units: Sequence[Sequence[Any]], order: Sequence[Any]) -> Numbers:
    """Coincidences of verdicts, unit by unit.

    Args:
        units: the verdicts about each thing; None is missing.
        order: all labels, from the lowest to the highest.

    Returns:
        An array of shape (units, labels, labels); units with one verdict are 0.
    """
    places = {label: place for place, label in enumerate(order)}
    counts = np.zeros((len(units), len(order)))
    for row, labels in enumerate(units):
        for label in labels:
            if label is not None:
                counts[row, places[label]] += 1
    pairs = counts[:, :, None] * counts[:, None, :]
    diagonal = np.arange(len(order))
    pairs[:, diagonal, diagonal] -= counts
    per_pair: Numbers = pairs / np.maximum(counts.sum(axis=1) - 1, 1)[:, None, None]
    return per_pair


def krippendorff_alpha(
    table: Numbers, level: Literal["nominal", "ordinal"] = "nominal"
) -> float | None:
    """Krippendorff's alpha; None where no two verdicts can be compared, or all are the same.

    Args:
        table: sum of coincidences, of shape (labels, labels); the labels are in their order.
        level: nominal: labels differ or not; ordinal: by how many verdicts lie between them.
    """
    sums = table.sum(axis=1)
    total = float(sums.sum())
    if total <= 1:
        return None
    difference = 1.0 - np.eye(len(sums))
    if level == "ordinal":
        above = np.cumsum(sums) - sums / 2
        difference = (above[:, None] - above[None, :]) ** 2
    expected = float((np.outer(sums, sums) * difference).sum()) / (total - 1)
    if expected <= 0:
        return None
    return 1 - float((table * difference).sum()) / expected


def brier(chances: Numbers, truths: Numbers) -> float:
    """Brier's score of chances of a success."""
    return float(np.mean((chances - truths) ** 2))


def calibration_error(chances: Numbers, truths: Numbers, bins: int = 10) -> float:
    """Expected calibration error of chances of a success."""
    place = np.minimum((chances * bins).astype(int), bins - 1)
    gaps = np.bincount(place, weights=chances - truths, minlength=bins)
    return float(np.abs(gaps).sum() / len(chances))


def spearman(first: Numbers, second: Numbers) -> float | None:
    """Correlation of ranks; None where one side does not vary."""
    if len(first) < 2:
        return None
    ranks = [_ranks(first), _ranks(second)]
    centred = [values - values.mean() for values in ranks]
    size = float(np.sqrt((centred[0] ** 2).sum() * (centred[1] ** 2).sum()))
    return float(centred[0] @ centred[1]) / size if size > 0 else None


def _ranks(values: Numbers) -> Numbers:
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    middles: Numbers = np.cumsum(counts) - (counts - 1) / 2
    return middles[inverse]


def resampled(
    statistic: Callable[[npt.NDArray[np.int64]], float | None],
    tasks: Sequence[Hashable],
    seed: int = 0,
) -> Ends:
    """The 95 % interval of a statistic, by 1,000 draws of whole tasks with replacement.

    Args:
        statistic: makes a number of the places of the rows that are drawn; None: it has none.
        tasks: the task of each row.
        seed: seed of the draws.
    """
    groups: dict[Hashable, list[int]] = {}
    for place, task in enumerate(tasks):
        groups.setdefault(task, []).append(place)
    rows = [np.array(places, np.int64) for places in groups.values()]
    if len(rows) < 2:
        return NONE
    generator = np.random.Generator(np.random.PCG64(seed))
    values = []
    for _ in range(_DRAWS):
        drawn = generator.integers(0, len(rows), size=len(rows))
        value = statistic(np.concatenate([rows[place] for place in drawn]))
        if value is not None:
            values.append(value)
    if len(values) < _DRAWS / 2:
        return None, None, "no interval: it is undefined in most draws"
    low, high = np.quantile(values, [(1 - _LEVEL) / 2, (1 + _LEVEL) / 2])
    return FLAT if high - low <= 0 else (float(low), float(high), "bootstrap")
