"""A store of episodes in an order that does not depend on which of them ended first.

Episodes are appended as they end, and a run that was stopped goes on with those that are left. What
is made of them later, and what a model learns, should not depend on either.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl

from adp_schema.growing import GrowingStore
from adp_schema.model import Trajectory
from adp_schema.seal_store import seal
from adp_schema.store import Store

_TOGETHER = 4096
"""Trajectories that are in memory at one time."""

_BESIDES = ("collect.json", "evolve.json")
"""Files of the store that are no part of its tables, and are kept."""


def write_ordered(source: Path, out: Path, scratch: Path) -> None:
    """Move a finished store; its trajectories are then in the order of their ids.

    A branch comes after the trajectory that it belongs to. Calling it again after a kill is safe.

    Args:
        source: the store; it is gone afterwards.
        out: where the ordered one appears, at once and whole.
        scratch: a folder that is used meanwhile.
    """
    if out.exists():  # a call before was killed after its last step but one
        shutil.rmtree(source, ignore_errors=True)
        return
    store = Store.open(str(source))
    wanted = _order(store)
    if wanted == sorted(wanted):
        source.rename(out)
        return
    shutil.rmtree(scratch, ignore_errors=True)
    with GrowingStore(scratch) as growing:
        growing.extend(_in_order(store, wanted))
    seal(scratch)
    for name in _BESIDES:
        if (source / name).exists():
            shutil.copyfile(source / name, scratch / name)
    scratch.rename(out)
    shutil.rmtree(source)


def _order(store: Store) -> list[int]:
    """The ``seq`` of all trajectories, in the order of the ids."""
    rows = store.scan("trajectories").select("seq", "trajectory_id", "parent_id").collect()
    parents = dict(rows.select("trajectory_id", "parent_id").iter_rows())

    def root(name: str) -> str:
        seen: set[str] = set()
        while (parent := parents.get(name)) is not None and name not in seen:
            seen.add(name)
            name = parent
        return name

    keyed = [(root(name), parent is not None, name, seq) for seq, name, parent in rows.iter_rows()]
    return [seq for *_, seq in sorted(keyed)]


def _in_order(store: Store, wanted: list[int]) -> Iterator[Trajectory]:
    for start in range(0, len(wanted), _TOGETHER):
        part = wanted[start : start + _TOGETHER]
        there = {item.seq: item for item in store.some(np.array(sorted(part)))}
        for seq in part:
            yield there[seq].model_copy(update={"seq": None})


def episodes_of(store: Store) -> dict[str, int]:
    """Counts of the episodes of a store: all, scored ones, solved ones, broken ones."""
    main = store.scan("trajectories").filter(pl.col("parent_id").is_null())
    row = (
        main.select(
            episodes=pl.len(),
            scored=pl.col("success").is_not_null().sum(),
            solved=pl.col("success").fill_null(value=False).sum(),
            broken=pl.col("error_type").is_not_null().sum(),
            tokens_out=pl.col("total_tokens_out").fill_null(0).sum(),
        )
        .collect()
        .row(0, named=True)
    )
    branches = store.manifest.counts.trajectories - row["episodes"]
    return {**{name: int(value) for name, value in row.items()}, "branches": branches}
