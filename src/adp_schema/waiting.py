"""What the threads of a writer of a growing store wait for, and when its journal is full."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass

from adp_schema.journal import Encoded
from adp_schema.journal_file import JournalFile


@dataclass(frozen=True)
class JournalLimits:
    """When a journal is closed: at some bytes, number of trajectories, or age in seconds."""

    size: int
    count: int | None
    seconds: float | None

    def reached(self, journal: JournalFile, size: int, count: int) -> bool:
        """Whether a journal is to be closed.

        Args:
            journal: the open journal.
            size: bytes that are to be written to it still.
            count: number of trajectories that are to be.
        """
        age = time.monotonic() - journal.since
        return (
            journal.size + size >= self.size
            or (self.count is not None and journal.count + count >= self.count)
            or (self.seconds is not None and age >= self.seconds)
        )


@dataclass
class Waiting:
    """What one thread wants to append, and what became of it."""

    items: list[Encoded]
    added: int = 0
    error: Exception | None = None
    done: bool = False


def fail(batch: Iterable[Waiting], error: Exception) -> None:
    """Let all of them end with an error."""
    for waiting in batch:
        waiting.error, waiting.done = error, True
