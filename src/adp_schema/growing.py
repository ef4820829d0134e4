"""A store that is still being written, such as by rollouts.

Finished trajectories go to a journal, one line each append, flushed to the disk before `append`
returns. Any number of processes and threads of one machine may append. From time to time a journal
is sealed into a shard. Readers see shards and journals together; `seal` ends it and leaves a
finished store.

    store/growing.json                  manifest of the shards so far
    store/growing/journal-00002.jsonl   trajectories after the shards 0 and 1
    store/growing/added-00000.parquet   ids and hashes of the trajectories of shard 0
    store/growing/*.lock                held by who appends, and by who makes a shard
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import zip_longest
from pathlib import Path
from typing import Self

from adp_schema import ids
from adp_schema.errors import IdTakenError, SchemaError, StoreError
from adp_schema.journal import (
    FOLDER,
    GROWING,
    Encoded,
    JournalEntry,
    cannot_write,
    encode,
    is_sealed,
    journal_path,
    last_journal,
    locked,
    missing,
    sealed,
    sync_folder,
)
from adp_schema.journal_file import JournalFile
from adp_schema.model import Trajectory
from adp_schema.seal_store import END, seal
from adp_schema.sealing import (
    SHARD_BYTES,
    added_path,
    begin,
    load,
    read_added,
    seal_closed,
    shard_count,
)
from adp_schema.trajectory_rows import with_branches
from adp_schema.waiting import JournalLimits, Waiting, fail

__all__ = ["GROWING", "SEAL_BYTES", "GrowingStore", "journal_path", "load", "seal"]

SEAL_BYTES = SHARD_BYTES
"""A journal of this size becomes a shard."""

_TOGETHER, _TOGETHER_BYTES = 256, 8 << 20

_Line = dict[str, tuple[JournalEntry, bytes]]  # trajectory id -> its entry and its text


class GrowingStore:
    """Appends trajectories to a store; any number of processes and threads may do so at once.

    One object may be used by several threads, and passed to other processes; every process may
    also make its own. Closing is not needed for anything to be kept.

    Args:
        root: folder of the store; it is made, or gone on with when it is a growing store.
        seal_bytes: size at which a journal becomes a shard.
        seal_count: number of trajectories at which it does, if that comes first.
        seal_seconds: age at which it does at the next append, if that comes first.

    Raises:
        OutputExistsError: the folder holds a finished store or something else.
        StoreError: the folder cannot be written to, or the store has another schema version.
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        *,
        seal_bytes: int = SEAL_BYTES,
        seal_count: int | None = None,
        seal_seconds: float | None = None,
    ) -> None:
        self.root = Path(root)
        self._limits = JournalLimits(seal_bytes, seal_count, seal_seconds)
        try:
            begin(self.root)
        except OSError as error:
            raise cannot_write(self.root, error) from error
        self._reset()

    def _reset(self) -> None:
        """Know nothing of the store; in a forked process nothing of the other one is used."""
        self._owner = os.getpid()
        self._queue: deque[Waiting] = deque()
        self._turn = threading.Lock()
        self._known: dict[str, str] = {}
        self._journal: JournalFile | None = None
        self._left_over = False

    def _own_journal(self) -> None:
        if os.getpid() != self._owner:
            self._reset()

    def __getstate__(self) -> tuple[Path, JournalLimits]:
        return self.root, self._limits

    def __setstate__(self, state: tuple[Path, JournalLimits]) -> None:
        self.root, self._limits = state
        self._reset()

    # ---- appending ------------------------------------------------------------------------

    def append(self, trajectory: Trajectory) -> bool:
        """Add a finished trajectory, and after it its ``branches``: all of them, or none.

        When this returns, it outlives a kill of this process and a crash of the machine. Appending
        the same again does nothing, so a writer that was killed may just append again. Without
        ``trajectory_id`` it gets one: ``dataset/source_id``, with the hash of the content for a
        missing ``source_id``, and with ``#2``, ``#3`` when another content has that id.

        Args:
            trajectory: its ``seq`` is not used; the order of appending is the order of the store.

        Returns:
            Whether it was new.

        Raises:
            IdTakenError: the store holds another trajectory of this ``trajectory_id``.
            SchemaError: the store cannot hold it, or no reader could make anything of it: text
                that is not the JSON of its column, a date beyond the years 1 to 9999.
            UsageError: it is no `Trajectory`.
            SealedError: `seal` has ended the store.
            StoreError: it cannot be written, for lack of space for example. Then it is not in the
                store, and the store can be gone on with.
        """
        return self.extend([trajectory]) > 0

    def extend(self, trajectories: Iterable[Trajectory]) -> int:
        """Add several trajectories in order; faster than one by one, and all safe at the end.

        Args and Raises: as for `append`. When one is refused, those before it are kept.

        Returns:
            How many were new.
        """
        added = size = 0
        items: list[Encoded] = []
        try:
            for trajectory in with_branches(trajectories):
                item = encode(trajectory)
                full = len(items) >= _TOGETHER or size >= _TOGETHER_BYTES
                if full and not (item.parent and any(item.parent == it.given for it in items)):
                    together, items, size = items, [], 0
                    added += self._commit(together)
                items.append(item)
                size += len(item.text)
        finally:
            if items:
                added += self._commit(items)
        return added

    def _commit(self, items: list[Encoded]) -> int:
        """Let one thread write what all threads wait for: then one flush serves them all."""
        self._own_journal()
        waiting = Waiting(items)
        self._queue.append(waiting)
        while not waiting.done:
            with self._turn:
                if not waiting.done:
                    self._serve(waiting)
        if waiting.error is not None:
            raise waiting.error
        self._seal_left_over()
        return waiting.added

    def _serve(self, waiting: Waiting) -> None:
        batch: list[Waiting] = []
        while self._queue:
            batch.append(self._queue.popleft())
        try:
            with self._appending():
                self._write(batch)
        except OSError as error:
            fail(batch, cannot_write(self.root, error))
        except Exception as error:
            fail(batch, error)
        except BaseException:  # Ctrl-C stops this thread only; the others write their own
            self._queue.extend(item for item in batch if item is not waiting and not item.done)
            raise

    @contextmanager
    def _appending(self) -> Iterator[None]:
        """Hold the lock of the writers, unless the store has ended."""
        self._check_open()
        with locked(self.root, "append"):
            self._check_open()
            yield

    def _check_open(self) -> None:
        if (self.root / FOLDER / END).exists() or is_sealed(self.root):
            raise sealed(self.root)
        if not (self.root / GROWING).exists():
            raise missing(self.root / GROWING)

    def _write(self, batch: list[Waiting]) -> None:
        """Append what several threads wait for. The lock is held."""
        journal = self._catch_up()
        line: _Line = {}
        size = 0
        for waiting in batch:
            waiting.added = 0
            try:
                for item, after in zip_longest(waiting.items, waiting.items[1:]):
                    entry = self._entry(item, line)
                    if entry is None:
                        continue
                    line[entry.trajectory_id] = entry, item.text
                    waiting.added += 1
                    size += entry.size
                    inside = after is not None and after.parent in line
                    if not inside and self._limits.reached(journal, size, len(line)):
                        self._flush(journal, line)
                        line, size = {}, 0
                        journal = self._next(journal)
            except (IdTakenError, SchemaError) as error:
                waiting.error = error
        self._flush(journal, line)
        for waiting in batch:
            waiting.done = True

    def _entry(self, item: Encoded, line: _Line) -> JournalEntry | None:
        """The entry for a trajectory; None when the store has it already."""
        number = 1
        while True:
            given = item.given if item.given is not None else ids.numbered(item.base, number)
            there = line[given][0].hash if given in line else self._known.get(given)
            if there is None:
                if given == item.parent:
                    raise SchemaError(
                        f"column trajectories.parent_id: '{given}' is its own parent; "
                        "name the trajectory that it branches from"
                    )
                return item.entry._replace(trajectory_id=given)
            if there == item.entry.hash:
                return None
            if item.given is not None:
                raise IdTakenError(
                    f"{self.root} holds another trajectory of the id '{given}'; "
                    "give each trajectory an id of its own"
                )
            number += 1

    def _flush(self, journal: JournalFile, line: _Line) -> None:
        journal.write(line.values())
        self._know(entry for entry, _ in line.values())

    def _know(self, entries: Iterable[JournalEntry]) -> None:
        self._known.update((entry.trajectory_id, entry.hash) for entry in entries)

    # ---- what other writers did -----------------------------------------------------------

    def _catch_up(self) -> JournalFile:
        """Read what others appended, and open the last journal. The lock is held."""
        journal = self._journal
        if journal is None:
            # Who made these folders may have been killed before they were safe on the disk.
            sync_folder(self.root)
            index = shard_count(load(self.root))
            last_journal(self.root, index)
            for shard in range(index):
                self._know(read_added(self.root, shard))
            journal = self._open(index)
        else:
            self._know(journal.read_on())
        while journal.is_closed():
            journal.check_closed()
            if journal.is_gone() and not added_path(self.root, journal.index).exists():
                raise missing(journal_path(self.root, journal.index))
            journal = self._open(journal.index + 1)
            self._left_over = True
        return journal

    def _open(self, index: int) -> JournalFile:
        """Open a journal, or the first one after it that is no shard yet."""
        while True:
            try:
                journal = JournalFile(self.root, index)
                break
            except FileNotFoundError:
                if not added_path(self.root, index).exists():
                    raise missing(journal_path(self.root, index)) from None
                self._know(read_added(self.root, index))
                index += 1
        sync_folder(self.root / FOLDER)
        if self._journal is not None:
            self._journal.close()
        self._journal = journal
        self._know(journal.read_on())
        return journal

    def _next(self, journal: JournalFile) -> JournalFile:
        """Close a journal and open the next one; when there is no room, go on with the first."""
        if not journal.begin_next():
            return journal
        self._left_over = True
        return self._open(journal.index + 1)

    # ---- sealing --------------------------------------------------------------------------

    def _seal_left_over(self) -> None:
        """Make a shard of one closed journal, unless another writer is at it.

        An append makes no more than one, so that it returns even if others close journals
        faster. While some are left, each append of each writer does its share. What fails here
        is tried again when the next journal is closed: all of it is in the journals, and the
        append has succeeded.
        """
        if not self._left_over:
            return
        self._left_over = False
        with suppress(OSError, StoreError), locked(self.root, "seal", wait=False) as free:
            if not free or seal_closed(self.root, most=1):
                self._left_over = True

    def seal_journal(self) -> None:
        """Turn what the journals hold into shards now.

        Raises:
            SealedError: `seal` has ended the store.
            StoreError: it cannot be written; nothing is lost.
        """
        self._own_journal()
        try:
            with self._turn, self._appending():
                journal = self._catch_up()
                self._flush(journal, {})
                if journal.count:
                    journal = self._next(journal)
            self._left_over = False
            with locked(self.root, "seal"):
                seal_closed(self.root, before=journal.index)
        except OSError as error:
            raise cannot_write(self.root, error) from error

    # ---- what is there --------------------------------------------------------------------

    def ids(self) -> list[str]:
        """Ids of all trajectories that the store holds now, in no order.

        Raises:
            SealedError: `seal` has ended the store.
        """
        self._look()
        return list(self._known)

    def holds(self, trajectory_ids: Iterable[str]) -> set[str]:
        """Which of some ids the store holds now; see `ids`."""
        self._look()
        return {name for name in trajectory_ids if name in self._known}

    def __contains__(self, trajectory_id: object) -> bool:
        if trajectory_id not in self._known:
            self._look()
        return trajectory_id in self._known

    def _look(self) -> None:
        self._own_journal()
        with self._turn:
            self._check_open()
            if self._journal is None or not self._journal.is_current():
                with self._appending():
                    self._flush(self._catch_up(), {})

    def close(self) -> None:
        """Close the files; the store stays a growing one, and may be appended to again."""
        with self._turn:
            if self._journal is not None:
                self._journal.close()
            self._journal = None
            self._known.clear()

    def __del__(self) -> None:
        journal: JournalFile | None = getattr(self, "_journal", None)
        if journal is not None:
            journal.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
