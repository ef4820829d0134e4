"""The preference pairs of a store, by the trajectories that they name."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from adp_schema.model import Pair, Trajectory
from adp_schema.plain_arrays import empty_table
from adp_schema.reader import to_models
from adp_schema.tables import TABLES

_SIDES = ("chosen_id", "context_id", "rejected_id")


class RecordPairs:
    """Which pairs name which trajectory, and which of them no record has accounted for.

    Args:
        rows: rows of the table ``pairs``; none by default.
    """

    def __init__(self, rows: pa.Table | None = None) -> None:
        self._rows = empty_table(TABLES["pairs"].schema) if rows is None else rows
        self._numbers: dict[str, list[int]] = {}
        sides = zip(*(self._rows[name].to_pylist() for name in _SIDES), strict=True)
        for number, names in enumerate(sides):
            for name in dict.fromkeys(names):
                if name is not None:
                    self._numbers.setdefault(name, []).append(number)
        self._open = set(range(self._rows.num_rows))

    def hang(self, trajectory: Trajectory) -> None:
        """Give a trajectory and its branches the pairs that name them."""
        numbers = self._numbers.get(trajectory.trajectory_id or "")
        if numbers:
            trajectory.pairs = to_models(self._rows.take(numbers), Pair)
        for branch in trajectory.branches:
            self.hang(branch)

    def settle(self, trajectory: Trajectory) -> Iterator[tuple[int, Pair]]:
        """The pairs of a trajectory that are not settled yet, with their places in its list."""
        numbers = self._numbers.get(trajectory.trajectory_id or "", ())
        for index, (number, pair) in enumerate(zip(numbers, trajectory.pairs, strict=True)):
            if number in self._open:
                self._open.discard(number)
                yield index, pair

    def left(self) -> int:
        """How many pairs are not settled: no trajectory that they name was written."""
        return len(self._open)


def is_rejected(trajectory: Trajectory) -> bool:
    """Whether pairs reject the whole of a trajectory, and none chooses any of it.

    A pair of single steps rejects a whole trajectory when the agent has no other step in it.
    """
    name, rejected = trajectory.trajectory_id, False
    for pair in trajectory.pairs:
        if pair.chosen_id == name:
            return False
        steps = [step.step for step in trajectory.steps if step.source == "agent"]
        rejected = rejected or all(is_rejected_step(pair, name, step) for step in steps)
    return rejected


def is_rejected_step(pair: Pair, trajectory_id: str | None, step: int | None) -> bool:
    """Whether a step of a trajectory is on the rejected side of a pair."""
    if pair.rejected_id != trajectory_id:
        return False
    after_first = pair.rejected_from is None or (step or 0) >= pair.rejected_from
    return after_first and (pair.rejected_to is None or (step or 0) < pair.rejected_to)
