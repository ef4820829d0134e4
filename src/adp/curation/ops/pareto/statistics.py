"""Statistics of groups of rollouts."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np

Floats = np.ndarray[Any, np.dtype[np.float64]]
Places = np.ndarray[Any, np.dtype[np.int64]]
Of = Literal["variance", "mean", "min", "max"]

_EXACT = 2.0**53
"""Whole numbers below this are exact as floats."""

_PARTS = 2.0**10
"""Halves, quarters and so on down to this part of 1 are reckoned with exactly."""


def group_codes(keys: Places) -> tuple[Places, Places]:
    """Number groups by their first row.

    Args:
        keys: a key a row; rows with the same key are a group.

    Returns:
        The number of the group of each row, and the first row of each group.
    """
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    order = np.argsort(first)
    numbers = np.empty_like(order)
    numbers[order] = np.arange(len(order))
    return numbers[inverse], first[order]


def group_statistic(values: Floats, codes: Places, count: int, of: Of) -> Floats:
    """A statistic of each group: of its finite values; a group without any gets 0.

    The variance is that of the population. When the values of a group differ by whole numbers, or
    by halves, quarters and so on, it is exact, so groups of equal variance tie. It never depends
    on the order of the rows.

    Args:
        values: a value a row.
        codes: the group of each row.
        count: number of groups.
        of: which statistic.
    """
    there = np.isfinite(values)
    order = np.lexsort((values[there], codes[there]))
    values, codes = values[there][order], codes[there][order]
    sizes = np.bincount(codes, minlength=count)
    some = sizes > 0
    ends = np.cumsum(sizes)
    least, most = np.zeros(count), np.zeros(count)
    least[some], most[some] = values[(ends - sizes)[some]], values[ends[some] - 1]
    if of in ("min", "max"):
        return least if of == "min" else most
    above = values - least[codes]
    number = np.maximum(sizes, 1).astype(np.float64)
    sums = np.bincount(codes, above, count)
    if of == "mean":
        return least + sums / number
    squares = np.bincount(codes, above**2, count)
    exact = np.zeros(count, dtype=np.bool_)
    for parts in (1.0, _PARTS):
        scaled = above * parts
        uneven = np.bincount(codes, scaled != np.floor(scaled), count)
        exact |= (uneven == 0) & (number * squares * parts**2 < _EXACT)
    centred = np.bincount(codes, (above - (sums / number)[codes]) ** 2, count) / number
    return np.where(exact, (number * squares - sums**2) / number**2, centred)


def pass_at(k: int, scored: Places, solved: Places) -> Floats:
    """The unbiased estimate of pass@k: 1 - C(n - c, k) / C(n, k) (Chen et al. 2021, section 2.1).

    Args:
        k: number of attempts.
        scored: n, rollouts of known outcome, of each group.
        solved: c, those that solved the task.

    Returns:
        One number a group; NaN where n < k.
    """
    pairs, inverse = np.unique(np.stack([scored, solved]), axis=1, return_inverse=True)
    results = [
        1 - math.comb(n - c, k) / math.comb(n, k) if n >= k else math.nan
        for n, c in pairs.T.tolist()
    ]
    return np.array(results, dtype=np.float64)[inverse.reshape(-1)]
