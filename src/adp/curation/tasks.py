"""What the table of tasks says about the trajectories of a partition."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING

from adp.curation.inputs import store_stamp
from adp.stores.task_rows import HOME_COLUMNS, ROW_COLUMNS, assign, homes, shard_starts
from adp_schema.store import Store

if TYPE_CHECKING:
    import polars as pl

    from adp.curation.partitions import Partition


def tasks_of(partition: Partition, columns: Sequence[str]) -> pl.DataFrame:
    """Columns of the task of each trajectory that has one, by `adp.stores.task_rows`.

    Args:
        partition: which trajectories.
        columns: columns of the table of tasks.

    Returns:
        ``seq`` (the pool's) and the columns, at most one row a trajectory, sorted by ``seq``.
    """
    import polars as pl

    runs = partition.read("trajectories", HOME_COLUMNS[1:])
    runs = runs.filter(pl.col("task_id").is_not_null())
    shift = partition.shift
    store = _open(partition.root)
    wanted = runs["task_id"].unique().implode()
    rows = store.scan("tasks").filter(pl.col("task_id").is_in(wanted))
    full = (
        rows.select(list(dict.fromkeys((*ROW_COLUMNS, *columns)))).collect().with_row_index("row")
    )
    at = full["seq"].unique().implode()
    owners = store.scan("trajectories").filter(pl.col("seq").is_in(at)).select(HOME_COLUMNS)
    places = homes(runs.with_columns(pl.col("seq") - shift))
    frame = full.select("row", *ROW_COLUMNS)
    result = assign(places, frame, homes(owners.collect()), _starts(partition.root))
    known = result.select("seq", "row").join(full.select("row", *columns), on="row", how="left")
    return known.select(pl.col("seq") + shift, *columns).sort("seq")


def _open(root: str) -> Store:
    return _opened(root, store_stamp(root))


@functools.lru_cache(maxsize=8)
def _opened(root: str, _: tuple[int, ...]) -> Store:
    return Store.open(root)


def _starts(root: str) -> list[int]:
    return _starts_of(root, store_stamp(root))


@functools.lru_cache(maxsize=8)
def _starts_of(root: str, _: tuple[int, ...]) -> list[int]:
    return shard_starts(Store.open(root))
