"""Facility location: rows such that every row has a similar one among them.

The objective is the sum, over all rows, of the highest cosine with a selected row (at least 0). It
is submodular, so greedy reaches 1 - 1/e of the best value (Nemhauser, Wolsey and Fisher, 1978, "An
analysis of approximations for maximizing submodular set functions").

Up to `DENSE` rows all similarities are held. The gains of all rows are kept up to date: a selected
row changes them only by the rows that are nearer to it than to all before, and those soon are few.
At the end each selected row is exchanged once, in turn, for the row that adds the most in its
place (the interchange of the same paper); that never lowers the objective and often adds 1 %.

Above that each row knows only its `NEIGHBOURS` most similar rows and counts nothing for others, as
in Wei, Iyer and Bilmes, 2014, "Fast multi-stage submodular maximization". There an old gain is an
upper bound, and only the row on top of a heap is computed again (lazy greedy; Minoux, 1978).

In the search, vectors are rounded to multiples of 1 / 4000 and cosines to whole numbers whose sum
stays below 2**24. So float32 adds them without error in any order, and ties are ties, on every
machine. The objective of what was selected is computed with the vectors as they are.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import Any

import numpy as np

from adp.curation.ops.coreset.greedy import GreedySelection
from adp.curation.texts.vectors import in_threads, one_thread

Array = np.ndarray[Any, Any]

DENSE = 10_000
"""Up to this number of rows all similarities are held: 4 bytes each."""

NEIGHBOURS = 64
"""Above that, neighbours that a row knows, itself included."""

_WHOLE = (1 << 24) - 1
"""float32 adds whole numbers without error up to here."""

_COARSE = 4000
"""Numbers of a vector are multiples of 1 / 4000: products of two vectors are below 2**24, in
multiples of 1 / 4000**2."""

_BLOCK = 256
_CHANGED = 32
_SPAN = 64
"""Columns of which the search for neighbours first takes the maximum."""


def facility_location(
    matrix: Array, size: int, *, dense: int = DENSE, exchange: bool = True
) -> GreedySelection:
    """Select rows; ties go to the lower row.

    Args:
        matrix: n x d, as `adp.curation.texts.vectors.unit` makes them.
        size: how many to select; at most as many as there are.
        dense: up to this number of rows all similarities are held.
        exchange: exchange selected rows at the end; only where all similarities are held.

    Returns:
        The rows; their gain is what each added to the objective, of the rounded cosines.
    """
    size = min(size, len(matrix))
    if not size:
        return GreedySelection(np.zeros(0, np.int64), np.zeros(0))
    if len(matrix) > dense:
        return _lazy(neighbours(matrix, NEIGHBOURS), size)
    with one_thread():
        search = _Dense(matrix)
    search.greedy(size)
    if exchange and size < len(matrix):
        search.exchange()
    return GreedySelection(np.array(search.rows, np.int64), search.added())


def coarse(matrix: Array) -> Array:
    """The vectors as whole numbers: multiples of 1 / 4000."""
    array: Array = np.rint(matrix * np.float32(_COARSE)).astype(np.float32)
    return array


class _Dense:
    """Selection with all similarities.

    Attributes:
        table: n x n similarities, whole numbers from 0 to ``scale``.
        best: for each row its highest similarity to a selected row.
        gains: for each row what it would add; -inf for selected rows.
        rows: the selected rows.
    """

    def __init__(self, matrix: Array) -> None:
        numbers = coarse(matrix)
        self.scale = float(min(_WHOLE // len(matrix), _COARSE * _COARSE))
        self.table = numbers @ numbers.T
        factor = np.float32(self.scale / (_COARSE * _COARSE))
        for start in range(0, len(matrix), _BLOCK):
            block = self.table[start : start + _BLOCK]
            block *= factor
            np.rint(block, out=block)
            np.maximum(block, 0, out=block)
        self.best = np.zeros(len(matrix), np.float32)
        self.gains = self.table.sum(axis=0)
        self.rows: list[int] = []
        self._space = np.empty((_CHANGED, len(matrix)), np.float32)

    def greedy(self, size: int) -> None:
        """Select so many rows."""
        for _ in range(size):
            row = int(self.gains.argmax())
            self.rows.append(row)
            self._raise(row)

    def exchange(self) -> None:
        """Take each selected row out, in turn, and put in the row that adds the most."""
        held = self.table[self.rows]
        for place, row in enumerate(self.rows):
            lost = np.flatnonzero(held[place] == self.best)
            rest = held[:, lost]
            rest[place] = 0
            second = rest.max(axis=0)
            self._shift(lost, second, self.best[lost], 1)
            self.best[lost] = second
            gain = self._gain(row)
            new = int(self.gains.argmax())
            if not self.gains[new] > gain:
                new = row
            self.rows[place] = new
            held[place] = self.table[new]
            self._raise(new)
            if new != row:
                self.gains[row] = self._gain(row)

    def added(self) -> Array:
        """What each selected row adds to those before it, as a cosine."""
        best = np.zeros_like(self.best)
        results = []
        for row in self.rows:
            rise = np.maximum(self.table[row] - best, 0)
            results.append(float(rise.sum()) / self.scale)
            best += rise
        return np.array(results)

    def _gain(self, row: int) -> np.float32:
        gain: np.float32 = np.maximum(self.table[row] - self.best, 0).sum()
        return gain

    def _raise(self, row: int) -> None:
        """Bring ``best`` and ``gains`` up to date with a selected row."""
        similar = self.table[row]
        nearer = np.flatnonzero(similar > self.best)
        self._shift(nearer, self.best[nearer], similar[nearer], -1)
        self.best[nearer] = similar[nearer]
        self.gains[row] = -np.inf

    def _shift(self, rows: Array, low: Array, high: Array, sign: int) -> None:
        """Change the gains: ``best`` of some rows goes from low to high, or back when sign is 1."""
        for start in range(0, len(rows), _CHANGED):
            part = slice(start, start + _CHANGED)
            block = self._space[: len(rows[part])]
            np.take(self.table, rows[part], axis=0, out=block, mode="clip")
            np.clip(block, low[part, None], high[part, None], out=block)
            change = block.sum(axis=0)
            change -= low[part].sum()
            self.gains += change if sign > 0 else -change


@dataclass
class NearRows:
    """Which rows have a row among their most similar ones.

    Attributes:
        owners: row r is a neighbour of ``owners[starts[r]:starts[r + 1]]``.
        values: with these cosines, times 4000**2: whole numbers.
        starts: see there.
    """

    owners: Array
    values: Array
    starts: Array


def neighbours(matrix: Array, most: int) -> NearRows:
    """For each row find its most similar rows; of equal ones the lower."""
    numbers = coarse(matrix)

    def part(start: int) -> tuple[Array, Array, Array]:
        products = numbers[start : start + _BLOCK] @ numbers.T
        row, column = np.nonzero(products >= _limits(products, most)[:, None])
        value = products[row, column]
        order = np.lexsort((column, -value, row))
        row, column, value = row[order], column[order], value[order]
        rank = np.arange(len(row)) - np.searchsorted(row, row)
        keep = (rank < most) & (value > 0)
        return (row[keep] + start).astype(np.int32), column[keep], value[keep]

    result = in_threads(part, range(0, len(matrix), _BLOCK))
    rows, columns, values = (np.concatenate(parts) for parts in zip(*result, strict=True))
    order = np.argsort(columns, kind="stable")
    starts = np.searchsorted(columns[order], np.arange(len(matrix) + 1))
    return NearRows(rows[order], values[order].astype(np.float64), starts)


def _limits(products: Array, most: int) -> Array:
    """A value that at least ``most`` numbers of each row reach, and few more.

    The maxima of spans of columns stand for all columns: as many spans as neighbours reach it.
    """
    full = products.shape[1] // _SPAN * _SPAN
    tops = products[:, :full].reshape(len(products), -1, _SPAN).max(axis=2)
    if tops.shape[1] < most:
        tops = products
    place = max(tops.shape[1] - most, 0)
    limit: Array = np.partition(tops, place, axis=1)[:, place]
    return limit


def _lazy(near: NearRows, size: int) -> GreedySelection:
    """Lazy greedy over neighbours."""
    best = np.zeros(len(near.starts) - 1)
    sums = np.append(0, np.cumsum(near.values))
    heap = [(-value, row) for row, value in enumerate(np.diff(sums[near.starts]).tolist())]
    heapq.heapify(heap)
    fresh = np.zeros(len(best), np.int64)
    rows: list[int] = []
    gains: list[float] = []
    while len(rows) < size:
        value, row = heap[0]
        at = slice(near.starts[row], near.starts[row + 1])
        owners = near.owners[at]
        if fresh[row] == len(rows):
            heapq.heappop(heap)
            best[owners] = np.maximum(best[owners], near.values[at])
            rows.append(row)
            gains.append(-value)
        else:
            fresh[row] = len(rows)
            gain = float(np.maximum(near.values[at] - best[owners], 0).sum())
            heapq.heapreplace(heap, (-gain, row))
    return GreedySelection(np.array(rows, np.int64), np.array(gains) / _COARSE**2)
