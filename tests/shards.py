"""Write the tables of a store straight to Parquet, for tests that need files and nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from adp_schema.tables import TABLES

Rows = Mapping[str, Sequence[Mapping[str, Any]]]


def write_shards(
    folder: Path, *shards: Rows, row_group_size: int | None = None
) -> dict[str, list[str]]:
    """Write each shard's rows and return the files: table -> paths, as `Store.tables_files`.

    Args:
        folder: folder of the store.
        shards: for each shard, table -> rows; columns that are left out are null.
        row_group_size: rows of a row group.
    """
    files: dict[str, list[str]] = {table: [] for table in TABLES}
    for index, shard in enumerate(shards):
        for table, rows in shard.items():
            path = folder / table / f"part-{index:05d}.parquet"
            path.parent.mkdir(parents=True, exist_ok=True)
            data = pa.Table.from_pylist([dict(row) for row in rows], schema=TABLES[table].schema)
            pq.write_table(data, path, row_group_size=row_group_size)
            files[table].append(str(path))
    return files
