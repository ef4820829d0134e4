"""What a partition reads of its store."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from adp_schema import table_frame
from tests.curation.pools import open_pool
from tests.curation.small_stores import run, write_runs


@pytest.mark.parametrize("table", ["steps", "tool_calls", "observations", "trajectories"])
def test_a_partition_reads_its_rows_whatever_the_shards(tmp_path: Path, table: str) -> None:
    """Every range of trajectories, over shards with and without rows of the table."""
    runs = [run(f"r{number}", calls=number // 4) for number in range(12)]
    store = write_runs(tmp_path / "store", runs, shards=4)
    whole = store.scan(table).collect()
    with open_pool(tmp_path / "pool", store) as pool:
        (partition,) = pool.partitions
        seqs = pool.members["seq"].to_list()
        for start, first in enumerate(seqs):
            for last in seqs[start:]:
                part = dataclasses.replace(partition, first=first, last=last)
                expected = whole.filter(pl.col("seq").is_between(first, last))
                read = part.read(table, ["trajectory_id"])
                assert read.equals(expected.select("seq", "trajectory_id"))


def test_only_the_files_of_a_partition_are_opened_by_polars(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With all files of a store for each partition, the time would grow by the square."""
    store = write_runs(tmp_path / "store", [run(f"r{number}") for number in range(12)], shards=4)
    scanned: list[list[str]] = []
    scan = table_frame.scan

    def noted(table: str, files: list[str], renamed: Any, *, held: bool) -> pl.LazyFrame:
        scanned.append(files)
        return scan(table, files, renamed, held=held)

    with open_pool(tmp_path / "pool", store) as pool:
        (partition,) = pool.partitions
        third = pool.members["seq"][6]
        monkeypatch.setattr(table_frame, "scan", noted)
        dataclasses.replace(partition, first=third, last=third).read("steps", ["text"])
    assert scanned == [store.files("steps")[2:3]]
