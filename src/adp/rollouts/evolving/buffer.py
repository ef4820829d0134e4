"""The buffer of a task: what it began with, and what was made of it, in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from adp.rollouts.evolving.lineage import INITIAL, NOT_MADE
from adp.rollouts.evolving.selection import Standing, select_best


@dataclass(frozen=True)
class BufferEntry:
    """A trajectory of a buffer, or that it could not be made.

    Attributes:
        trajectory_id: its id.
        attempt: its place: the same for the same task, round and operator.
        error_type: why it is no trajectory to go on with; None when it is.
        stop_reason: why it ended.
        error_message: that in a sentence.
        lineage: its `adp.rollouts.evolving.lineage`.
    """

    trajectory_id: str
    attempt: int
    error_type: str | None
    stop_reason: str | None
    error_message: str | None
    lineage: dict[str, Any]

    @property
    def is_member(self) -> bool:
        """Whether it is a trajectory that was judged."""
        return self.error_type is None

    @property
    def is_failed(self) -> bool:
        """Whether something broke that is no fault of the models' answers."""
        return self.error_type is not None and self.error_type != NOT_MADE

    @property
    def round(self) -> int:
        """The round that it was made in; 0 for what the buffer began with."""
        return int(self.lineage.get("round") or 0)

    @property
    def standing(self) -> Standing:
        """What selection looks at."""
        quality = self.lineage.get("quality") or 0.0
        return Standing(float(quality), int(self.lineage.get("calls") or 0))

    @property
    def is_correct(self) -> bool:
        """Whether it is right; what nobody could judge counts as not right."""
        return self.lineage.get("correct") is True


@dataclass
class Buffer:
    """The entries of a task.

    Attributes:
        entries: last tries by attempt.
        first_is_used: see `select_best`.
    """

    entries: dict[int, BufferEntry] = field(default_factory=dict)
    first_is_used: bool = False

    def add(self, entry: BufferEntry) -> None:
        """Take an entry in; a later try takes the place of an earlier one."""
        self.entries[entry.attempt] = entry

    @property
    def initial(self) -> Sequence[BufferEntry]:
        """What it began with."""
        return [item for item in self._ordered() if item.lineage.get("operator") == INITIAL]

    def members(self, before: int) -> Sequence[BufferEntry]:
        """The trajectories that were made before a round, in order."""
        return [item for item in self._ordered() if item.is_member and item.round < before]

    def parent(self, number: int) -> BufferEntry | None:
        """What a round starts from; None when there is no trajectory.

        A round that has begun keeps what it began with, also when an earlier entry was made again.
        """
        members = self.members(number)
        known = {item.trajectory_id: item for item in members}
        for item in self._ordered():
            if item.round == number and item.lineage.get("parent") in known:
                return known[item.lineage["parent"]]
        if not members:
            return None
        places = {item.trajectory_id: place for place, item in enumerate(members)}
        earlier = (self.parent(before) for before in range(1, number))
        used = {places[item.trajectory_id] for item in earlier if item is not None}
        standings = [item.standing for item in members]
        return members[select_best(standings, used, first_is_used=self.first_is_used)]

    def _ordered(self) -> list[BufferEntry]:
        return [self.entries[attempt] for attempt in sorted(self.entries)]
