"""The configs of a published folder: what `datasets.load_dataset` is given a name for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from adp.workflows.publish.messages import FOLDER, File
from adp.workflows.publish.splits import TRAIN
from adp_schema.store import Store
from adp_schema.tables import TABLES

STORE = "store"
"""Folder of the store in the published folder."""

_WHAT = "One row a trajectory, ready for training."


@dataclass(frozen=True)
class SplitFiles:
    """The files of a split.

    Attributes:
        name: name of the split.
        pattern: a glob that finds its files, from the published folder.
        rows: number of rows.
        bytes: size of the values in memory, as the Parquet files state it.
        size: size of the files.
        files: number of files.
    """

    name: str
    pattern: str
    rows: int
    bytes: int
    size: int
    files: int


@dataclass(frozen=True)
class PublishedConfig:
    """One config.

    Attributes:
        name: its name.
        what: what a row is.
        schema: its columns.
        splits: its splits, in order.
    """

    name: str
    what: str
    schema: pa.Schema
    splits: tuple[SplitFiles, ...]

    @property
    def rows(self) -> int:
        """Number of rows."""
        return sum(split.rows for split in self.splits)

    @property
    def size(self) -> int:
        """Size of the files in bytes."""
        return sum(split.size for split in self.splits)

    @property
    def files(self) -> int:
        """Number of files."""
        return sum(split.files for split in self.splits)

    def as_json(self) -> dict[str, Any]:
        """The numbers, for programs."""
        splits = {split.name: split.rows for split in self.splits}
        return {"rows": self.rows, "files": self.files, "bytes": self.size, "splits": splits}


def configs_of(folder: Path, store: Store, messages: list[File]) -> list[PublishedConfig]:
    """The configs of a published folder, ``messages`` first. A table without rows has none.

    Args:
        folder: the published folder.
        store: the store in it.
        messages: the files of the config ``messages``.
    """
    configs = []
    splits = []
    for name in dict.fromkeys(file.split for file in messages):
        paths = [folder / file.path for file in messages if file.split == name]
        splits.append(_split(name, f"{FOLDER}/{name}-*.parquet", paths))
    if splits:
        configs.append(
            PublishedConfig(FOLDER, _WHAT, pq.read_schema(folder / messages[0].path), tuple(splits))
        )
    configs.extend(_tables(folder, store))
    return configs


def _tables(folder: Path, store: Store) -> Iterator[PublishedConfig]:
    for name, table in TABLES.items():
        shards = [shard for shard in store.manifest.tables.get(name, []) if shard.rows]
        if shards:
            paths = [folder / STORE / shard.path for shard in shards]
            split = _split(TRAIN, f"{STORE}/{name}/*.parquet", paths)
            what = (table.row.__doc__ or "").strip().splitlines()[0]
            yield PublishedConfig(name, what, pq.read_schema(paths[0]), (split,))


def _split(name: str, pattern: str, paths: list[Path]) -> SplitFiles:
    rows = values = 0
    for path in paths:
        facts = pq.read_metadata(path)
        rows += facts.num_rows
        values += sum(facts.row_group(i).total_byte_size for i in range(facts.num_row_groups))
    size = sum(path.stat().st_size for path in paths)
    return SplitFiles(name, pattern, rows, values, size, len(paths))
