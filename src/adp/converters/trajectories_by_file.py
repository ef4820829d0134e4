"""The trajectories of a store, file by file, wherever they stand in the store.

A store that was merged, or that several writers appended to, may hold those of two files in turns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import groupby

import numpy as np

from adp_schema.model import Trajectory
from adp_schema.store import Store

FileOf = Callable[[str | None, str | None, str], str]
"""The output file of a trajectory, from its source file, its data set and its id."""


class TrajectoryFiles:
    """Which trajectories go into which file.

    Args:
        store: the store; its ids and the names of its files are read once.
        file_of: names the file of a trajectory.
        branches: whether branches are wanted, too.

    Attributes:
        names: the files, in the order in which they begin.
        left_out: branches that are not wanted.
    """

    def __init__(self, store: Store, file_of: FileOf, *, branches: bool = True) -> None:
        self._store = store
        self._file_of = file_of
        columns = ["source_file", "dataset", "trajectory_id"]
        rows = store.scan("trajectories").select("seq", "parent_id", *columns).collect()
        every = rows.height
        if not branches:
            rows = rows.filter(rows["parent_id"].is_null())
        places: dict[str, int] = {}
        numbers = np.empty(rows.height, dtype=np.int32)
        for row, words in enumerate(rows.select(columns).iter_rows()):
            numbers[row] = places.setdefault(file_of(*words), len(places))
        self.names = list(places)
        self._numbers, self._seqs = numbers, rows["seq"].to_numpy()
        changes = int(np.count_nonzero(np.diff(numbers)))
        self._together = rows.height == every and changes < max(len(places), 1)
        self.left_out = every - rows.height

    def __iter__(self) -> Iterator[tuple[str, Iterator[Trajectory]]]:
        """Each file with its trajectories, in the order of the store; branches after parents."""
        return self._in_turn() if self._together else self._gathered()

    def _in_turn(self) -> Iterator[tuple[str, Iterator[Trajectory]]]:
        def name(trajectory: Trajectory) -> str:
            return self._file_of(
                trajectory.source_file, trajectory.dataset, trajectory.trajectory_id or ""
            )

        return groupby(self._store.trajectories(), name)

    def _gathered(self) -> Iterator[tuple[str, Iterator[Trajectory]]]:
        order = np.argsort(self._numbers, kind="stable")
        ends = np.cumsum(np.bincount(self._numbers))[:-1]
        for name, rows in zip(self.names, np.split(order, ends), strict=True):
            yield name, self._store.some(np.sort(self._seqs[rows]))
