"""Which row of the table of tasks belongs to which trajectory, found in columns.

A converter writes a task once, beside the first of its attempts; `adp collect` writes it beside
each. So a trajectory has a row of its own, or that of an attempt at the same task: same id, data
set and environment. A branch has that of the trajectory that it starts from. `adp.stores.tasks`
says how a task is told from others.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from adp_schema.store import Store

ROLLOUT = "adp_rollout"
"""``source_format`` of what `adp collect` writes."""

HOME_COLUMNS = ("seq", "trajectory_id", "parent_id", "dataset", "task_id", "source_format",
                "extra")  # fmt: skip
"""What must be known of a trajectory."""

ROW_COLUMNS = ("seq", "task_id", "dataset", "environment", "instruction", "turns",
               "environment_config")  # fmt: skip
"""What must be known of a row of the table of tasks."""

_DEEPEST = 32
"""Rounds of looking up where branches start, each of which doubles the way; circles end then."""


def extra_value(extra: str | None, name: str) -> Any:
    """A value of a column ``extra``; None where it has none, or is no JSON object."""
    try:
        value = json.loads(extra or "null")
    except (ValueError, RecursionError):
        return None
    return value.get(name) if isinstance(value, dict) else None


def environment_of(extra: str | None) -> str | None:
    """The environment of a rollout, by the column ``extra`` of its trajectory."""
    name = extra_value(extra, "environment")
    return name if isinstance(name, str) and name else None


def homes(trajectories: pl.DataFrame) -> pl.DataFrame:
    """What trajectories say about where their tasks come from.

    Args:
        trajectories: `HOME_COLUMNS`, in the order of the store.

    Returns:
        ``seq``, ``task_id``, ``home_set`` (data set), ``home_env`` (environment; of rollouts only),
        ``rollout``, and ``root``: ``seq`` of the main line that a branch starts from, else its own.
    """
    rollout = (pl.col("source_format") == ROLLOUT).fill_null(value=False)
    extras = trajectories.select(pl.when(rollout).then("extra").alias("extra"))["extra"]
    environments = pl.Series("home_env", [environment_of(extra) for extra in extras], pl.String)
    named = pl.col("dataset").replace("", None).alias("home_set")
    frame = trajectories.with_columns(environments).select(
        "seq", "task_id", named, "home_env", rollout.alias("rollout")
    )
    frame = frame.with_columns(_roots(trajectories))
    # Branches of a rollout do not say where they were made.
    above = frame.select(pl.col("seq").alias("root"), pl.col("home_env").alias("above"))
    frame = frame.join(above, on="root", how="left", maintain_order="left")
    env = pl.when("rollout").then(pl.coalesce("home_env", "above")).alias("home_env")
    return frame.with_columns(env).drop("above")


def _roots(trajectories: pl.DataFrame) -> pl.Series:
    """``root``: where each trajectory starts from, as far as that is among them."""
    above = trajectories.select("trajectory_id", pl.col("seq").alias("root"))
    above = above.drop_nulls().unique("trajectory_id", keep="first")
    rows = trajectories.select("seq", "parent_id").join(
        above, left_on="parent_id", right_on="trajectory_id", how="left", maintain_order="left"
    )
    roots = rows.select("seq", pl.coalesce("root", "seq"))
    for _ in range(_DEEPEST):
        higher = roots.select(pl.col("seq").alias("root"), pl.col("root").alias("higher"))
        result = roots.join(higher, on="root", how="left", maintain_order="left")["higher"]
        if result.equals(roots["root"].alias("higher")):
            break
        roots = roots.with_columns(result.alias("root"))
    return roots["root"]


def assign(
    places: pl.DataFrame, rows: pl.DataFrame, owners: pl.DataFrame, starts: Sequence[int] = ()
) -> pl.DataFrame:
    """Find the row of each trajectory.

    It is that which hangs from it. Else, for a branch, that of the main line that it starts from.
    Else, for data that was converted, the first of the same shard with the trajectory's data set
    and the id: a converter leaves out only what says the same. Else that of other attempts, when
    they all have one task.

    Args:
        places: `homes` of the trajectories.
        rows: ``row`` (its number) and `ROW_COLUMNS` of the table of tasks, in its order. It may
            lack rows with ids that no trajectory has.
        owners: `homes` of the trajectories that these rows hang from.
        starts: first ``seq`` of each shard of the store (`shard_starts`); none: it is one shard.

    Returns:
        ``seq``, ``row``, ``own`` (whether the row hangs from that trajectory), ``above`` (whether
        it is found by the main line of this branch) and ``shared``, for each trajectory with a
        row, sorted by ``seq``. Trajectories of one ``shared`` find each other's rows: it names the
        task of a rollout by the first row of that, and else the data set and the id; it is null
        without an id.
    """
    known = _keyed(rows, owners)
    there = known.select("seq", "task_id", "row", "first")
    text = places.join(there, on=["seq", "task_id"], how="inner", nulls_equal=True)
    text = text.sort("row").unique("seq", keep="first", maintain_order=True)
    lacking = places.filter(pl.col("task_id").is_not_null()).join(text, on="seq", how="anti")
    branch = pl.col("root") != pl.col("seq")
    text = text.select("seq", "row", "first")
    main = pl.concat([text, _of_others(lacking.filter(~branch), known, starts)])
    above = _of_roots(lacking.filter(branch), main.join(places, on="seq"))
    frame = pl.concat([main, above])
    alone = lacking.filter(branch).join(frame, on="seq", how="anti")
    frame = pl.concat([frame, _of_others(alone, known, starts)]).join(places, on="seq")
    frame = frame.with_columns(
        pl.col("seq").is_in(text["seq"].implode()).alias("own"),
        pl.col("seq").is_in(above["seq"].implode()).alias("above"),
    )
    named = pl.struct("home_set", "task_id").struct.json_encode()
    shared = pl.when("rollout").then(pl.col("first").cast(pl.String)).otherwise(named)
    shared = pl.when(pl.col("task_id").is_not_null()).then(shared)
    return frame.select("seq", "row", "own", "above", shared.alias("shared")).sort("seq")


def _of_roots(branches: pl.DataFrame, frame: pl.DataFrame) -> pl.DataFrame:
    """``seq``, ``row`` and ``first`` of branches that have the task of their main line."""
    above = frame.select(pl.col("seq").alias("root"), "task_id", "row", "first")
    rows = branches.join(above, on=["root", "task_id"], how="inner")
    return rows.select("seq", "row", "first")


def _of_others(lacking: pl.DataFrame, known: pl.DataFrame, starts: Sequence[int]) -> pl.DataFrame:
    """As `_of_roots`, of trajectories that have the task of another attempt."""
    shard = pl.col("seq").map_batches(
        lambda seqs: pl.Series(np.searchsorted(starts, seqs.to_numpy(), "right")), pl.Int64
    )
    # One attempt of many alike stands for all of them, so that the join stays small.
    kinds = ["first", "set", "home_set", "home_env", "rollout"]
    there = known.with_columns(shard.alias("at_shard"))
    there = there.unique([*kinds, "at_shard"], keep="first", maintain_order=True)
    there = there.select("task_id", "row", "set", pl.col("first", "at_shard"),
                         pl.col(kinds[2:]).name.prefix("at_"))  # fmt: skip
    of_set = pl.col("at_home_set").eq_missing(pl.col("home_set"))
    kin = pl.col("rollout") == pl.col("at_rollout").fill_null(value=False)
    fits = [
        _alike("home_set", "set") | (_alike("home_set", "at_home_set") & kin),
        _alike("home_env", "at_home_env"),
    ]
    extra_keys = of_set & kin & ~pl.col("rollout") & (pl.col("at_shard") == pl.col("shard"))
    only = pl.when(pl.col("first").n_unique() == 1).then(pl.col("row").min())
    assigned = (
        lacking.with_columns(shard.alias("shard"))
        .join(there, on="task_id", how="inner")
        .filter(fits)
        .group_by("seq")
        .agg(pl.coalesce(pl.col("row").filter(extra_keys).min(), only).alias("row"))
        .drop_nulls("row")
    )
    return assigned.join(known.select("row", "first"), on="row", how="left")


def _alike(known: str, other: str) -> pl.Expr:
    """Whether a column is unknown, or as another one."""
    same = (pl.col(known) == pl.col(other)).fill_null(value=False)
    return pl.col(known).is_null() | same


def _keyed(rows: pl.DataFrame, owners: pl.DataFrame) -> pl.DataFrame:
    """The rows with what tells their tasks apart: ``first``, the first row of the same task.

    Returns:
        ``row``, ``seq``, ``task_id``, ``set``, ``first``, and what `homes` says of the owner.
    """
    frame = rows.join(owners.drop("task_id"), on="seq", how="left", maintain_order="left")
    frame = frame.with_columns(
        pl.col("dataset").replace("", None).alias("set"),
        pl.coalesce(pl.col("environment").replace("", None), "home_env").alias("environment"),
    )
    # The data set of a rollout is named after the run; it is the last resort.
    of_run = pl.col("rollout").fill_null(value=False) & pl.col("environment").is_not_null()
    home = pl.when(~of_run).then("home_set")
    frame = frame.with_columns(pl.coalesce(pl.col("set"), home).alias("place"))
    asked = pl.col("place").is_null()
    text = [pl.col(name).replace("", None) for name in ("instruction", "turns")]
    bare = pl.all_horizontal(item.is_null() for item in text)
    where = pl.when(pl.col("environment") != pl.col("place").fill_null("")).then("environment")
    key = (
        pl.col("place"),
        where.alias("where"),
        pl.col("task_id"),
        *(pl.when(asked).then(item).alias(f"asked_{item.meta.output_name()}") for item in text),
        pl.when(asked & bare).then(pl.col("environment_config").replace("", None)).alias("config"),
    )
    first = frame.select(pl.col("row"), *key)
    first = first.with_columns(pl.col("row").min().over(first.columns[1:]).alias("first"))
    return frame.with_columns(first["first"]).select(
        "row", "seq", "task_id", "set", "home_set", "home_env", "rollout", "first"
    )


def shard_starts(store: Store, seqs: pl.Series) -> list[int]:
    """First ``seq`` of the trajectories of each shard of a store, of which these are all."""
    sizes = [shard.rows for shard in store.manifest.tables.get("trajectories", ()) if shard.rows]
    starts = [0, *itertools.accumulate(sizes[:-1])]
    return [seqs[start] for start in starts] if sum(sizes) == len(seqs) and len(seqs) else []


class Needed(NamedTuple):
    """That a trajectory needs a row: it has a task, and not that of its main line.

    Attributes:
        seq: the trajectory.
        row: the row of the task.
        says: what tells rows of one task from others that say something else.
        shared: as in `assign`.
        stays: whether the row hangs from this trajectory in any case.
    """

    seq: int
    row: int
    says: int
    shared: str | None
    stays: bool


def places_of(needed: Iterable[Needed]) -> Iterator[Needed]:
    """Where rows hang in a table that is written anew, so that each trajectory finds its own.

    A row hangs from the first trajectory that needs it, and from each later one that would
    otherwise be taken to have another row of its task: what `adp_schema.builder` does.

    Args:
        needed: the trajectories of a shard, in order.

    Returns:
        Those that rows hang from.
    """
    seen: dict[str, int] = {}
    for item in needed:
        if item.stays or item.shared is None or seen.get(item.shared) != item.says:
            yield item
        if item.shared is not None:
            seen.setdefault(item.shared, item.says)
