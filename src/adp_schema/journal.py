"""The journal of a growing store: how appended trajectories lie in a file until they are sealed.

A line is what one writer added at once: one trajectory, or several. It carries a checksum::

    {"hash":"<blake2b-128 of the rest>","entries":[[id, hash, size, dataset, blobs], ...],
     "added":[{"trajectory":{...},"rows":{"steps":[...], ...}}, ...]}

``entries`` says what is in ``added`` without reading it: the id, the hash and the size of the text
of each, its data set, and keys of its blobs. Numbers of the input order (``seq``) are not in a
journal; they follow from the place.

What follows the last whole line of the last journal is one of two things. A line without an end
was being written when its writer was killed, and a line in which sectors of the disk are zero was
not on the disk yet when the machine lost its power. Neither was acknowledged, so the next writer
cuts it off. Anything else is damage, and so is whatever is not whole in a journal that was closed.
"""

from __future__ import annotations

import base64
import functools
import json
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from adp_schema.appendable import check_readable
from adp_schema.arrow import check_columns
from adp_schema.errors import SchemaError, SealedError, StoreError
from adp_schema.ids import digest
from adp_schema.manifest import MANIFEST
from adp_schema.model import Columns, Trajectory
from adp_schema.tables import TABLES
from adp_schema.trajectory_rows import Rows, media_key, rows_of

GROWING = "growing.json"
"""The manifest of a growing store: what its shards hold."""

FOLDER = "growing"
"""Folder of the journals and of what only writers need; it goes when the store is sealed."""

_HEAD = b'{"hash":"'
_ENTRIES = b'","entries":'
_ADDED = b',"added":['
_HASH_END = len(_HEAD) + 32
_SECTOR = 512


class JournalEntry(NamedTuple):
    """What is known of an appended trajectory without reading it.

    Attributes:
        trajectory_id: its id.
        hash: blake2b-128 of its text, which holds neither id nor seq.
        size: bytes of its text.
        dataset: its data set.
        media: keys of its blobs, from `trajectory_rows.media_key`.
    """

    trajectory_id: str
    hash: str
    size: int
    dataset: str | None
    media: tuple[str, ...]


class Encoded(NamedTuple):
    """A trajectory that is ready to be appended.

    Attributes:
        given: the id that it came with.
        base: the id that it gets without one, before repeats are numbered.
        entry: the facts; the id in it is that of `given` or `base`.
        parent: id of its parent.
        text: its rows as JSON.
    """

    given: str | None
    base: str
    entry: JournalEntry
    parent: str | None
    text: bytes


class Line(NamedTuple):
    """A whole line of a journal: what it holds, and the text of each trajectory."""

    entries: list[JournalEntry]
    texts: list[bytes]


class JournalPosition(NamedTuple):
    """A place in a journal: the bytes and the lines before it."""

    byte: int
    line: int


FIRST = JournalPosition(0, 0)


def journal_path(root: Path, index: int) -> Path:
    """The journal that will become shard ``index``."""
    return root / FOLDER / f"journal-{index:05d}.jsonl"


def last_journal(root: Path, first: int) -> int:
    """Number of the last journal.

    Args:
        root: folder of the store.
        first: number of the first one that is no shard.

    Raises:
        StoreError: one before it is missing. Without the lock of the writers it may also have
            become a shard meanwhile.
    """
    names = [path.stem.removeprefix("journal-") for path in (root / FOLDER).glob("journal-*.jsonl")]
    last = first
    while journal_path(root, last + 1).exists():
        last += 1
    if any(name.isdecimal() and int(name) > last for name in names):
        raise missing(journal_path(root, last + 1))
    return last


def encode(trajectory: Trajectory) -> Encoded:
    """Check a trajectory and write it as JSON.

    Raises:
        SchemaError: the store cannot hold it, or not so that it is read back as it is.
    """
    columns, rows = rows_of(trajectory)
    named = {**columns, "trajectory_id": trajectory.trajectory_id}
    for table, result in {"trajectories": [named], **rows}.items():
        check_columns(table, result)
        check_readable(table, result)
    plain = {"trajectory": columns, "rows": rows}
    text = json.dumps(
        plain, ensure_ascii=False, separators=(",", ":"), default=_default, check_circular=False
    ).encode("utf-8")
    hashed = digest(text)
    source_id, dataset = columns.get("source_id"), columns.get("dataset")
    identity = source_id if source_id is not None else columns.get("source_hash") or hashed
    base = identity if dataset is None else f"{dataset}/{identity}"
    given = trajectory.trajectory_id
    media = tuple(media_key(row) for row in rows.get("media", ()))
    entry = JournalEntry(base if given is None else given, hashed, len(text), dataset, media)
    return Encoded(given, base, entry, columns.get("parent_id"), text)


def _default(value: Any) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    raise SchemaError(f"a column cannot hold a {type(value).__name__}")


def decode(text: bytes) -> tuple[Columns, Rows]:
    """The inverse of `encode`: columns of the trajectory, and the rows that hang from it."""
    try:
        plain = msgspec.json.decode(text)
    except msgspec.DecodeError:  # NaN, which only Python's own reader takes
        plain = json.loads(text)
    columns, rows = plain["trajectory"], plain["rows"]
    _restore("trajectories", [columns])
    for table, row in rows.items():
        _restore(table, row)
    return columns, rows


def _restore(table: str, rows: list[Columns]) -> None:
    for name, kind in _special(table):
        for row in rows:
            if name in row:
                value = row[name]
                row[name] = (
                    base64.b64decode(value) if kind is bytes else datetime.fromisoformat(value)
                )


@functools.cache
def _special(table: str) -> tuple[tuple[str, type], ...]:
    """Columns whose values are no JSON."""
    fields = TABLES[table].row.model_fields
    return tuple(
        (name, kind)
        for name, info in fields.items()
        for kind in (bytes, datetime)
        if not info.exclude and info.annotation == kind | None
    )


def line_of(added: Iterable[tuple[JournalEntry, bytes]]) -> bytes:
    """A line of a journal, its end included."""
    several = list(added)
    entries = json.dumps([entry for entry, _ in several], separators=(",", ":"))
    texts = b",".join(text for _, text in several)
    rest = b"".join((_ENTRIES, entries.encode("ascii"), _ADDED, texts, b"]}"))
    return b"".join((_HEAD, digest(rest).encode("ascii"), rest, b"\n"))


def _is_whole(line: bytes) -> bool:
    return line.startswith(_HEAD) and digest(line[_HASH_END:]).encode() == line[9:_HASH_END]


def _parse(line: bytes) -> Line:
    start = _HASH_END + len(_ENTRIES)
    # Inside of JSON texts a quotation mark has a backslash, so this is never found in an id.
    cut = line.index(b"]" + _ADDED, start) + 1
    entries = [
        JournalEntry(name, hashed, size, dataset, tuple(media))
        for name, hashed, size, dataset, media in json.loads(line[start:cut])
    ]
    texts, at = [], cut + len(_ADDED)
    for entry in entries:
        texts.append(line[at : at + entry.size])
        at += entry.size + 1
    return Line(entries, texts)


def whole_lines(
    path: Path, data: bytes, place: JournalPosition = FIRST
) -> tuple[list[Line], JournalPosition]:
    """The whole lines that some bytes of a journal begin with, and where they end.

    What follows is a line that is being written, or that a kill or a crash cut short.

    Args:
        path: the journal, for errors.
        data: its bytes from some place on.
        place: that place.

    Raises:
        StoreError: a line is damaged.
    """
    lines: list[Line] = []
    at = 0
    while (stop := data.find(b"\n", at)) >= 0 and _is_whole(data[at:stop]):
        lines.append(_parse(data[at:stop]))
        at = stop + 1
    end = JournalPosition(place.byte + at, place.line + len(lines))
    if at < len(data) and not _is_unfinished(data[at:], end.byte):
        raise damaged(path, end, "is not what was written")
    return lines, end


def _is_unfinished(rest: bytes, start: int) -> bool:
    """Whether what follows the whole lines was never acknowledged.

    Args:
        rest: it.
        start: where it begins in the file.
    """
    line, end, after = rest.partition(b"\n")
    if after:
        return False
    if not end and not _is_whole(line[:-1]):  # else its end is damaged
        return True
    if b"\0" not in line:
        return False
    first = _SECTOR - start % _SECTOR
    sectors = [rest[:first]]
    sectors += [rest[at : at + _SECTOR] for at in range(first, len(rest), _SECTOR)]
    return any(not sector.strip(b"\0") for sector in sectors)


def check_closed(path: Path, end: JournalPosition, size: int) -> None:
    """Check that a journal that was closed is whole to its last byte.

    Args:
        path: the journal.
        end: where its whole lines end.
        size: its bytes.

    Raises:
        StoreError: something of it is missing.
    """
    if end.byte < size or not size:
        raise damaged(path, end, "is cut short")


def read_journal(path: Path, *, closed: bool) -> list[Line]:
    """The whole lines of a journal.

    Args:
        path: the journal.
        closed: whether the next one was begun.

    Raises:
        FileNotFoundError: it is not there.
        StoreError: it is damaged.
    """
    data = path.read_bytes()
    lines, end = whole_lines(path, data)
    if closed:
        check_closed(path, end, len(data))
    return lines


def damaged(path: Path, place: JournalPosition, what: str) -> StoreError:
    """The error for a journal of which a line is damaged."""
    return StoreError(
        f"{path} is damaged: line {place.line + 1} at byte {place.byte:,} {what}; "
        "restore the store from a copy"
    )


def missing(path: Path) -> StoreError:
    """The error for a file of a growing store that somebody removed."""
    return StoreError(f"{path} is missing; restore the store from a copy")


def cannot_write(root: Path, error: OSError) -> StoreError:
    """The error for a store that the system does not write to."""
    return StoreError(f"cannot write to {root}: {error.strerror or error}")


def items_of(lines: Iterable[Line]) -> Iterator[tuple[JournalEntry, Columns, Rows]]:
    """The trajectories of some lines, in order."""
    for line in lines:
        for entry, text in zip(line.entries, line.texts, strict=True):
            yield entry, *decode(text)


def is_sealed(root: Path) -> bool:
    """Whether a growing store has become a finished one."""
    return not (root / GROWING).exists() and (root / MANIFEST).exists()


def sealed(root: Path) -> SealedError:
    """The error for an append to a store that has ended."""
    return SealedError(f"{root} was sealed; it takes no more trajectories, append to another store")


def sync_folder(folder: Path) -> None:
    """Let a machine that loses its power keep the names in a folder, where the system can."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@contextmanager
def locked(root: Path, name: str, *, wait: bool = True) -> Iterator[bool]:
    """Hold a lock of a growing store against other processes and threads; a kill frees it.

    Args:
        root: folder of the store.
        name: ``append`` for whoever writes to a journal, ``seal`` for whoever makes shards. Who
            needs both takes ``seal`` first.
        wait: wait for it; else the block is told whether it has the lock.

    Raises:
        SealedError: `seal` has ended the store meanwhile.
        StoreError: the folder cannot be written to.
    """
    from filelock import FileLock, Timeout

    lock = FileLock(str(root / FOLDER / f"{name}.lock"))
    try:
        lock.acquire(poll_interval=0.002, blocking=wait)
    except Timeout:
        yield False
        return
    except OSError as error:
        # The end of the store takes the file of the lock away.
        raise (sealed(root) if is_sealed(root) else cannot_write(root, error)) from error
    try:
        yield True
    finally:
        lock.release()
        if is_sealed(root):
            # It was sealed while this one waited; the file of the lock must not stay.
            shutil.rmtree(root / FOLDER, ignore_errors=True)
