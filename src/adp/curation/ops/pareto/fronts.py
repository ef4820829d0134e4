"""Non-dominated fronts and crowding distances (NSGA-II), objectives to be maximised.

p dominates q when it is at least as large in every objective and larger in one; equal points do
not dominate each other. Front 0 holds what nothing dominates, front 1 what only front 0 dominates,
and so on.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Any

import numpy as np

Floats = np.ndarray[Any, np.dtype[np.float64]]
Places = np.ndarray[Any, np.dtype[np.int64]]


def fronts(values: Floats) -> Places:
    """The number of the front of each point.

    One or two objectives: a sweep from the largest first objective down, O(n log n) (Jensen 2003,
    IEEE Transactions on Evolutionary Computation 7(5), section III). What came before is at least
    as large in the first objective, so a front dominates a point when its largest second objective
    is; these fall from front to front, and a binary search finds the first that does not.

    More objectives: ENS-BS, O(n sqrt(n)) comparisons when there are many fronts and O(n^2) when
    there are few (Zhang et al. 2015, IEEE Transactions on Evolutionary Computation 19(2)).

    Args:
        values: points x objectives, finite.
    """
    points, inverse = np.unique(values + 0.0, axis=0, return_inverse=True)
    sweep = _sweep(points) if points.shape[1] <= 2 else _search(points)
    return sweep[inverse.reshape(-1)]


def _sweep(points: Floats) -> Places:
    """Fronts of different points, sorted upwards, of at most two objectives."""
    falling = -points[::-1, 1] if points.shape[1] == 2 else np.zeros(len(points))
    tops: list[float] = []
    results = []
    for value in falling.tolist():
        place = bisect_right(tops, value)
        if place == len(tops):
            tops.append(value)
        else:
            tops[place] = value
        results.append(place)
    return np.array(results[::-1], dtype=np.int64)


def _search(points: Floats) -> Places:
    """Fronts of different points, sorted upwards, of any number of objectives."""
    members: list[Floats] = []
    sizes: list[int] = []
    values = np.zeros(len(points), dtype=np.int64)
    for place in range(len(points) - 1, -1, -1):
        point = points[place]
        low, high = 0, len(members)
        while low < high:
            middle = (low + high) // 2
            if (members[middle][: sizes[middle]] >= point).all(axis=1).any():
                low = middle + 1
            else:
                high = middle
        if low == len(members):
            members.append(np.empty((4, points.shape[1])))
            sizes.append(0)
        if sizes[low] == len(members[low]):
            members[low] = np.concatenate([members[low], np.empty_like(members[low])])
        members[low][sizes[low]] = point
        sizes[low] += 1
        values[place] = low
    return values


def crowding(values: Floats) -> tuple[Places, Floats]:
    """Crowding distances in one front (Deb et al. 2002, section III-B).

    d starts at 0. For each objective in turn the points are sorted upwards; when all are equal it
    adds nothing; else the two ends get infinity, and each inner point
    (next value - value before) / (largest - smallest).

    The sorts are stable, each begins with the order that the one before left, and so does the last
    one, by falling distance. So with two objectives, of equal distances that with the smaller
    second objective comes first, and equal points stay in their order.

    Args:
        values: points of one front x objectives.

    Returns:
        The places of the points by falling distance, and their distances in the given order.
    """
    distances = np.zeros(len(values))
    order = np.arange(len(values))
    for column in values.T:
        order = order[np.argsort(column[order], kind="stable")]
        ranked = column[order]
        scale = ranked[-1] - ranked[0]
        if scale == 0:
            continue
        distances[order[[0, -1]]] = np.inf
        distances[order[1:-1]] += (ranked[2:] - ranked[:-2]) / scale
    return order[np.argsort(-distances[order], kind="stable")], distances


def choose(values: Floats, count: int) -> tuple[Places, Places, Floats]:
    """Choose points front by front; the first front that does not fit, by crowding distance.

    Args:
        values: points x objectives.
        count: how many.

    Returns:
        The places of the chosen points, sorted; the front of each point; its crowding distance,
        NaN outside of the front that was cut.
    """
    numbers = fronts(values)
    sums = np.cumsum(np.bincount(numbers)) if len(values) else np.zeros(0, dtype=np.int64)
    number = int(np.searchsorted(sums, count, side="right"))
    distances = np.full(len(values), np.nan)
    chosen = np.flatnonzero(numbers < number)
    if number < len(sums) and count > len(chosen):
        cut = np.flatnonzero(numbers == number)
        order, distances[cut] = crowding(values[cut])
        chosen = np.concatenate([chosen, cut[order[: count - len(chosen)]]])
    return np.sort(chosen), numbers, distances
