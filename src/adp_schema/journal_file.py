"""The journal that a writer has open: appended to, read on, closed by the next one."""

from __future__ import annotations

import os
import time
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from adp_schema.journal import (
    FIRST,
    JournalEntry,
    JournalPosition,
    check_closed,
    journal_path,
    line_of,
    sync_folder,
    whole_lines,
)


class JournalFile:
    """A journal that is open for appending. Its methods are called by who holds the lock.

    Args:
        root: folder of the store.
        index: number of the journal.

    Attributes:
        index: number of the journal.
        size: bytes of the texts in it, as far as they were read.
        count: number of trajectories in it, as far as they were read.
        since: when it was opened, by the monotonic clock.

    Raises:
        FileNotFoundError: it is a shard by now, or not there yet.
    """

    def __init__(self, root: Path, index: int) -> None:
        self.index = index
        self.size = 0
        self.count = 0
        self.since = time.monotonic()
        self._root = root
        self._path = journal_path(root, index)
        self._file = self._path.open("r+b", buffering=0)
        self._end = FIRST
        self._torn = False  # something follows the whole lines
        self._synced = True  # False when lines of others may not be safe on the disk yet

    def read_on(self) -> list[JournalEntry]:
        """What was appended since the last reading.

        Raises:
            StoreError: the file is damaged.
        """
        self._file.seek(self._end.byte)
        data = self._file.read()
        size = self._end.byte + len(data)
        lines, self._end = whole_lines(self._path, data, self._end)
        self._torn = self._end.byte < size
        self._synced = self._synced and not lines
        entries = [entry for line in lines for entry in line.entries]
        self._count(entries)
        return entries

    def write(self, added: Collection[tuple[JournalEntry, bytes]]) -> None:
        """Append a line and wait until it is on the disk, with all that others wrote before.

        Raises:
            OSError: nothing of it stays.
        """
        if not added and self._synced:
            return
        data = line_of(added) if added else b""
        try:
            self._cut()
            self._file.seek(self._end.byte)
            left = memoryview(data)
            while left:
                left = left[self._file.write(left) :]
            os.fsync(self._file.fileno())
        except OSError:
            self._torn = True
            with suppress(OSError):
                self._file.truncate(self._end.byte)
            raise
        self._synced = True
        self._end = JournalPosition(self._end.byte + len(data), self._end.line + bool(data))
        self._count([entry for entry, _ in added])

    def _cut(self) -> None:
        """Cut off the line that a kill or a crash left unfinished."""
        if self._torn:
            self._file.truncate(self._end.byte)
            self._torn = self._synced = False

    def _count(self, entries: list[JournalEntry]) -> None:
        self.size += sum(entry.size for entry in entries)
        self.count += len(entries)

    def is_current(self) -> bool:
        """Whether all that was appended, by anyone, was read and is safe; this needs no lock."""
        size = os.fstat(self._file.fileno()).st_size
        return self._synced and size == self._end.byte and not self.is_closed()

    def is_closed(self) -> bool:
        """Whether the next journal was begun: it is there, or this one became a shard and went.

        Journals go in their order. So one that is still there while the next one is not is the
        last one.
        """
        return self.is_gone() or journal_path(self._root, self.index + 1).exists()

    def is_gone(self) -> bool:
        """Whether it was removed: it became a shard, or somebody else did it."""
        return os.fstat(self._file.fileno()).st_nlink == 0

    def check_closed(self) -> None:
        """Check that all of it was read, when the next one was begun.

        Raises:
            StoreError: it does not end with a whole line.
        """
        check_closed(self._path, self._end, os.fstat(self._file.fileno()).st_size)

    def begin_next(self) -> bool:
        """Begin the next journal, which closes this one. Without room for it, nothing is done.

        From then on this one is whole to its last byte, also after a crash of the machine.
        """
        path = journal_path(self._root, self.index + 1)
        try:
            self._cut()
            self.write([])
            path.open("xb").close()
        except OSError:
            return False
        sync_folder(path.parent)
        return True

    def close(self) -> None:
        """Close the file."""
        self._file.close()
