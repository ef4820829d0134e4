"""What rows are streamed from: a store, or files of rows. Each says which row groups it has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from adp.stores.condition import select_where
from adp.stores.streaming.nested import NestedColumns, Numbers, read_nested
from adp_schema.errors import UsageError, unknown_name
from adp_schema.ids import digest
from adp_schema.reader import ShardReader
from adp_schema.store import Store

_OPEN = 8
"""Shards that are held open: reading the footers again costs a few milliseconds a shard."""

_AT_ONCE = 8
"""Footers that are asked for at once; each is a question over the network where files are far."""


class RowSource(Protocol):
    """What rows are streamed from. It can be pickled.

    Attributes:
        rows: rows of each row group that are streamed, in order.
        schema: the schema of the rows.
        name: names the content and its order.
    """

    rows: Sequence[int]
    schema: pa.Schema
    name: str

    def read(self, group: int) -> pa.RecordBatch:
        """The rows of a row group."""
        ...


class NestedRows:
    """The trajectories of a store as nested rows.

    Args:
        store: the store.
        columns: what to read.
        where: a condition in SQL over ``all_trajectories``; None takes all.

    Raises:
        QueryError: the condition is not one valid condition.
    """

    def __init__(self, store: Store, columns: NestedColumns, where: str | None = None) -> None:
        self.columns = columns
        self.schema = columns.schema()
        self._shards = [dict(shard) for shard in store.shard_files()]
        self._renamed, self._held = store.renamed, store.journal
        self._open: dict[int, ShardReader] = {}
        self._seqs: Numbers | None = None
        if where is not None:
            table = store.query(select_where("seq", where))
            self._seqs = np.sort(np.asarray(table["seq"].to_numpy(), dtype=np.int64))
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            counted = list(pool.map(self._counts, self._shards))
        self._groups = [
            (shard, group) for shard, counts in enumerate(counted) for group in range(len(counts))
        ]
        self.rows: Sequence[int] = [count for counts in counted for count in counts]
        words = [store.manifest.model_dump_json(), where or "", str(self.rows)]
        self.name = digest("\0".join(words).encode())

    def __getstate__(self) -> dict[str, Any]:
        """Without open files, and without the owner of a journal's files, which lives on here."""
        return {**self.__dict__, "_open": {}, "_held": None}

    def _counts(self, files: Mapping[str, str]) -> list[int]:
        """How many trajectories of each row group of a shard are streamed."""
        reader = ShardReader(files, self._renamed)
        file = reader.file("trajectories")
        assert file is not None
        try:
            if self._seqs is None:
                groups = map(file.metadata.row_group, range(file.num_row_groups))
                return [group.num_rows for group in groups]
            ranges = np.array(reader.ranges("trajectories"), dtype=np.int64).reshape(-1, 2)
            places = np.searchsorted(self._seqs, ranges + np.array([0, 1]))
            return [int(end - first) for first, end in places]
        finally:
            reader.close()

    def read(self, group: int) -> pa.RecordBatch:
        """The rows of a row group."""
        shard, inside = self._groups[group]
        if shard not in self._open:
            while len(self._open) >= _OPEN:
                self._open.pop(next(iter(self._open))).close()
            self._open[shard] = ShardReader(self._shards[shard], self._renamed)
        return read_nested(self._open[shard], inside, self.columns, self._seqs)


class ParquetRows:
    """The rows of Parquet files of one schema, such as rendered ones.

    Args:
        files: the files, in order.
        columns: which columns; None takes all.

    Raises:
        UsageError: there is no file, or no such column.
    """

    def __init__(self, files: Sequence[Path], columns: Sequence[str] | None = None) -> None:
        if not files:
            raise UsageError("there is no file of rows to stream")
        self._files = [str(file) for file in files]
        footers = [pq.read_metadata(file) for file in self._files]
        whole = footers[0].schema.to_arrow_schema()
        self._names = whole.names if columns is None else list(columns)
        for name in self._names:
            if name not in whole.names:
                raise UsageError(unknown_name("column", name, whole.names))
        self.schema = pa.schema([whole.field(name) for name in self._names])
        self._groups = [
            (index, group)
            for index, footer in enumerate(footers)
            for group in range(footer.num_row_groups)
        ]
        self.rows: Sequence[int] = [
            footers[index].row_group(group).num_rows for index, group in self._groups
        ]
        sizes = [(Path(file).name, Path(file).stat().st_size) for file in self._files]
        self.name = digest(f"{sizes}\0{self.rows}".encode())

    def read(self, group: int) -> pa.RecordBatch:
        """The rows of a row group."""
        index, inside = self._groups[group]
        with pq.ParquetFile(self._files[index]) as file:
            rows = file.read_row_group(inside, columns=self._names, use_threads=False)
        return rows.select(self._names).combine_chunks().to_batches()[0]
