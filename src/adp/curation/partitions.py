"""Partitions: runs of trajectories that one worker reads at a time.

They are cut by what the trajectories hold, never by how the stores are cut into files, so the
same trajectories give the same partitions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from adp.curation.inputs import Input, cached_by_file
from adp.stores.cutting import cut_places
from adp_schema import table_frame
from adp_schema.model import Trajectory
from adp_schema.reader import ShardReader
from adp_schema.store import Store
from adp_schema.views import SEQ_SHIFT

PARTITION_BYTES = 32 << 20
"""Text of a partition, in bytes. A single trajectory may be larger."""

_TEXTS = {
    "steps": ("text", "content", "reasoning"),
    "tool_calls": ("arguments", "arguments_raw"),
    "observations": ("text", "content", "structured", "html", "axtree"),
}
"""Columns that make up nearly all of the size of a trajectory."""

_ROW_BYTES = 64
"""What a row counts besides its texts."""


@dataclass(frozen=True)
class Partition:
    """A run of trajectories of one input.

    Attributes:
        index: its number.
        root: path or URL of the store.
        shift: what is added to ``seq``.
        first: first ``seq``, in the pool's numbers.
        last: last ``seq``.
        size: bytes of text.
        members: file of the ``seq`` that are still in.
        tasks: file of ``seq`` and ``row``: which row of the table of tasks each trajectory has.
    """

    index: int
    root: str
    shift: int
    first: int
    last: int
    size: int
    members: str
    tasks: str = ""

    @property
    def reads(self) -> tuple[str, ...]:
        """What is read."""
        return (self.root,)

    def seqs(self) -> pl.DataFrame:
        """``seq`` of the trajectories of the partition that are still in, sorted."""
        frame = pl.scan_parquet(self.members, glob=False).filter(
            pl.col("seq").is_between(self.first, self.last)
        )
        return frame.select("seq").collect()

    def read(self, table: str, columns: Sequence[str]) -> pl.DataFrame:
        """Rows of a table of the trajectories that are still in, in the order of the table.

        Args:
            table: a table that has ``seq``, such as ``"steps"``.
            columns: what to read besides ``seq``.

        Returns:
            ``seq`` (the pool's) and the columns.
        """
        rows = (
            _files(self.root)
            .scan(table, self.first - self.shift, self.last - self.shift)
            .filter(pl.col("seq").is_between(self.first - self.shift, self.last - self.shift))
            .select((pl.col("seq") + self.shift).alias("seq"), *columns)
            .collect()
        )
        wanted = self.seqs()["seq"]
        return rows.filter(pl.col("seq").is_in(wanted.implode()))

    def trajectories(self) -> Iterator[tuple[int, Trajectory]]:
        """``seq`` (the pool's) and the trajectory of each that is still in, one at a time."""
        seqs = (self.seqs()["seq"] - self.shift).to_numpy()
        for trajectory in _open(self.root).some(seqs):
            assert trajectory.seq is not None
            yield trajectory.seq + self.shift, trajectory

    def task_columns(self, columns: Sequence[str]) -> pl.DataFrame:
        """Columns of the task of each trajectory that has one, by `adp.stores.tasks`.

        Args:
            columns: columns of the table of tasks.

        Returns:
            ``seq`` (the pool's) and the columns, one row a trajectory, sorted by ``seq``.
        """
        here = pl.col("seq").is_between(self.first - self.shift, self.last - self.shift)
        rows = pl.scan_parquet(self.tasks, glob=False).filter(here).collect()
        named = _open(self.root).scan("tasks").select(*columns).with_row_index("row")
        wanted = rows["row"].unique().implode()
        tasks = named.filter(pl.col("row").is_in(wanted)).collect()
        tasks = tasks.with_columns(pl.col("row").cast(pl.Int64))
        known = rows.join(tasks, on="row", how="left").with_columns(pl.col("seq") + self.shift)
        return known.join(self.seqs(), on="seq", how="semi").select("seq", *columns).sort("seq")


_open = cached_by_file(Store.open)


class _StoreFiles:
    """The files of a store by the trajectories that they hold.

    Polars reads the footers of all files that it is given, which takes longer than the rows of a
    partition when there are many.
    """

    def __init__(self, root: str) -> None:
        self._store = _open(root)
        self._ranges: dict[str, list[tuple[str, int, int]]] = {}

    def scan(self, table: str, first: int, last: int) -> pl.LazyFrame:
        """A lazy frame over those files of a table that may hold a ``seq`` of a range."""
        if table not in self._ranges:
            self._ranges[table] = list(self._read_ranges(table))
        files = [file for file, low, high in self._ranges[table] if low <= last and high >= first]
        return table_frame.scan(table, files, self._store.renamed, held=False)

    def _read_ranges(self, table: str) -> Iterator[tuple[str, int, int]]:
        for file in self._store.files(table):
            reader = ShardReader({table: file}, self._store.renamed)
            groups = reader.ranges(table)
            reader.close()
            if groups:
                yield file, min(low for low, _ in groups), max(high for _, high in groups)


_files = cached_by_file(_StoreFiles)


def trajectory_sizes(source: Input) -> pl.DataFrame:
    """Size of every trajectory: ``seq``, ``size`` (bytes of text), ``rows``; sorted by ``seq``.

    The files are read one after another, so that memory holds the three columns and no more.
    """
    store = source.store
    seqs = store.scan("trajectories").select("seq").collect()["seq"].sort().to_numpy()
    sizes, rows = np.zeros(len(seqs), np.int64), np.zeros(len(seqs), np.int64)
    for table, columns in _TEXTS.items():
        size = pl.sum_horizontal(
            pl.col(name).str.len_bytes().fill_null(0).cast(pl.Int64) for name in columns
        )
        counted = [size.sum().alias("size"), pl.len().alias("rows")]
        for file in store.files(table) if len(seqs) else ():
            frame = table_frame.scan(table, [file], store.renamed, held=False)
            part = frame.group_by("seq").agg(counted).collect()
            places = np.searchsorted(seqs, part["seq"].to_numpy())
            places = np.minimum(places, len(seqs) - 1)  # rows of no trajectory do not count
            there = seqs[places] == part["seq"].to_numpy()
            sizes[places[there]] += part["size"].to_numpy()[there]
            rows[places[there]] += part["rows"].to_numpy()[there]
    return pl.DataFrame(
        {"seq": seqs + source.shift, "size": sizes + _ROW_BYTES * rows, "rows": rows}
    )


def cut(
    sizes: pl.DataFrame, inputs: Sequence[Input], members: str, tasks: Sequence[str]
) -> list[Partition]:
    """Cut the trajectories into partitions.

    Args:
        sizes: ``seq`` and ``size`` of each, sorted by ``seq``.
        inputs: the stores.
        members: file of the ``seq`` that are still in.
        tasks: for each input, the file of the rows of tasks (`Partition.tasks`).
    """
    seqs, counts = sizes["seq"].to_numpy(), sizes["size"].to_numpy()
    partitions: list[Partition] = []
    for start, end in cut_places([(counts, PARTITION_BYTES)], [seqs >> SEQ_SHIFT]):
        first, last = int(seqs[start]), int(seqs[end - 1])
        source = inputs[first >> SEQ_SHIFT]
        partition = Partition(
            index=len(partitions),
            root=source.store.root,
            shift=source.shift,
            first=first,
            last=last,
            size=int(counts[start:end].sum()),
            members=members,
            tasks=tasks[source.index],
        )
        partitions.append(partition)
    return partitions
