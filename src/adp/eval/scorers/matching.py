"""Pairing calls that were made with calls that are expected."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

_First = TypeVar("_First")
_Second = TypeVar("_Second")

_MOST = 64
"""Size up to which the best assignment is sought; the time grows with its third power."""


def greedy(
    first: Sequence[_First], second: Sequence[_Second], fit: Callable[[_First, _Second], bool]
) -> list[tuple[int, int]]:
    """Give each of the first, in order, the earliest of the second that fits and is free."""
    taken: set[int] = set()
    pairs = []
    for i, result in enumerate(first):
        for j, other in enumerate(second):
            if j not in taken and fit(result, other):
                taken.add(j)
                pairs.append((i, j))
                break
    return pairs


def bipartite(
    first: Sequence[_First], second: Sequence[_Second], fit: Callable[[_First, _Second], bool]
) -> list[tuple[int, int]]:
    """Pair as many as can be paired, by augmenting paths (Kuhn 1955).

    Returns:
        Pairs of indices, by the first.
    """
    edges = [[j for j, other in enumerate(second) if fit(item, other)] for item in first]
    owner: dict[int, int] = {}
    for i in range(len(first)):
        _augment(i, edges, owner)
    return sorted((i, j) for j, i in owner.items())


def _augment(start: int, edges: Sequence[Sequence[int]], owner: dict[int, int]) -> None:
    """Look for a path to a free one, breadth first, and swap along it."""
    came: dict[int, int] = {}
    queue = [start]
    for i in queue:
        for j in edges[i]:
            if j in came:
                continue
            came[j] = i
            if j in owner:
                queue.append(owner[j])
                continue
            while True:
                i, j = came[j], j
                before = next((k for k, o in owner.items() if o == i), None)
                owner[j] = i
                if before is None:
                    return
                j = before


def assign(weights: Sequence[Sequence[float]]) -> list[tuple[int, int]]:
    """Pairs of rows and columns with the greatest sum of weights.

    Up to 64 rows and columns this is the optimum (Hungarian method with potentials); beyond, the
    largest weights are taken first. Pairs of weight 0 are left out.

    Args:
        weights: a row for each of the first, a column for each of the second; not negative.
    """
    if not weights or not weights[0]:
        return []
    if len(weights) > len(weights[0]):
        turned = assign(list(zip(*weights, strict=True)))
        return sorted((i, j) for j, i in turned)
    pairs = _largest(weights) if len(weights[0]) > _MOST else _hungarian(weights)
    return [(i, j) for i, j in pairs if weights[i][j] > 0]


def _largest(weights: Sequence[Sequence[float]]) -> list[tuple[int, int]]:
    ordered = sorted(
        (-weight, i, j) for i, row in enumerate(weights) for j, weight in enumerate(row) if weight
    )
    rows: set[int] = set()
    columns: set[int] = set()
    pairs = []
    for _, i, j in ordered:
        if i not in rows and j not in columns:
            rows.add(i)
            columns.add(j)
            pairs.append((i, j))
    return sorted(pairs)


def _hungarian(weights: Sequence[Sequence[float]]) -> list[tuple[int, int]]:
    """The Hungarian method for at most as many rows as columns (Munkres 1957), O(n^2 m)."""
    size, width = len(weights), len(weights[0])
    row_potential, column_potential = [0.0] * size, [0.0] * (width + 1)
    owner: list[int | None] = [None] * (width + 1)  # the last column is where a search begins
    for row in range(size):
        owner[width] = row
        slack, came = [float("inf")] * width, [width] * width
        used: set[int] = set()
        column = width
        while owner[column] is not None:
            used.add(column)
            i = owner[column]
            assert i is not None
            for j in range(width):
                if j in used:
                    continue
                gap = -weights[i][j] - row_potential[i] - column_potential[j]
                if gap < slack[j]:
                    slack[j], came[j] = gap, column
            nearest = min((j for j in range(width) if j not in used), key=slack.__getitem__)
            delta = slack[nearest]
            for j in used:
                held = owner[j]
                assert held is not None
                row_potential[held] += delta
                column_potential[j] -= delta
            for j in range(width):
                if j not in used:
                    slack[j] -= delta
            column = nearest
        while column != width:
            owner[column] = owner[came[column]]
            column = came[column]
    return sorted((i, j) for j, i in enumerate(owner[:width]) if i is not None)
