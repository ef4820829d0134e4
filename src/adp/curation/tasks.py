"""What the table of tasks says about the trajectories of a partition."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING

from adp.curation.inputs import store_stamp
from adp_schema.store import Store

if TYPE_CHECKING:
    import polars as pl

    from adp.curation.partitions import Partition


def tasks_of(partition: Partition, columns: Sequence[str]) -> pl.DataFrame:
    """Columns of the task of each trajectory that has one.

    The table holds a task once, beside the first of its attempts, so it is found by ``task_id``;
    where it names a data set, that must be the trajectory's.

    Args:
        partition: which trajectories.
        columns: columns of the table of tasks.

    Returns:
        ``seq`` (the pool's) and the columns, at most one row a trajectory, sorted by ``seq``.
    """
    import polars as pl

    runs = partition.read("trajectories", ["task_id", "dataset"])
    runs = runs.filter(pl.col("task_id").is_not_null())
    own = [pl.col(name).alias(f"of_{name}") for name in columns]
    known = (
        _open(partition.root).scan("tasks")
        .filter(pl.col("task_id").is_in(runs["task_id"].unique().implode()))
        .select("task_id", pl.col("dataset").alias("of"), pl.col("seq").alias("order"), *own)
        .collect()
    )  # fmt: skip
    found = runs.join(known, on="task_id", how="inner")
    found = found.filter(pl.col("of").is_null() | (pl.col("of") == pl.col("dataset")))
    found = found.sort("seq", "of", "order", nulls_last=True, maintain_order=True)
    found = found.unique("seq", keep="first", maintain_order=True)
    return found.select("seq", *(pl.col(f"of_{name}").alias(name) for name in columns))


def _open(root: str) -> Store:
    return _opened(root, store_stamp(root))


@functools.lru_cache(maxsize=8)
def _opened(root: str, _: tuple[int, ...]) -> Store:
    return Store.open(root)
