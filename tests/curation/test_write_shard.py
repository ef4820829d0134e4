"""The entries of a shard lie anywhere in the row groups of a file."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from adp.curation.write_shard import _entries_of


@pytest.mark.parametrize("rows", [1, 4, 100])
def test_entries_by_position(tmp_path: Path, rows: int) -> None:
    table = pa.table({"position": list(range(23)), "seq": [7 * n for n in range(23)]})
    path = tmp_path / "entries.parquet"
    pq.write_table(table, path, row_group_size=rows)
    for first, last in [(0, 0), (0, 22), (3, 4), (4, 7), (5, 13), (22, 22)]:
        assert _entries_of(str(path), first, last).equals(table.slice(first, last - first + 1))
