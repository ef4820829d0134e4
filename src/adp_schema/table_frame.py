"""A table of a store as a lazy frame of Polars."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from adp_schema import location
from adp_schema.plain_arrays import empty_table
from adp_schema.tables import TABLES

if TYPE_CHECKING:
    import polars as pl


def scan(
    table: str, files: list[str], renamed: Mapping[str, Mapping[str, str]], *, held: bool
) -> pl.LazyFrame:
    """A lazy frame over a table.

    Args:
        table: name of the table.
        files: addresses of its files, in order.
        renamed: table -> {column in the files: column now}, from `migrate.column_names`.
        held: the last file lives no longer than the store; the frame may, so it is read at once.
    """
    import polars as pl

    schema = TABLES[table].schema
    if not files:
        return pl.LazyFrame(pl.from_arrow(empty_table(schema)))
    if location.is_url(files[0]):
        frame = _scan_urls(files)
    elif held:
        last = pl.read_parquet(files[-1], glob=False).lazy()
        frame = pl.concat([pl.scan_parquet(files[:-1], glob=False), last]) if files[:-1] else last
    else:
        frame = pl.scan_parquet(files, glob=False)
    frame = frame.rename(dict(renamed.get(table, {})), strict=False)
    if renamed:
        present = set(frame.collect_schema().names())
        nulls = pl.from_arrow(empty_table(schema))
        assert isinstance(nulls, pl.DataFrame)
        frame = frame.with_columns(
            pl.lit(None, dtype=nulls.schema[name]).alias(name)
            for name in schema.names
            if name not in present
        ).select(schema.names)
    return frame


def _scan_urls(files: list[str]) -> pl.LazyFrame:
    """A lazy frame over files that Polars itself may not find, or not with our credentials."""
    import polars as pl
    import pyarrow.dataset as ds
    from pyarrow.fs import FSSpecHandler, PyFileSystem

    system = location.file_system(files[0])
    paths = [system._strip_protocol(file) for file in files]
    return pl.scan_pyarrow_dataset(
        ds.dataset(paths, format="parquet", filesystem=PyFileSystem(FSSpecHandler(system)))
    )
