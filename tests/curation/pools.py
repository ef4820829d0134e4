"""A pool over stores, as the ops get it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import polars as pl

from adp.curation.inputs import open_inputs
from adp.curation.load import load
from adp.curation.pool import Pool
from adp_schema.store import Store


@contextmanager
def open_pool(scratch: Path, *stores: Store, seed: int = 0) -> Iterator[Pool]:
    """A pool of one process over some stores."""
    scratch.mkdir(parents=True, exist_ok=True)
    named = {f"s{index}": store.root for index, store in enumerate(stores)}
    pool = load(open_inputs(named), scratch).pool(scratch, seed=seed, workers=1)
    try:
        yield pool
    finally:
        pool.close()


def groups(store: Store, columns: pl.DataFrame, cluster: str) -> list[list[str]]:
    """The ids of the trajectories of each cluster, sorted."""
    names = store.scan("trajectories").select("seq", "trajectory_id").collect()
    frame = columns.join(names, on="seq").group_by(cluster).agg("trajectory_id")
    return sorted(sorted(group) for group in frame["trajectory_id"].to_list())
