"""Loading a pool: the trajectories of the inputs, their tasks, their sizes and their branches."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from adp.curation import mapped_frames
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


def load(inputs: Sequence[Input], folder: Path) -> State:
    """The state before the first stage: ids, tasks, outcomes and sizes.

    Ids that an earlier input has too get the next number (``#2``, ``#3``).

    Args:
        inputs: the stores.
        folder: an existing folder, for frames of very many rows.
    """
    frames: list[pl.DataFrame] = []
    for source in inputs:
        rows = _rows(source, folder)
        source.renamed = _renamed(rows["trajectory_id"], [it["trajectory_id"] for it in frames])
        if source.renamed:
            new = pl.col("trajectory_id").replace(source.renamed)
            rows = rows.with_columns(new)
        frames.append(rows)
    everything = pl.concat(frames)
    alone = everything["parent_id"].is_null()
    main = mapped_frames.filtered(everything, alone, folder / "main.arrow")
    rows = main.select(*COLUMNS)
    reserve = [source.name for source in inputs if source.reserve]
    return State(
        inputs=list(inputs),
        rows=rows,
        inside=rows.select(~pl.col("input").is_in(reserve)).to_series(),
        branches=_branches(everything, inputs),
        pairs=_pairs(inputs, everything["trajectory_id"]),
        folder=folder,
    )


def _renamed(names: pl.Series, earlier: Sequence[pl.Series]) -> dict[str, str]:
    """New ids for those that an earlier input has too; mostly there are none."""
    if not earlier:
        return {}
    before = pl.concat(earlier)
    if not names.is_in(before.implode()).any():
        return {}
    return renamed_ids(names.to_list(), set(before.to_list()))


def _rows(source: Input, folder: Path) -> pl.DataFrame:
    columns = [
        *("seq", "trajectory_id", "source_id", "dataset", "split", "task_id", "attempt"),
        *("agent_model", "success", "reward", "parent_id", "parent_step", "branch_kind"),
    ]
    store = source.store
    named = pl.concat_str(pl.col("dataset").fill_null(""), pl.lit("/"), pl.col("task_id"))
    scanned = (
        store.scan("trajectories")
        .select(columns)
        .with_columns(pl.col("seq") + source.shift, named.alias("task"))
        .with_columns(pl.lit(source.name).alias("input"))
    )
    many = store.manifest.rows("trajectories") >= mapped_frames.MAPPED_ROWS
    path = folder / f"input-{source.index}.arrow"
    rows = mapped_frames.mapped(scanned, path) if many else scanned.collect()
    if not rows["seq"].is_sorted():
        rows = rows.sort("seq")
    keys = [
        words.select(pl.col("seq") + source.shift, pl.col(name).alias("key"))
        for name, words in (("tried", rollout_keys(store)), ("words", word_keys(store)))
    ]
    if any(frame.height for frame in keys):
        tasks = _tasks(rows, *keys)
        rows = rows.with_columns(
            mapped_frames.mapped(tasks, folder / f"tasks-{source.index}.arrow")
        )
    sizes = trajectory_sizes(source)
    assert sizes["seq"].equals(rows["seq"])
    # Columns in batches of other sizes would all be copied, to make them alike.
    sizes = mapped_frames.mapped(sizes.drop("seq"), folder / f"sizes-{source.index}.arrow")
    return pl.concat([rows, sizes], how="horizontal")


def _tasks(rows: pl.DataFrame, tried: pl.DataFrame, words: pl.DataFrame) -> pl.DataFrame:
    """``task``: what a rollout tried, else what data set and id name, else the words."""
    task = rows.select("seq", "task")
    for name, frame in (("tried", tried), ("words", words)):
        more = frame.rename({"key": name})
        task = task.join(more, on="seq", how="left", maintain_order="left")
    return task.select(pl.coalesce("tried", "task", "words").alias("task"))


def _branches(rows: pl.DataFrame, inputs: Sequence[Input]) -> pl.DataFrame:
    """The branches, with the ``seq`` of the trajectory that each starts from."""
    frame = rows.filter(pl.col("parent_id").is_not_null())
    if not frame.height:  # a join would look at all rows
        return frame.with_columns(parent_seq=pl.lit(None, pl.Int64)).select(BRANCH_COLUMNS)
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
