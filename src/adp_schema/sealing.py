"""From journals to shards.

A journal is closed as soon as the next one is there. Closed journals become shards, in order: the
files of the shard come first, then ``growing.json`` names them, then the journal goes. A kill in
between leaves files that nothing names, or a journal whose shard is named; the next one to seal
writes over the first and removes the second.

Shards are cut after the trajectory with which the texts of a shard reach `SHARD_BYTES`. A shard
that was sealed before that is called ``early-...``, and the end of the store writes it anew; so
the finished store does not show when which journal was sealed.
"""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from adp_schema.builder import RowBuilder
from adp_schema.errors import OutputExistsError, StoreError
from adp_schema.journal import (
    FOLDER,
    GROWING,
    JournalEntry,
    items_of,
    journal_path,
    locked,
    missing,
    read_journal,
    sync_folder,
)
from adp_schema.losses import general_path
from adp_schema.manifest import MANIFEST, Counts, Lineage, Manifest, Shard, write_atomic
from adp_schema.migrate import column_names
from adp_schema.model import Columns
from adp_schema.tables import SCHEMA_VERSION
from adp_schema.trajectory_rows import Rows, media_key
from adp_schema.writer import ShardWriter, place, shard_name

SHARD_BYTES = 64 << 20
"""Bytes of text at which a shard is cut."""

Item = tuple[JournalEntry, Columns, Rows]

_ADDED = pa.schema(
    [
        ("trajectory_id", pa.string()),
        ("hash", pa.string()),
        ("size", pa.int64()),
        ("dataset", pa.string()),
        ("media", pa.list_(pa.string())),
    ]
)


class SealedPart:
    """Some trajectories of a growing store as files, and what they add to the manifest.

    Args:
        folder: folder for the files; each is called ``<table>.parquet``.
        first: seq of the first of them.
    """

    def __init__(self, folder: Path, first: int) -> None:
        self._writer = ShardWriter(folder)
        self._builder = RowBuilder()
        self._blobs: set[str] = set()
        self._first = first
        self.entries: list[JournalEntry] = []
        self.losses: Counter[str] = Counter()

    def add(self, item: Item) -> None:
        """Add a trajectory. A blob is written with the first one that has it."""
        entry, columns, rows = item
        rows = dict(rows)
        fresh = []
        for blob in rows.pop("media", []):
            if (key := media_key(blob)) not in self._blobs:
                self._blobs.add(key)
                fresh.append(blob)
        if fresh:
            rows["media"] = fresh
        seq = self._first + len(self.entries)
        named = {**columns, "trajectory_id": entry.trajectory_id}
        self._builder.add_rows(seq, named, rows)
        self._builder.size += entry.size
        if self._builder.is_full():
            self._writer.flush(self._builder)
        self.entries.append(entry)
        if columns.get("losses"):
            for loss in json.loads(columns["losses"]):
                self.losses[f"{general_path(loss['path'])}: {loss['reason']}"] += 1

    def close(self) -> dict[str, int]:
        """Finish the files; return table -> number of rows."""
        self._writer.flush(self._builder)
        return {table: self._writer.rows.get(table, 0) for table in self._writer.close()}

    def count(self, manifest: Manifest) -> None:
        """Add the trajectories to the counts of a manifest."""
        number = len(self.entries)
        manifest.counts.add(Counts(records=number, used=number, trajectories=number))
        names = Counter(entry.dataset for entry in self.entries if entry.dataset is not None)
        manifest.datasets = dict(sorted((Counter(manifest.datasets) + names).items()))
        manifest.losses = dict(sorted((Counter(manifest.losses) + self.losses).items()))


def load(root: Path) -> Manifest:
    """The manifest of a growing store.

    Raises:
        StoreError: the folder is no growing store, or one of another schema version.
    """
    try:
        text = (root / GROWING).read_text(encoding="utf-8")
        version = str(json.loads(text)["schema_version"])
        column_names(version)
        manifest = Manifest.model_validate_json(text)
    except (FileNotFoundError, NotADirectoryError):
        raise StoreError(f"{root} is no growing store: it has no {GROWING}") from None
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise StoreError(f"{root / GROWING} is damaged; restore it from a copy") from error
    if version != SCHEMA_VERSION:
        raise StoreError(f"{root} began with schema {version}; seal it with the adp that began it")
    return manifest


def begin(root: Path) -> None:
    """Make a growing store, unless it is there. Several writers may come at once.

    Raises:
        OutputExistsError: the folder holds a finished store or something else.
        OSError: it cannot be written to.
    """
    if (root / MANIFEST).exists():
        raise OutputExistsError(f"{root} is a finished store; it never changes")
    if (root / GROWING).exists():
        load(root)
        return
    root.mkdir(parents=True, exist_ok=True)
    if {path.name for path in root.iterdir()} - {FOLDER, GROWING, f"{GROWING}.tmp"}:
        raise OutputExistsError(f"{root} is not empty and is no growing store; choose another")
    (root / FOLDER).mkdir(exist_ok=True)
    with locked(root, "append"):
        if not (root / GROWING).exists():
            journal_path(root, 0).touch()
            sync_folder(root / FOLDER)
            save(root, Manifest(lineage=[Lineage(act="grow")]))
            sync_folder(root.parent)


def save(root: Path, manifest: Manifest) -> None:
    """Write the manifest of a growing store so that it outlives a crash of the machine."""
    write_atomic(root / GROWING, manifest.text())
    sync_folder(root)


def shard_count(manifest: Manifest) -> int:
    """How many shards a growing store has."""
    return len(manifest.tables.get("trajectories", []))


def added_path(root: Path, index: int) -> Path:
    """The file that lists the trajectories of a shard for writers."""
    return root / FOLDER / f"added-{index:05d}.parquet"


def read_added(root: Path, index: int) -> list[JournalEntry]:
    """The trajectories of a shard, in order.

    Raises:
        StoreError: the file that lists them is missing or damaged.
    """
    path = added_path(root, index)
    try:
        columns = pq.read_table(path, schema=_ADDED).to_pydict().values()
        return [
            JournalEntry(name, hashed, size, dataset, tuple(media))
            for name, hashed, size, dataset, media in zip(*columns, strict=True)
        ]
    except FileNotFoundError:
        raise missing(path) from None
    except (pa.ArrowException, OSError, TypeError) as error:
        raise StoreError(f"{path} is damaged; restore the store from a copy") from error


def _write_added(root: Path, index: int, entries: Sequence[JournalEntry]) -> None:
    columns = list(zip(*entries, strict=True))
    arrays = [pa.array(list(c), f.type) for c, f in zip(columns, _ADDED, strict=True)]
    path = added_path(root, index)
    staged = path.with_suffix(".tmp")
    pq.write_table(pa.Table.from_arrays(arrays, schema=_ADDED), staged, compression="zstd")
    _sync(staged)
    staged.replace(path)


def _sync(path: Path) -> None:
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def write_shard(
    root: Path, index: int, name: str, part: SealedPart, staged: Path
) -> dict[str, Shard]:
    """Move the files of a part into the store, safe from a crash of the machine."""
    shards: dict[str, Shard] = {}
    for table, rows in part.close().items():
        file = staged / f"{table}.parquet"
        _sync(file)
        shards[table] = place(file, root, table, index, rows, name=name)
        sync_folder(root / table)
    sync_folder(root)
    shutil.rmtree(staged)
    return shards


def is_regular(manifest: Manifest, sizes: Sequence[int], *, last: bool) -> bool:
    """Whether the end of the store would cut the next shard here too.

    Args:
        manifest: what the shards before hold.
        sizes: bytes of the texts of its trajectories.
        last: whether nothing follows.
    """
    before = manifest.tables.get("trajectories", [])
    if any(shard.path != f"trajectories/{shard_name(i)}" for i, shard in enumerate(before)):
        return False
    total = sum(sizes)
    return total - sizes[-1] < SHARD_BYTES and (last or total >= SHARD_BYTES)


def seal_closed(
    root: Path, *, last: bool = False, before: int | None = None, most: int | None = None
) -> bool:
    """Turn the closed journals into shards. Only one process may do it at a time.

    Others may close journals faster than this goes. So who wants to come to an end says where.

    Args:
        root: folder of the growing store.
        last: nothing follows the last closed one.
        before: only the journals before this one.
        most: only so many.

    Returns:
        Whether a closed journal is left.
    """
    manifest = load(root)
    index = shard_count(manifest)
    sync_folder(root)  # a kill may have come before the manifest that was read was safe
    for left in range(index):
        journal_path(root, left).unlink(missing_ok=True)
    start = index
    while (before is None or index < before) and journal_path(root, index + 1).exists():
        if most is not None and index - start >= most:
            return True
        end = last and not journal_path(root, index + 2).exists()
        _seal_one(root, manifest, index, last=end)
        index += 1
    return False


def _seal_one(root: Path, manifest: Manifest, index: int, *, last: bool) -> None:
    path = journal_path(root, index)
    staged = root / FOLDER / "staged"
    shutil.rmtree(staged, ignore_errors=True)
    part = SealedPart(staged, manifest.counts.trajectories)
    for item in items_of(read_journal(path, closed=True)):
        part.add(item)
    regular = is_regular(manifest, [entry.size for entry in part.entries], last=last)
    name = shard_name(index) if regular else f"early-{index:05d}.parquet"
    shards = write_shard(root, index, name, part, staged)
    _write_added(root, index, part.entries)
    sync_folder(root / FOLDER)
    for table, shard in shards.items():
        manifest.tables.setdefault(table, []).append(shard)
    part.count(manifest)
    save(root, manifest)
    path.unlink()


def cuts(sizes: Iterable[int]) -> Iterator[int]:
    """Where shards end, as numbers of trajectories, from their sizes in order."""
    size = count = 0
    for item in sizes:
        size += item
        count += 1
        if size >= SHARD_BYTES:
            yield count
            size = 0
    if size:
        yield count
