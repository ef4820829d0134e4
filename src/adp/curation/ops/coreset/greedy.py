"""Greedy selection by distance: k-center, and maximal marginal relevance.

Both take, again and again, the row with the highest score, and a row's score only falls when more
is selected. So an old score is an upper bound, and most rows need no new one: a pass brings the 512
rows with the highest bounds up to date, and takes rows from them for as long as the best of them
is above the bounds of all others. What is selected is exactly what plain greedy selects, ties
included; the products are those of blocks of rows instead of single ones, and many are never made.
(The idea of Minoux, 1978, for submodular functions.)

- k-center: Gonzalez, 1985, "Clustering to minimize the maximum intercluster distance": the row
  that is farthest from all that are selected. Its radius is at most twice the best one.
- MMR: Carbonell and Goldstein, 1998, "The use of MMR".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from adp.curation.texts.vectors import BLOCK, GRID, one_thread, squares

Array = np.ndarray[Any, Any]

BATCH = 512
"""Rows that a pass looks at."""

_GROUP = 256
"""Rows of a pass that are multiplied at a time; those that lack the same centers go together."""

_MOST = 4
"""With more selected rows than this that may be nearest, for a row, all are computed exactly."""


@dataclass
class GreedySelection:
    """What was selected.

    Attributes:
        rows: numbers of the rows, in the order of selection.
        gains: what each added, in the measure of the method; NaN where there is no such thing.
    """

    rows: Array
    gains: Array


def k_center(matrix: Array, size: int, given: Array | None = None) -> GreedySelection:
    """Select the rows that are farthest from all selected before them.

    The first is the row nearest to the mean, unless rows are given. Ties go to the lower row.

    Args:
        matrix: n x d, as `adp.curation.texts.vectors.unit` makes them.
        size: how many to select, besides the given ones; at most as many as there are.
        given: rows that are selected already.

    Returns:
        The rows; their gain is the distance from all before, NaN for the first of all.
    """
    start = np.zeros(0, np.int64) if given is None else given
    size = min(size, len(matrix) - len(start))
    if size <= 0:
        return GreedySelection(np.zeros(0, np.int64), np.zeros(0))
    search = _Search(matrix, squares(matrix), factor=2.0, near=np.full(len(matrix), np.inf))
    if len(start):
        search.select(start)
        rows, scores = search.run(size)
        return GreedySelection(rows, np.sqrt(np.maximum(scores, 0)))
    first = _central(matrix)
    search.begin(first)
    rows, scores = search.run(size - 1)
    gains = np.append(np.nan, np.sqrt(np.maximum(scores, 0)))
    return GreedySelection(np.append(first, rows), gains)


def mmr(matrix: Array, size: int, relevance: Array, weight: float) -> GreedySelection:
    """Select rows that are relevant and unlike those selected before.

    The score is ``weight * relevance - (1 - weight) * s``, where s is the highest cosine with a
    selected row, at least 0. Ties go to the lower row.

    Args:
        matrix: n x d, as `adp.curation.texts.vectors.unit` makes them.
        size: how many to select; at most as many as there are.
        relevance: a number from 0 to 1 for each row.
        weight: from 0 (only unlike) to 1 (only relevant).

    Returns:
        The rows; their gain is the score.
    """
    count = len(matrix)
    search = _Search(
        matrix,
        np.full(count, 0.5),
        factor=1.0,
        near=np.ones(count),
        bonus=weight * relevance,
        weight=1 - weight,
    )
    rows, scores = search.run(min(size, count))
    return GreedySelection(rows, scores - (1 - weight))


def _central(matrix: Array) -> int:
    """The row nearest to the mean; the mean is rounded to the grid, so that this is exact too."""
    total = np.zeros(matrix.shape[1])
    for start in range(0, len(matrix), BLOCK):
        total += matrix[start : start + BLOCK].sum(axis=0, dtype=np.float64)
    length = float(np.sqrt((total * total).sum()))
    mean = np.rint(total / (length or 1.0) * GRID) / GRID
    best, result = -np.inf, 0
    for start in range(0, len(matrix), BLOCK):
        products = matrix[start : start + BLOCK].astype(np.float64) @ mean
        place = int(products.argmax())
        if products[place] > best:
            best, result = float(products[place]), start + place
    return result


class _Search:
    """The state of a selection.

    The distance of two rows is ``offset + offset - factor * product``: with the squared lengths
    and 2 the squared distance, with 0.5 and 1 one less the cosine. ``near`` is the smallest
    distance to a selected row, of those that the row has seen; the score is ``bonus + weight *
    near``. Selected rows have the score -inf.
    """

    def __init__(
        self,
        matrix: Array,
        offset: Array,
        *,
        factor: float,
        near: Array,
        bonus: Array | None = None,
        weight: float = 1.0,
    ) -> None:
        self.matrix = matrix
        self.offset = offset
        self.factor = factor
        self.near = near
        self.bonus = np.zeros(len(matrix)) if bonus is None else bonus
        self.weight = weight
        self.score = self.bonus + weight * near
        self.seen = np.zeros(len(matrix), np.int64)
        self.slack = 1e-4 + 8e-7 * matrix.shape[1]
        self.centers = np.empty((64, matrix.shape[1]), np.float32)
        self.center_offsets = np.empty(64)
        self.count = 0

    def select(self, rows: Array) -> None:
        """Take rows, and bring all rows up to date."""
        for row in rows.tolist():
            self._take(row)
        for start in range(0, len(self.matrix), BLOCK):
            self._update(np.arange(start, min(start + BLOCK, len(self.matrix))))
        self.score = self.bonus + self.weight * self.near
        self.score[rows] = -np.inf

    def begin(self, row: int) -> None:
        """Take a row, and bound the scores of the others; that is faster than to compute them."""
        self._take(row)
        for start in range(0, len(self.matrix), BLOCK):
            part = slice(start, start + BLOCK)
            product = self.matrix[part] @ self.matrix[row]
            gap = self.offset[row] - self.factor * product + self.offset[part]
            self.near[part] = gap + self.slack
        self.score = self.bonus + self.weight * self.near
        self.score[row] = -np.inf

    def run(self, size: int) -> tuple[Array, Array]:
        """Select more rows.

        Returns:
            The rows and the scores that they were selected for.
        """
        with one_thread():
            return self._run(size)

    def _run(self, size: int) -> tuple[Array, Array]:
        rows: list[int] = []
        scores: list[float] = []
        while len(rows) < size:
            places, bound, rival = self._highest()
            vectors = self.matrix[places].astype(np.float64)
            self._update(places)
            near, offsets = self.near[places], self.offset[places]
            bonus, live = self.bonus[places], np.isfinite(self.score[places])
            score = np.where(live, bonus + self.weight * near, -np.inf)
            while len(rows) < size:
                best = int(score.argmax())
                if (score[best], -places[best]) < (bound, -rival):
                    break
                rows.append(int(places[best]))
                scores.append(float(score[best]))
                self._take(rows[-1])
                product = vectors @ vectors[best]
                np.minimum(near, offsets[best] - self.factor * product + offsets, out=near)
                live[best] = False
                score = np.where(live, bonus + self.weight * near, -np.inf)
            self.near[places], self.score[places] = near, score
            self.seen[places] = self.count
        return np.array(rows, np.int64), np.array(scores)

    def _take(self, row: int) -> None:
        if self.count == len(self.centers):
            self.centers = np.concatenate([self.centers, np.empty_like(self.centers)])
            self.center_offsets = np.concatenate([self.center_offsets, self.center_offsets])
        self.centers[self.count] = self.matrix[row]
        self.center_offsets[self.count] = self.offset[row]
        self.count += 1

    def _highest(self) -> tuple[Array, float, int]:
        """The rows with the highest scores, sorted; and the score and number of the next one."""
        score = self.score
        if len(score) <= BATCH:
            return np.arange(len(score)), -np.inf, len(score)
        bound = np.partition(score, len(score) - BATCH)[len(score) - BATCH]
        above = np.flatnonzero(score > bound)
        equal = np.flatnonzero(score == bound)
        room = BATCH - len(above)
        places = np.sort(np.append(above, equal[:room]))
        if len(equal) > room:
            return places, float(bound), int(equal[room])
        below = np.where(score < bound, score, -np.inf)
        rival = int(below.argmax())
        return places, float(below[rival]), rival

    def _update(self, places: Array) -> None:
        """Compare rows with the selected ones that they have not seen."""
        seen = self.seen[places]
        order = np.argsort(seen, kind="stable")
        group = _GROUP if len(places) <= BATCH else len(places)
        for start in range(0, len(places), group):
            part = order[start : start + group]
            for first in range(int(seen[part[0]]), self.count, BLOCK):
                self._compare(places[part], first, min(first + BLOCK, self.count))
        self.seen[places] = self.count

    def _compare(self, places: Array, first: int, last: int) -> None:
        """Compare rows with some selected ones.

        float32 says which of them may be the nearest, with room for its error; only the distances
        to those are computed exactly.
        """
        vectors, centers = self.matrix[places], self.centers[first:last]
        offsets = self.center_offsets[first:last]
        gap = vectors @ centers.T
        gap *= -self.factor
        gap += offsets.astype(np.float32)
        limit = np.minimum(gap.min(axis=1), self.near[places] - self.offset[places]) + self.slack
        candidates = gap <= limit.astype(np.float32)[:, None]
        # Numpy finds the few places in one dimension many times faster than in two.
        row, center = np.divmod(np.flatnonzero(candidates), last - first)
        if len(row) > _MOST * len(places):
            exact = vectors.astype(np.float64) @ centers.astype(np.float64).T
            nearest = (offsets - self.factor * exact).min(axis=1)
        else:
            pairs = np.einsum("ij,ij->i", vectors[row].astype(np.float64), centers[center])
            starts = np.flatnonzero(np.diff(row, prepend=-1))
            nearest = np.full(len(places), np.inf)
            if len(starts):
                some = offsets[center] - self.factor * pairs
                nearest[row[starts]] = np.minimum.reduceat(some, starts)
        self.near[places] = np.minimum(self.near[places], nearest + self.offset[places])
