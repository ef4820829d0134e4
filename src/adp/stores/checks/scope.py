"""The part of a store that checks look at: a few shards, or all of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pyarrow as pa

from adp.stores.cutting import cut_runs
from adp_schema import location
from adp_schema.gate import QueryGate
from adp_schema.store import Store

SCOPE_ROWS = 4_000_000
"""Rows of the tables of a scope; at least one shard, which holds about 128 MB of input."""


@dataclass(eq=False)
class Scope:
    """Shards of a store, for SQL and for reading in order.

    Attributes:
        store: the store.
        files: table -> files of this part.
        damage: path in the store -> what is wrong with that file, as far as was looked.
    """

    store: Store
    files: Mapping[str, Sequence[str]]
    damage: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def gate(self) -> QueryGate:
        """The query gate over this part."""
        return QueryGate(self.files, renamed=self.store.renamed)

    def close(self) -> None:
        """Close the gate, if it was opened."""
        if "gate" in self.__dict__:
            self.gate.close()

    def batches(self, table: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Columns of a table in the order of its files, a piece at a time."""
        stored = {now: old for old, now in self.store.renamed.get(table, {}).items()}
        for address in self.files.get(table, ()):
            file = location.open_parquet(address)
            names = [stored.get(name, name) for name in columns]
            for batch in file.iter_batches(columns=names, use_threads=False):
                yield batch.select(names).rename_columns(list(columns))
            file.close()

    def rows(self, table: str, columns: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        """The values of some columns of a table, row by row in the order of its files."""
        for batch in self.batches(table, columns):
            yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def whole_store(store: Store, *, verify: bool = False) -> Scope:
    """All of a store as one scope.

    Args:
        store: the store.
        verify: hash its files, however large they are.
    """
    damage = store.damage(every_byte=True if verify else None)
    return Scope(store, store.tables_files(), damage=damage)


def pieces(store: Store) -> Iterator[Scope]:
    """The shards of a store, a few at a time, in order."""
    for shards in cut_runs(store.shard_files(), [(_rows, SCOPE_ROWS)]):
        files: dict[str, list[str]] = {}
        for shard in shards:
            for table, address in shard.items():
                files.setdefault(table, []).append(address)
        yield Scope(store, files)


def _rows(shard: Mapping[str, str]) -> int:
    return sum(location.open_parquet(file).metadata.num_rows for file in shard.values())
