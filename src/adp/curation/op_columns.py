"""Columns that an op gives: whether the rest of a recipe can keep them and name them in SQL."""

from __future__ import annotations

import polars as pl
import pyarrow as pa

from adp.curation.pool import COLUMNS
from adp.curation.recipe import Stage
from adp.curation.stage_files import as_arrow
from adp_schema.errors import RecipeError
from adp_schema.tables import TABLES


def checked(columns: pl.DataFrame, stage: str, keys: tuple[str, ...] = ("seq",)) -> pl.DataFrame:
    """The same columns, with whole numbers as keys.

    Args:
        columns: the keys and new columns.
        stage: name of the stage, for errors.
        keys: columns that say which row is meant.

    Raises:
        RecipeError: a key is missing or is no whole number, or a column has no name or is of a
            kind that cannot be written.
    """
    for key in keys:
        if key not in columns.columns:
            raise RecipeError(f"stage {stage} gives no column {key}; add it")
        kind = columns.schema[key]
        if not (kind.is_integer() or kind == pl.Null):
            raise RecipeError(f"stage {stage} gives {key} as {kind}; give whole numbers")
        if columns[key].null_count():
            raise RecipeError(f"stage {stage} gives rows without {key}; leave them out")
    for name in columns.columns:
        if not name:
            raise RecipeError(f"stage {stage} gives a column without a name; name it")
        try:
            as_arrow(columns.select(pl.col(name)).clear())
            if columns.schema[name] == pl.Struct([]):
                raise pa.ArrowInvalid("a struct without fields")
        except (pa.ArrowException, pl.exceptions.PolarsError, ValueError) as error:
            kind = columns.schema[name]
            raise RecipeError(
                f"stage {stage} gives the column {name} as {kind}, which cannot be kept; cast it"
            ) from error
    return columns.with_columns(pl.col(*keys).cast(pl.Int64))


RESERVED = (
    *COLUMNS,
    *(name for name in TABLES["trajectories"].schema.names if name not in COLUMNS),
)
"""Columns that every trajectory has, which no op can add: the view ``pool`` shows them."""


def taken(stage: Stage, column: str, what: str = "column") -> RecipeError:
    """The error for a column of a stage that is there already.

    Args:
        stage: the stage.
        column: what its column is called in the pool.
        what: what the column is, such as ``"step column"``.
    """
    reserved = what == "column" and column.lower() in map(str.lower, RESERVED)
    owner = "every trajectory has it" if reserved else "an earlier stage gives it"
    return RecipeError(
        f"stage {stage.name}: the {what} {column} is there already, {owner}; name the stage, and "
        "its columns begin with that name: as stands beside the op, not in its options, such as "
        f"{{{stage.op}: {{...}}, as: mine}}"
    )


def twice(names: list[str], there: list[str]) -> str | None:
    """The first of some new names that is there already; SQL takes capitals for small letters."""
    known = {name.lower() for name in there}
    for name in names:
        if name.lower() in known:
            return name
        known.add(name.lower())
    return None
