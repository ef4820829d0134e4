"""The trajectories of a store, file by file, wherever they stand in the store.

A store that was merged, or that several writers appended to, may hold those of two files in turns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import groupby

import numpy as np

from adp.converters.session_writers.names import NamedRun
from adp_schema.model import Trajectory
from adp_schema.store import Store

NAMING = 3
"""Columns of `NamedRun` that most names are made of."""

FileOf = Callable[[NamedRun], str]
"""The output file of a trajectory."""


class TrajectoryFiles:
    """Which trajectories go into which file.

    Args:
        store: the store; its ids and the names of its files are read once.
        file_of: names the file of a trajectory.
        branches: whether branches are wanted, too.
        columns: how many columns of `NamedRun` the names are made of.

    Attributes:
        names: the files, in the order in which they begin.
        left_out: branches that are not wanted.
    """

    def __init__(
        self, store: Store, file_of: FileOf, *, branches: bool = True, columns: int = NAMING
    ) -> None:
        self._store = store
        names = NamedRun._fields[:columns]
        rows = store.scan("trajectories").select("seq", *{"parent_id", *names}).collect()
        every = rows.height
        if not branches:
            rows = rows.filter(rows["parent_id"].is_null())
        places: dict[str, int] = {}
        numbers = np.empty(rows.height, dtype=np.int32)
        for row, words in enumerate(rows.select(names).iter_rows()):
            numbers[row] = places.setdefault(file_of(NamedRun(*words)), len(places))
        self.names = list(places)
        self._numbers, self._seqs = numbers, rows["seq"].to_numpy()
        changes = int(np.count_nonzero(np.diff(numbers)))
        self._together = rows.height == every and changes < max(len(places), 1)
        self.left_out = every - rows.height

    def __iter__(self) -> Iterator[tuple[str, Iterator[Trajectory]]]:
        """Each file with its trajectories, in the order of the store; branches after parents."""
        return self._in_turn() if self._together else self._gathered()

    def _in_turn(self) -> Iterator[tuple[str, Iterator[Trajectory]]]:
        order = np.argsort(self._seqs, kind="stable")
        seqs, numbers = self._seqs[order], self._numbers[order]

        def name(trajectory: Trajectory) -> str:
            return self.names[int(numbers[np.searchsorted(seqs, trajectory.seq or 0)])]

        return groupby(self._store.trajectories(), name)

    def _gathered(self) -> Iterator[tuple[str, Iterator[Trajectory]]]:
        order = np.argsort(self._numbers, kind="stable")
        ends = np.cumsum(np.bincount(self._numbers))[:-1]
        for name, rows in zip(self.names, np.split(order, ends), strict=True):
            yield name, self._store.some(np.sort(self._seqs[rows]))
