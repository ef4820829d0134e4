"""Columns of the user's own: from SQL, or from a file."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl
from pydantic import Field, model_validator

from adp.core.frame_files import SUFFIXES, read_frame
from adp.curation.op import Op, OpOptions, OpResult
from adp.curation.op_columns import checked
from adp.curation.pool import Pool
from adp.stores.condition import check_condition
from adp_schema.errors import QueryError, RecipeError
from adp_schema.views import quote_name


class Annotate(OpOptions):
    """Options of `annotate`; exactly one of ``sql``, ``expressions`` and ``file``."""

    sql: str | None = None
    """A SELECT that gives the column seq and new columns, one row each."""
    expressions: dict[str, str] = Field(default_factory=dict)
    """New column -> SQL expression over the view pool."""
    file: str | None = None
    """Parquet, CSV or JSON Lines file with new columns, such as losses."""
    key: str = "trajectory_id"
    """Column of the file and the pool to join on."""

    @model_validator(mode="after")
    def _single_source(self) -> Annotate:
        if sum([self.sql is not None, bool(self.expressions), self.file is not None]) != 1:
            raise ValueError("give exactly one of sql, expressions and file")
        return self


def run(pool: Pool, options: Annotate) -> OpResult:
    """Add the columns."""
    most = sum(source.store.manifest.rows("trajectories") for source in pool.inputs)
    if options.sql is not None:
        rows = pool.query(options.sql, most=most + 1, of_user=True)
    elif options.expressions:
        rows = _from_expressions(pool, options.expressions)
    else:
        rows = _from_file(pool, options)
    if rows.height > most:
        raise RecipeError("annotate gives more rows than there are trajectories; give one each")
    rows = checked(rows, "annotate")
    if rows["seq"].is_duplicated().any():
        twice = rows.filter(rows["seq"].is_duplicated())["seq"].unique()
        names = pool.members.filter(pool.members["seq"].is_in(twice.implode()))["trajectory_id"]
        example = f", such as {names.sort()[0]}" if names.len() else ""
        raise RecipeError(
            f"annotate gives {len(twice):,} trajectories more than one row{example}; give one each"
        )
    named = pool.members.join(rows, on="seq", how="semi").height
    return OpResult(
        columns=rows,
        summary={"rows": rows.height, "members": named},
        lines=[f"{named:,} of {len(pool):,} trajectories got a row"],
    )


def _from_expressions(pool: Pool, expressions: Mapping[str, str]) -> pl.DataFrame:
    items = []
    for name, sql in expressions.items():
        try:
            check_condition(sql)
        except QueryError as error:
            text = str(error).partition(";")[0].replace("condition", "expression")
            raise RecipeError(f"annotate, column {name}: {text}") from None
        items.append(f"({sql}\n) AS {quote_name(name)}")
    return pool.query(f"SELECT seq, {', '.join(items)} FROM pool ORDER BY seq", of_user=True)


def _from_file(pool: Pool, options: Annotate) -> pl.DataFrame:
    assert options.file is not None
    path = pool.folder / options.file
    try:
        if path.suffix not in SUFFIXES:
            raise RecipeError(f"annotate reads .parquet, .csv and .jsonl, not {options.file}")
        rows = read_frame(path)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise RecipeError(f"annotate cannot read {options.file}: {error}") from None
    if options.key not in rows.columns or options.key not in pool.members.columns:
        raise RecipeError(f"annotate finds no column {options.key} in {options.file} and the pool")
    both = [name for name in rows.columns if name in pool.members.columns and name != options.key]
    if both:
        raise RecipeError(f"the column {both[0]} of {options.file} is there already; rename it")
    if options.key == "seq":
        return rows
    keys = pool.members.select("seq", options.key)
    if keys.schema[options.key] != rows.schema[options.key]:
        raise RecipeError(
            f"{options.key} is {rows.schema[options.key]} in {options.file} and "
            f"{keys.schema[options.key]} in the pool; write it the same way"
        )
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
