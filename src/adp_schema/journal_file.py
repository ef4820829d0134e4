"""The journal that a writer has open: appended to, read on, closed by the next one."""

from __future__ import annotations

import os
import time
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from adp_schema.errors import StoreError
from adp_schema.journal import Entry, damaged, journal_path, line_of, sync_folder, whole_lines


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
        self._file = journal_path(root, index).open("r+b", buffering=0)
        self._end = 0
        self._torn = False  # something follows the whole lines
        self._synced = True  # False when lines of others may not be safe on the disk yet

    def read_on(self) -> list[Entry]:
        """What was appended since the last reading.

        Raises:
            StoreError: the file is damaged.
        """
        self._file.seek(self._end)
        data = self._file.read()
        try:
            lines, used = whole_lines(data)
        except StoreError as error:
            raise damaged(journal_path(self._root, self.index), error) from None
        self._end += used
        self._torn = used < len(data)
        self._synced = self._synced and not lines
        entries = [entry for line in lines for entry in line.entries]
        self._count(entries)
        return entries

    def write(self, added: Collection[tuple[Entry, bytes]]) -> None:
        """Append a line and wait until it is on the disk, with all that others wrote before.

        Raises:
            OSError: nothing of it stays.
        """
        if not added and self._synced:
            return
        data = line_of(added) if added else b""
        try:
            if self._torn:
                self._file.truncate(self._end)
                self._torn = False
            self._file.seek(self._end)
            left = memoryview(data)
            while left:
                left = left[self._file.write(left) :]
            os.fsync(self._file.fileno())
        except OSError:
            self._torn = True
            with suppress(OSError):
                self._file.truncate(self._end)
            raise
        self._synced = True
        self._end += len(data)
        self._count([entry for entry, _ in added])

    def _count(self, entries: list[Entry]) -> None:
        self.size += sum(entry.size for entry in entries)
        self.count += len(entries)

    def is_closed(self) -> bool:
        """Whether the next journal was begun: it is there, or this one became a shard and went.

        Journals go in their order. So one that is still there while the next one is not is the
        last one.
        """
        gone = os.fstat(self._file.fileno()).st_nlink == 0
        return gone or journal_path(self._root, self.index + 1).exists()

    def begin_next(self) -> bool:
        """Begin the next journal, which closes this one. Without room for it, nothing is done."""
        path = journal_path(self._root, self.index + 1)
        try:
            path.open("xb").close()
        except OSError:
            return False
        sync_folder(path.parent)
        return True

    def close(self) -> None:
        """Close the file."""
        self._file.close()
