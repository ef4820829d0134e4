"""Reading the rows of an input of a curation by what identifies them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from adp.curation.inputs import cached_by_file
from adp.stores import shards
from adp_schema.plain_arrays import empty_table
from adp_schema.reader import ShardReader
from adp_schema.store import Store
from adp_schema.tables import TABLES


class StoreRows:
    """The rows of a store, read row group by row group.

    The last groups are kept, and files are open while what is asked for is near.

    Args:
        root: path or URL of the store.
    """

    def __init__(self, root: str) -> None:
        store = Store.open(root)
        self._readers = [
            ShardReader(files, store.renamed) for files, _ in shards.shard_files(store)
        ]
        self._last: dict[str, tuple[int, int, pa.Table]] = {}
        self._near: list[int] = []
        self.media_ids: dict[bytes, str] = {}
        bounds = []
        for reader in self._readers:
            ranges = reader.ranges("trajectories")
            bounds.append((ranges[0][0], ranges[-1][1]) if ranges else (1, 0))
            self._note_media(reader)
            reader.close()  # footers of very many open files take a gigabyte
        self._firsts, self._ends = np.array(bounds, np.int64).reshape(-1, 2).T

    def _note_media(self, reader: ShardReader) -> None:
        file = reader.file("media")
        for index in range(file.num_row_groups if file else 0):
            assert file is not None
            rows = file.read_row_group(index, columns=["media_id"])
            self.media_ids.update((name.encode(), name) for name in rows["media_id"].to_pylist())

    def rows(self, table: str, seqs: pa.Array) -> Iterator[pa.Table]:
        """Rows of a table with some ``seq``, which go upwards."""
        first, last = seqs[0].as_py(), seqs[-1].as_py()
        values = seqs.to_numpy()
        for number in self._shards(first, last):
            for index, (low, high) in enumerate(self._readers[number].ranges(table)):
                if low > last or high < first:
                    continue
                start, end = np.searchsorted(values, [low, high + 1])
                if start < end:
                    rows = self._group(table, number, index)
                    yield rows.filter(pc.is_in(rows["seq"], value_set=seqs))

    def _shards(self, first: int, last: int) -> list[int]:
        """The shards that hold a range of ``seq``; the files of others are closed."""
        wanted = (self._firsts <= last) & (self._ends >= first)
        near: list[int] = np.flatnonzero(wanted & (self._firsts <= self._ends)).tolist()
        for number in self._near:
            if number not in near:
                self._readers[number].close()
        self._near = near
        return near

    def numbered(self, table: str, wanted: Sequence[int]) -> pa.Table:
        """Rows of a table by their numbers, from 0, in the order asked for."""
        results = [empty_table(TABLES[table].schema)]
        numbers = np.unique(np.array(wanted, np.int64))
        start = 0
        for number, reader in enumerate(self._readers):
            file = reader.file(table)
            if file is None:
                continue
            for index in range(file.num_row_groups):
                end = start + file.metadata.row_group(index).num_rows
                first, last = np.searchsorted(numbers, [start, end])
                if first < last:
                    group = self._group(table, number, index)
                    results.append(group.take(pa.array(numbers[first:last] - start)))
                start = end
        return pa.concat_tables(results).take(
            pa.array(np.searchsorted(numbers, wanted), pa.int64())
        )

    def media(self, wanted: pa.Array) -> pa.Table:
        """The first row for each blob of some ids, in the order of the store."""
        results = [empty_table(TABLES["media"].schema)]
        seen: set[tuple[Any, ...]] = set()
        for reader in self._readers:
            for rows in shards.groups(reader, "media"):
                rows = rows.filter(pc.is_in(rows["media_id"], value_set=wanted))
                keep = []
                same = ("media_id", "mime", "uri")
                for values in zip(*(rows[name].to_pylist() for name in same), strict=True):
                    keep.append(values not in seen)
                    seen.add(values)
                results.append(rows.filter(pa.array(keep, pa.bool_())))
        return pa.concat_tables(results)

    def _group(self, table: str, number: int, index: int) -> pa.Table:
        known = self._last.get(table)
        if known is None or known[:2] != (number, index):
            known = (number, index, self._readers[number].group(table, index))
            self._last[table] = known
        return known[2]


store_rows = cached_by_file(StoreRows)
"""The rows of a store; those of the last stores stay open."""
