"""Which of several alike trajectories stays: an order that the user gives."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from adp_schema.errors import RecipeError

DEFAULT_KEEP = ("reward desc", "tokens asc")

KEEP_TEXT = (
    "Which of several alike trajectories stays: columns of the pool, the first one first, each "
    "with asc or desc; nulls come last, and the trajectory_id decides at the end. Where no op has "
    "counted tokens, the size in bytes stands for the column tokens."
)
"""Description of the option ``keep``."""


def check_keep(keep: Sequence[str]) -> Sequence[str]:
    """Check an option ``keep``.

    Raises:
        ValueError: an entry is not a column with ``asc`` or ``desc``.
    """
    for entry in keep:
        column, _, way = entry.partition(" ")
        if not column or way not in ("asc", "desc"):
            raise ValueError(f"{entry!r} is not a column with asc or desc, such as 'reward desc'")
    return keep


def keep_columns(keep: Sequence[str]) -> list[str]:
    """The columns that an option ``keep`` needs; the size may stand for ``tokens``."""
    columns = [entry.partition(" ")[0] for entry in keep]
    return [column for column in columns if column != "tokens"]


def in_order(
    members: pl.DataFrame, keep: Sequence[str], columns: Sequence[str] | None = None
) -> pl.DataFrame:
    """The trajectories in the order in which they would stay, the best one first.

    Args:
        members: `Pool.members`.
        keep: a checked option ``keep``.
        columns: what is needed of them; None takes all columns.

    Raises:
        RecipeError: a column has no order.
    """
    return members.select(columns or members.columns)[places_in_order(members, keep)]


def places_in_order(members: pl.DataFrame, keep: Sequence[str]) -> pl.Series:
    """The places of the trajectories in the order in which they would stay; see `in_order`."""
    keys, down = [], []
    for entry in keep:
        column, _, way = entry.partition(" ")
        if column == "tokens" and column not in members.columns:
            column = "size"
        kind = members.schema[column]
        if kind.is_nested():
            raise RecipeError(f"keep: the column {column} holds lists or objects; name another")
        key = pl.col(column)
        keys.append(key.fill_nan(None) if kind.is_float() else key)
        down.append(way == "desc")
    ends = [pl.col("trajectory_id"), pl.col("seq")]
    named = [key.alias(f"$key{place}") for place, key in enumerate(keys)]
    sort_keys = members.select(*named, *ends)
    ways = [*down, False, False]
    order = pl.arg_sort_by(sort_keys.columns, descending=ways, nulls_last=True)
    return sort_keys.select(order).to_series()
