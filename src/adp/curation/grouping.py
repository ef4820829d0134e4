"""Putting the trajectories of a pool into groups."""

from __future__ import annotations

import polars as pl

from adp.curation.pool import Pool
from adp.stores.condition import check_condition, own_lines
from adp_schema.errors import QueryError, RecipeError


def group_names(pool: Pool, by: str, op: str) -> pl.Series:
    """The name of the group of each member, in their order; null where it has none.

    Args:
        pool: the pool.
        by: a column of the pool, or an SQL expression over the view ``pool``.
        op: name of the op, for messages.

    Raises:
        QueryError: the expression is not valid.
        RecipeError: its values cannot name a group.
    """
    if by in pool.members.columns:
        values = pool.members[by]
    else:
        check_condition(by)
        try:
            rows = pool.query(f"SELECT seq, (\n{by}\n) AS found FROM pool", of_user=True)
        except QueryError as error:
            raise QueryError(f"the groups of {op}: {own_lines(str(error))}") from None
        values = pool.members.join(rows, on="seq", how="left", maintain_order="left")["found"]
    if values.dtype.is_nested():
        raise RecipeError(f"{op} cannot group by {by}: it is no plain value but a list")
    return values.cast(pl.String).alias("group")
