"""The order in which rows are streamed: a list of windows, each with an order of its own.

It follows from the numbers of rows, the seed and the epoch alone, so each part of it can be given
by any process, and any place in it can be gone to at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from adp.core.stable_random import draws

WINDOW_GROUPS = 8
"""Row groups that are shuffled together at most: a quarter of a GB of content."""

Places = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True)
class RowWindow:
    """Row groups whose rows are given together.

    Attributes:
        groups: numbers of the row groups.
        rows: rows of each of them.
        begin: place of its first row among all that are streamed.
    """

    groups: tuple[int, ...]
    rows: tuple[int, ...]
    begin: int

    @property
    def end(self) -> int:
        """The place after its last row."""
        return self.begin + sum(self.rows)


@dataclass(frozen=True)
class RowOrder:
    """What decides on the order.

    Attributes:
        buffer: rows that are shuffled together at least; 0 means the order of the store.
        seed: the seed.
        epoch: number of the pass, from 0.
    """

    buffer: int = 0
    seed: int = 0
    epoch: int = 0

    def windows(self, rows: Sequence[int]) -> list[RowWindow]:
        """All windows in order.

        Args:
            rows: rows of each row group.
        """
        groups = range(len(rows)) if not self.buffer else self._shuffled(len(rows), "").tolist()
        result: list[RowWindow] = []
        begin, members = 0, list[int]()
        for group in groups:
            if rows[group]:
                members.append(group)
            counts = tuple(rows[member] for member in members)
            if members and (sum(counts) >= self.buffer or len(members) == WINDOW_GROUPS):
                result.append(RowWindow(tuple(members), counts, begin))
                begin, members = begin + sum(counts), []
        if members:
            counts = tuple(rows[member] for member in members)
            result.append(RowWindow(tuple(members), counts, begin))
        return result

    def inside(self, window: RowWindow) -> Places:
        """The order of the rows of a window: their numbers, counted over its row groups."""
        count = sum(window.rows)
        return self._shuffled(count, str(window.begin)) if self.buffer else np.arange(count)

    def _shuffled(self, count: int, name: str) -> Places:
        """The numbers below ``count``, shuffled: sorted by SplitMix64 (Steele et al., 2014)."""
        start = draws(self.seed, [f"{self.epoch}\0{name}"], "stream")[0]
        mixed = start + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
        return np.argsort(mixed ^ (mixed >> np.uint64(31)), kind="stable")
