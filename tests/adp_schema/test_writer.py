"""How tables are stored: histories that repeat are stored once, and rows do not change."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from adp_schema.ids import digest
from adp_schema.plain_arrays import empty_table
from adp_schema.tables import TABLES
from adp_schema.writer import ShardWriter, repeated_columns

TEXTS = [f"{n}: " + "".join(digest(f"{n} {k}".encode()) for k in range(100)) for n in range(200)]
"""Texts of 3 kB that do not compress within one of them, and have nothing in common."""
HISTORY = TEXTS[:40]
SAME_BEGINNINGS = [" " * 64 + text for text in TEXTS]


def steps(texts: list[str]) -> pa.Table:
    """Rows of the table of steps with these texts."""
    schema = TABLES["steps"].schema
    empty = empty_table(schema)
    columns = {name: pa.nulls(len(texts), schema.field(name).type) for name in schema.names}
    columns["seq"] = pa.array(range(len(texts)), pa.int64())
    columns["text"] = pa.array(texts, pa.string())
    return pa.concat_tables([empty, pa.table(columns, schema=schema)]).combine_chunks()


def size_of(folder: Path, groups: list[pa.Table]) -> int:
    """Bytes of the file of a shard with these row groups, which come back as they were."""
    writer = ShardWriter(folder)
    for rows in groups:
        writer.write("steps", rows)
    writer.close()
    path = folder / "steps.parquet"
    assert pq.read_table(path).equals(pa.concat_tables(groups))
    return path.stat().st_size


def test_a_history_that_each_turn_repeats_is_stored_once(tmp_path: Path) -> None:
    """The history is longer than a page: no compression of pages would see it again."""
    turns = [HISTORY[:n] for n in range(20, 41)]
    once = size_of(tmp_path / "once", [steps(HISTORY)])
    repeated = size_of(tmp_path / "repeated", [steps([text for turn in turns for text in turn])])
    assert sum(map(len, turns)) == 630
    assert repeated < 1.2 * once


def test_each_row_group_has_a_dictionary_of_its_own(tmp_path: Path) -> None:
    """So it can be read alone; what comes later need not repeat."""
    group = steps(HISTORY * 5)
    fresh = steps([digest(str(n).encode()) * 50 for n in range(300)])
    assert size_of(tmp_path, [group, fresh, group]) > 0


@pytest.mark.parametrize(
    ("texts", "repeats"),
    [
        (HISTORY * 5, True),
        (TEXTS, False),
        ([*TEXTS, *TEXTS[:100]], False),  # two thirds are distinct
        ([*HISTORY * 5, *TEXTS], False),  # half of them are, the last ones
        (SAME_BEGINNINGS, False),
        (SAME_BEGINNINGS * 3, True),
        (["the same"] * 1000, False),  # all of it fits into a page
        ([], False),
    ],
)
def test_only_what_repeats_gets_a_dictionary(texts: list[str], *, repeats: bool) -> None:
    """A dictionary of texts that are all distinct would cost CPU and room."""
    assert repeated_columns(steps(texts)) == (["text"] if repeats else [])
