"""Loading a pool: the trajectories of the inputs, their tasks, their sizes and their branches."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from adp.curation.inputs import Input
from adp.curation.partitions import trajectory_sizes
from adp.curation.pool import COLUMNS
from adp.curation.state import State
from adp.stores.merge import REFERENCES
from adp.stores.tasks import rollout_keys
from adp.stores.tasks.words import word_keys
from adp_schema.ids import renamed_ids

BRANCH_COLUMNS = (
    "seq", "trajectory_id", "parent_seq", "parent_step", "branch_kind", "input", "size", "rows",
)  # fmt: skip
"""Columns of `State.branches`."""


def load(inputs: Sequence[Input]) -> State:
    """The state before the first stage: ids, tasks, outcomes and sizes.

    Ids that an earlier input has too get the next number (``#2``, ``#3``).
    """
    frames: list[pl.DataFrame] = []
    for source in inputs:
        rows = _rows(source)
        source.renamed = _renamed(rows["trajectory_id"], [it["trajectory_id"] for it in frames])
        if source.renamed:
            new = pl.col("trajectory_id").replace(source.renamed)
            rows = rows.with_columns(new)
        frames.append(rows)
    everything = pl.concat(frames)
    main = everything.filter(pl.col("parent_id").is_null())
    rows = main.select(*COLUMNS)
    reserve = [source.name for source in inputs if source.reserve]
    return State(
        inputs=list(inputs),
        rows=rows,
        inside=rows.select(~pl.col("input").is_in(reserve)).to_series(),
        branches=_branches(everything, inputs),
        pairs=_pairs(inputs, everything["trajectory_id"]),
    )


def _renamed(names: pl.Series, earlier: Sequence[pl.Series]) -> dict[str, str]:
    """New ids for those that an earlier input has too; mostly there are none."""
    before = pl.concat([pl.Series(dtype=pl.String), *earlier])
    if not names.is_in(before.implode()).any():
        return {}
    return renamed_ids(names.to_list(), set(before.to_list()))


def _rows(source: Input) -> pl.DataFrame:
    columns = [
        *("seq", "trajectory_id", "source_id", "dataset", "split", "task_id", "attempt"),
        *("agent_model", "success", "reward", "parent_id", "parent_step", "branch_kind"),
    ]
    rows = (
        source.store.scan("trajectories")
        .select(columns)
        .with_columns(pl.col("seq") + source.shift, pl.lit(source.name).alias("input"))
        .collect()
        .sort("seq")
    )
    rows = rows.join(trajectory_sizes(source), on="seq", how="left", maintain_order="left")
    rows = rows.with_columns(pl.col("size", "rows").fill_null(0))
    named = pl.concat_str(pl.col("dataset").fill_null(""), pl.lit("/"), pl.col("task_id"))
    for words in (word_keys(source.store), rollout_keys(source.store)):
        words = words.with_columns(pl.col("seq") + source.shift)
        rows = rows.join(words, on="seq", how="left", maintain_order="left")
    return rows.with_columns(pl.coalesce("tried", named, "words").alias("task"))


def _branches(rows: pl.DataFrame, inputs: Sequence[Input]) -> pl.DataFrame:
    """The branches, with the ``seq`` of the trajectory that each starts from."""
    frame = rows.filter(pl.col("parent_id").is_not_null())
    parents = [
        {"input": source.name, "parent_id": old, "renamed": new}
        for source in inputs
        for old, new in source.renamed.items()
    ]
    schema = {"input": pl.String, "parent_id": pl.String, "renamed": pl.String}
    frame = frame.join(
        pl.DataFrame(parents, schema=schema),
        on=["input", "parent_id"],
        how="left",
        maintain_order="left",
    ).with_columns(pl.coalesce("renamed", "parent_id").alias("parent_id"))
    known = rows.select("input", pl.col("trajectory_id").alias("parent_id"), parent_seq="seq")
    return frame.join(known, on=["input", "parent_id"], how="left", maintain_order="left").select(
        BRANCH_COLUMNS
    )


def _pairs(inputs: Sequence[Input], names: pl.Series) -> pl.DataFrame | None:
    """The pairs of all inputs; those that name a trajectory that is not there are no use."""
    frames = []
    taken: set[str] = set()
    for source in inputs:
        if not source.store.manifest.rows("pairs"):
            continue
        rows = source.store.scan("pairs").collect()
        pair_ids = rows["pair_id"].drop_nulls().unique().sort().to_list()
        # The same id stands for another pair: its trajectories got new ids too.
        renamed = renamed_ids(pair_ids, taken)
        rows = rows.with_columns(pl.col("pair_id").replace(renamed)) if renamed else rows
        taken.update(renamed.get(name, name) for name in pair_ids)
        for side in REFERENCES["pairs"]:
            if source.renamed:
                rows = rows.with_columns(pl.col(side).replace(source.renamed))
            there = pl.col(side).is_null() | pl.col(side).is_in(names.implode())
            rows = rows.filter(there)
        frames.append(rows)
    return (
        pl.concat(frames).unique("pair_id", keep="first", maintain_order=True) if frames else None
    )
