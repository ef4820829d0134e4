"""Columns of the user's own: from SQL, or from a file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pydantic import Field, model_validator

from adp.curation.op import Op, OpOptions, Outcome
from adp_schema.errors import RecipeError

if TYPE_CHECKING:
    import polars as pl

    from adp.curation.pool import Pool


class Annotate(OpOptions):
    """Options of `annotate`; exactly one of ``sql``, ``expressions`` and ``file``."""

    sql: str | None = Field(
        None, description="A SELECT that gives the column seq and new columns, one row each."
    )
    expressions: dict[str, str] = Field(
        default_factory=dict, description="New column -> SQL expression over the view pool."
    )
    file: str | None = Field(
        None, description="Parquet, CSV or JSON Lines file with new columns, such as losses."
    )
    key: str = Field("trajectory_id", description="Column of the file and the pool to join on.")

    @model_validator(mode="after")
    def _one(self) -> Annotate:
        if sum([self.sql is not None, bool(self.expressions), self.file is not None]) != 1:
            raise ValueError("give exactly one of sql, expressions and file")
        return self


def run(pool: Pool, options: Annotate) -> Outcome:
    """Add the columns."""
    if options.sql is not None:
        found = pool.query(options.sql)
        if "seq" not in found.columns:
            raise RecipeError("the SELECT of annotate gives no column seq; add it to the SELECT")
    elif options.expressions:
        items = ", ".join(f'({sql}\n) AS "{name}"' for name, sql in options.expressions.items())
        found = pool.query(f"SELECT seq, {items} FROM pool ORDER BY seq")
    else:
        found = _from_file(pool, options)
    if found["seq"].is_duplicated().any():
        twice = found.filter(found["seq"].is_duplicated())["seq"].unique()
        names = pool.members.filter(pool.members["seq"].is_in(twice.implode()))["trajectory_id"]
        example = f", such as {names.sort()[0]}" if names.len() else ""
        raise RecipeError(
            f"annotate gives {len(twice):,} trajectories more than one row{example}; give one each"
        )
    named = pool.members.join(found, on="seq", how="semi").height
    return Outcome(
        columns=found,
        summary={"rows": found.height, "members": named},
        lines=[f"{named:,} of {len(pool):,} trajectories got a row"],
    )


def _from_file(pool: Pool, options: Annotate) -> pl.DataFrame:
    import polars as pl

    assert options.file is not None
    path = pool.folder / options.file
    try:
        if path.suffix == ".parquet":
            rows = pl.read_parquet(path)
        elif path.suffix == ".csv":
            rows = pl.read_csv(path)
        elif path.suffix in (".jsonl", ".ndjson"):
            rows = pl.read_ndjson(path)
        else:
            raise RecipeError(f"annotate reads .parquet, .csv and .jsonl, not {options.file}")
    except (OSError, pl.exceptions.PolarsError) as error:
        raise RecipeError(f"annotate cannot read {options.file}: {error}") from None
    if options.key not in rows.columns or options.key not in pool.members.columns:
        raise RecipeError(f"annotate finds no column {options.key} in {options.file} and the pool")
    both = [name for name in rows.columns if name in pool.members.columns and name != options.key]
    if both:
        raise RecipeError(f"the column {both[0]} of {options.file} is there already; rename it")
    keys = pool.members.select("seq", options.key)
    if options.key == "seq":
        return rows
    joined = keys.join(rows, on=options.key, how="inner", maintain_order="left")
    return joined.drop(options.key)


def _columns(options: Annotate) -> Mapping[str, str]:
    return {name: f"The expression {sql}" for name, sql in options.expressions.items()}


OP = Op(
    name="annotate",
    title="Add columns of your own, from SQL or from a file.",
    options=Annotate,
    run=run,
    cost="One query; memory for the new columns.",
    source="Attributes kept beside the documents, as in the Dolma toolkit.",
    columns=_columns,
)
