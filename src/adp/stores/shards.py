"""Reading the shards of finished stores as Arrow tables, group by group, in the present schema."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from adp_schema import location
from adp_schema.errors import StoreError
from adp_schema.ids import digest
from adp_schema.manifest import MANIFEST
from adp_schema.migrate import upgrade
from adp_schema.plain_arrays import empty_table
from adp_schema.reader import ShardReader
from adp_schema.store import Store
from adp_schema.tables import SHARDED_TABLES, TABLES
from adp_schema.verification import verified

Files = dict[str, str]
"""The files of one shard: table -> address."""


@dataclass(frozen=True)
class ShardWork:
    """One shard of a store to work on.

    Attributes:
        index: its number.
        size: bytes to read.
        files: table -> address.
        renamed: how columns are called in the files.
    """

    index: int
    size: int
    files: Files
    renamed: dict[str, dict[str, str]]

    @property
    def reads(self) -> Iterable[str]:
        """The files that are read."""
        return self.files.values()

    def reader(self) -> ShardReader:
        """Open its files."""
        return ShardReader(self.files, self.renamed)


def open_finished(path: str) -> Store:
    """Open a store that never changes again, to make something of it: all its files are hashed.

    Raises:
        StoreError: there is no store, or it is still growing.
        DamagedStoreError: its files are not those of its manifest.
    """
    with verified():
        store = Store.open(path)
    if not location.exists(location.join(store.root, MANIFEST)):
        raise StoreError(f"{path} is still growing; seal it first: adp seal {path}")
    return store


def manifest_hash(store: Store) -> str:
    """The hash that names a store in the lineage of what is made from it."""
    return digest(location.read_text(location.join(store.root, MANIFEST)).encode("utf-8"))


def shard_files(store: Store) -> list[tuple[Files, int]]:
    """The shards of a store in order, those without rows left out: files and their bytes."""
    files: dict[str, Files] = {}
    sizes: dict[str, int] = {}
    rows: dict[str, int] = {}
    for table in SHARDED_TABLES:
        for shard in store.manifest.tables.get(table, []):
            name = shard.path.rsplit("/", 1)[-1]
            files.setdefault(name, {})[table] = location.join(store.root, shard.path)
            sizes[name] = sizes.get(name, 0) + shard.size
            rows[name] = rows.get(name, 0) + shard.rows
    return [(files[name], sizes[name]) for name in files if rows[name]]


def readers(store: Store) -> Iterator[ShardReader]:
    """The shards of a store in order, each open until the next one comes."""
    for files, _ in shard_files(store):
        reader = ShardReader(files, store.renamed)
        yield reader
        reader.close()


def groups(reader: ShardReader, table: str) -> Iterator[pa.Table]:
    """The row groups of a table of a shard."""
    file = reader.file(table)
    for index in range(file.num_row_groups if file else 0):
        yield reader.group(table, index)


def narrow(reader: ShardReader, table: str, columns: Sequence[str]) -> Iterator[pa.Table]:
    """The row groups of a table of a shard, of which only some columns are read."""
    file = reader.file(table)
    for index in range(file.num_row_groups if file else 0):
        yield narrow_group(reader, table, index, columns)


def narrow_group(reader: ShardReader, table: str, group: int, columns: Sequence[str]) -> pa.Table:
    """One row group of a table that the shard has, of which only some columns are read."""
    file = reader.file(table)
    assert file is not None
    names = reader.renamed.get(table, {})
    stored = [name for name in file.schema_arrow.names if names.get(name, name) in columns]
    rows = file.read_row_group(group, columns=stored, use_threads=False)
    return upgrade(table, rows, names).select(columns)


def source_rows(store: Store) -> pa.Table:
    """The table of input files of a store, in the present schema."""
    names = store.renamed.get("sources", {})
    upgrades = [
        upgrade("sources", location.open_parquet(address).read(), names)
        for address in store.files("sources")
    ]
    return pa.concat_tables([empty_table(TABLES["sources"].schema), *upgrades])


def put(rows: pa.Table, name: str, values: pa.Array | pa.ChunkedArray) -> pa.Table:
    """Replace a column."""
    index = rows.schema.get_field_index(name)
    return rows.set_column(index, rows.schema.field(name), values)


def exchange(column: pa.ChunkedArray, old: pa.Array, new: pa.Array) -> pa.ChunkedArray:
    """Replace the values that are in ``old`` by those at the same place in ``new``."""
    return pc.coalesce(exchange_keys(column, old, new), column)


def exchange_keys(column: pa.ChunkedArray, old: pa.Array, new: pa.Array) -> pa.ChunkedArray:
    """The values of ``new`` that stand where a column's values are in ``old``; else null."""
    return pc.take(new, pc.index_in(column, value_set=old))
