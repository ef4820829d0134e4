"""The end of a growing store: `seal` makes a finished one of it.

It can be killed at any moment and called again. What the finished store holds follows from the
trajectories and their order alone, not from when which journal was sealed.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from adp_schema.errors import SealedError, StoreError
from adp_schema.journal import (
    FOLDER,
    GROWING,
    JournalEntry,
    journal_path,
    last_journal,
    locked,
    missing,
)
from adp_schema.journal import sync_folder as sync
from adp_schema.journal_file import JournalFile
from adp_schema.manifest import MANIFEST, Lineage, Manifest, Shard, write_atomic
from adp_schema.plain_arrays import empty_table
from adp_schema.protocols import Progress
from adp_schema.reader import ShardReader
from adp_schema.sealing import (
    Item,
    SealedPart,
    cuts,
    load,
    read_added,
    seal_closed,
    shard_count,
    write_shard,
)
from adp_schema.tables import SHARDED_TABLES, TABLES
from adp_schema.trajectory_rows import media_key, rows_of
from adp_schema.verification import check
from adp_schema.writer import place, shard_name, writer_options

END = "end"
"""File in the folder of the writers: the store takes no more trajectories."""


def seal(root: str | Path, *, progress: Progress | None = None) -> Manifest:
    """End a growing store: seal its journals and write the manifest of a finished store.

    Writers that are still there get a `SealedError` at their next append. A call that was stopped
    is to be repeated; for a store that was sealed already it only removes what a stop left over.

    Args:
        root: folder of the store.
        progress: told how far the rewriting of early shards is, in bytes.

    Raises:
        StoreError: the folder is no growing store, it is damaged, or its disk is full.
    """
    folder = Path(root)
    if (folder / MANIFEST).exists():
        return _again(folder)
    load(folder)
    try:
        with locked(folder, "seal"):
            if (folder / MANIFEST).exists():
                return _again(folder)
            check(str(folder), load(folder))
            with locked(folder, "append"):
                _stop_writers(folder)
            seal_closed(folder, last=True)
            return _finish(folder, load(folder), progress)
    except SealedError:  # by another process, while this one waited
        return _again(folder)
    except FileNotFoundError as error:
        raise missing(Path(error.filename or folder)) from error
    except OSError as error:
        raise StoreError(
            f"cannot write to {folder}: {error.strerror or error}; nothing is lost, "
            f"make room and call it again: adp seal {folder}"
        ) from error


def _again(folder: Path) -> Manifest:
    manifest = Manifest.model_validate_json((folder / MANIFEST).read_text(encoding="utf-8"))
    if not manifest.lineage or manifest.lineage[-1].act != "seal":
        raise StoreError(f"{folder} is a finished store and no growing one; nothing is to be done")
    sync(folder)
    _clean(folder)
    return manifest


def _stop_writers(folder: Path) -> None:
    """Let no more trajectories in, and close the last journal."""
    mark = folder / FOLDER / END
    with mark.open("wb") as file:
        os.fsync(file.fileno())
    index = last_journal(folder, shard_count(load(folder)))
    journal = JournalFile(folder, index)
    try:
        if journal.read_on() and not journal.begin_next():
            journal_path(folder, index + 1).touch()  # says why it cannot be made
    finally:
        journal.close()
    sync(folder / FOLDER)


def _finish(folder: Path, manifest: Manifest, progress: Progress | None) -> Manifest:
    _rewrite(folder, manifest, progress)
    staged = folder / FOLDER / "sources.parquet"
    pq.write_table(
        empty_table(TABLES["sources"].schema), staged, **writer_options(TABLES["sources"])
    )
    manifest.tables["sources"] = [place(staged, folder, "sources", 0, 0)]
    manifest.tables = dict(sorted(manifest.tables.items()))
    manifest.lineage.append(Lineage(act="seal", versions=_versions()))
    sync(folder / "sources")
    manifest.write(folder)
    sync(folder)
    _clean(folder)
    return manifest


def _versions() -> dict[str, str]:
    """Versions that the bytes of a store depend on."""
    versions = {}
    for name in ("adp", "pyarrow"):
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return versions


def _clean(folder: Path) -> None:
    """Remove what only the growing store needed."""
    (folder / GROWING).unlink(missing_ok=True)
    for table in SHARDED_TABLES:
        for left in (folder / table).glob("early-*.parquet"):
            left.unlink(missing_ok=True)
    shutil.rmtree(folder / FOLDER, ignore_errors=True)


def _rewrite(folder: Path, manifest: Manifest, progress: Progress | None) -> None:
    """Cut the shards from the first early one on anew; a stopped call goes on by shard."""
    paths = [shard.path for shard in manifest.tables.get("trajectories", [])]
    first = next((i for i, path in enumerate(paths) if "/early-" in path), len(paths))
    if paths and first == len(paths):
        return
    parts = _EarlyParts(folder, manifest, first)
    new = [
        {
            table: [shard for shard in shards if "/early-" not in shard.path]
            for table, shards in manifest.tables.items()
        }
    ]
    sizes = [entry.size for entries in parts.entries for entry in entries]
    if progress is not None:
        progress.total(sum(sizes))
    start = 0
    for number, end in enumerate(cuts(sizes) if sizes else [0]):
        new.append({t: [s] for t, s in _final(folder, parts, first + number, start, end).items()})
        if progress is not None:
            progress.advance(sum(sizes[start:end]))
        start = end
    manifest.tables = {
        table: results
        for table in SHARDED_TABLES
        if (results := [shard for tables in new for shard in tables.get(table, [])])
    }


def _final(folder: Path, parts: _EarlyParts, index: int, start: int, end: int) -> dict[str, Shard]:
    """Write the shard of the trajectories from start to end, or look up what it was."""
    note = folder / FOLDER / f"final-{index:05d}.json"
    if note.exists():
        known: dict[str, Any] = json.loads(note.read_text(encoding="utf-8"))
        return {table: Shard(**shard) for table, shard in known.items()}
    staged = folder / FOLDER / "staged"
    shutil.rmtree(staged, ignore_errors=True)
    part = SealedPart(staged, parts.before + start)
    for item in parts.items(start, end):
        part.add(item)
    shards = write_shard(folder, index, shard_name(index), part, staged)
    write_atomic(note, json.dumps({table: shard.model_dump() for table, shard in shards.items()}))
    return shards


class _EarlyParts:
    """The trajectories of the shards that are to be cut anew.

    Attributes:
        entries: what is known of them, by shard.
        before: number of the trajectories in the shards before.
    """

    def __init__(self, folder: Path, manifest: Manifest, first: int) -> None:
        count = shard_count(manifest)
        self.entries = [read_added(folder, index) for index in range(first, count)]
        self.before = manifest.counts.trajectories - sum(map(len, self.entries))
        self._files: list[dict[str, str]] = []
        for shard in manifest.tables.get("trajectories", [])[first:]:
            name = shard.path.rsplit("/", 1)[-1]
            paths = {table: folder / table / name for table in SHARDED_TABLES}
            self._files.append({t: str(path) for t, path in paths.items() if path.exists()})

    def items(self, start: int, end: int) -> Iterator[Item]:
        """The trajectories from start to end, counted from the first early shard on."""
        at = 0
        for entries, files in zip(self.entries, self._files, strict=True):
            if at < end and at + len(entries) > start:
                for place_, item in enumerate(_stored(entries, files), at):
                    if start <= place_ < end:
                        yield item
            at += len(entries)


def _stored(entries: list[JournalEntry], files: dict[str, str]) -> Iterator[Item]:
    """The trajectories of a shard, as they were in the journal."""
    reader = ShardReader(files, {})
    blobs = {}
    for group in range(len(reader.ranges("media"))):
        for row in reader.group("media", group).to_pylist():
            vs = {n: v for n, v in row.items() if v is not None and n in _BLOB}
            blobs[media_key(row)] = vs
    for entry, trajectory in zip(entries, reader.trajectories(), strict=True):
        trajectory.media = {}
        columns, rows = rows_of(trajectory)
        if entry.media:
            rows["media"] = [blobs[key] for key in entry.media]
        yield entry, columns, rows
    reader.close()


_BLOB = frozenset(TABLES["media"].row.model_fields)
