"""The selection: which trajectories and pairs each output takes, in which order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl

from adp.curation.pool import Pool
from adp.curation.recipe import Output, Recipe
from adp.curation.state import State
from adp_schema import ids
from adp_schema.errors import EmptyResultError, RecipeError

BUFFER = "buffer"
"""Name of the output that holds a replay buffer."""

_SIDES = ("context_id", "chosen_id", "rejected_id")

_ONE_COPY = pl.lit(1, dtype=pl.Int32).alias("copies")
_FIRST_STAGE = pl.lit(0, dtype=pl.Int32).alias("stage")
_MAIN = pl.lit(True).alias("main")
_BRANCH = pl.lit(False).alias("main")
_SIZES = (pl.col("size").fill_null(0), pl.col("rows").fill_null(0))


@dataclass
class OutputSelection:
    """What one output takes.

    Attributes:
        name: name of the output; empty for the only one.
        entries: one row a trajectory of the output, in order: ``position`` (its new ``seq``),
            ``seq`` (the pool's), ``trajectory_id`` (the new one), ``split``, ``stage`` and
            ``copy``, ``main`` (whether it is a main line), ``size`` and ``rows``.
        pairs: its preference pairs.
        facts_of_buffer: what the next round of a replay buffer must know.
    """

    name: str
    entries: pl.DataFrame
    pairs: pl.DataFrame | None = None
    facts_of_buffer: dict[str, Any] | None = None

    def facts(self) -> dict[str, Any]:
        """Counts for the report."""
        main = int(self.entries["main"].sum())
        return {
            "name": self.name,
            "trajectories": main,
            "branches": self.entries.height - main,
            "copies": int((self.entries["copy"] > 0).sum()),
            "pairs": self.pairs.height if self.pairs is not None else 0,
            "bytes": int(self.entries["size"].sum()),
        }


@dataclass
class Curated:
    """What a recipe did.

    Attributes:
        report: inputs, stages and outputs with their counts; plain JSON.
        ledger: one row a fact: why each trajectory is in or out.
        state: all that is known of the trajectories.
        outputs: what each output takes.
    """

    report: dict[str, Any]
    ledger: pl.DataFrame
    state: State
    outputs: list[OutputSelection]


def choose(recipe: Recipe, state: State, pool: Pool) -> list[OutputSelection]:
    """Choose what each output takes.

    Raises:
        EmptyResultError: an output would be empty.
        RecipeError: a pair names a trajectory that is not there.
    """
    outputs = [_output(name, spec, state, pool) for name, spec in recipe.outputs.items()]
    if state.buffer is not None:
        entries = _entries(state, _once(_main(state, state.buffer)), branches=True)
        outputs.append(OutputSelection(BUFFER, entries, None, state.buffer_facts))
    for output in outputs:
        if not output.entries.height:
            which = f"the output {output.name}" if output.name else "the recipe"
            spec = recipe.outputs.get(output.name)
            of_pairs = spec is not None and spec.take == "pairs"
            why = _no_pairs(state) if of_pairs else "its where fits none"
            raise EmptyResultError(f"{which} takes no trajectory: {why}; nothing was written")
    return outputs


def _no_pairs(state: State) -> str:
    """That there are no pairs, and what the ops that look for them said."""
    looked = [stage for stage in state.report if stage["op"] == "pairs"]
    if not looked:
        return "no pairs were made; add the op pairs"
    lines = [line for stage in looked for line in stage["lines"][1:]]
    return "; ".join(["no pairs were made", *lines])


def _output(name: str, spec: Output, state: State, pool: Pool) -> OutputSelection:
    if spec.take == "pairs":
        pairs = state.pairs
        if pairs is None or not pairs.height:
            return OutputSelection(
                name, _entries(state, _main(state, None).clear(), branches=False)
            )
        wanted = _with_parents(state, _named(state, pairs))
        entries = _entries(state, wanted, branches=False)
        return OutputSelection(name, entries, pairs.sort("pair_id"))
    inside = state.rows.filter(state.inside).select("seq")
    if spec.where is not None:
        inside = pool.where(spec.where)
    entries = _entries(state, _main(state, inside), branches=spec.branches)
    pairs = state.pairs
    if pairs is not None:
        known = entries.filter(pl.col("copy") == 0)["trajectory_id"].implode()
        there = [pl.col(side).is_null() | pl.col(side).is_in(known) for side in _SIDES]
        pairs = pairs.filter(pl.all_horizontal(there)).sort("pair_id")
    return OutputSelection(name, entries, pairs)


def _main(state: State, seqs: pl.DataFrame | None) -> pl.DataFrame:
    """Main lines as candidates, with their copies and stage; one row for each stage."""
    rows = state.rows.select("seq", "trajectory_id", "split", "size", "rows")
    if seqs is not None:
        rows = rows.join(seqs, on="seq", how="semi", maintain_order="left")
    if state.copies is None:
        return rows.with_columns(_ONE_COPY, _FIRST_STAGE, _MAIN)
    rows = rows.join(state.copies, on="seq", how="left", maintain_order="left_right")
    return rows.with_columns(pl.col("copies").fill_null(1), pl.col("stage").fill_null(0), _MAIN)


def _once(rows: pl.DataFrame) -> pl.DataFrame:
    """The same main lines, each once."""
    rows = rows.unique("seq", keep="first", maintain_order=True)
    return rows.with_columns(_ONE_COPY, _FIRST_STAGE)


def _named(state: State, pairs: pl.DataFrame) -> pl.DataFrame:
    """``seq`` of the trajectories that pairs name."""
    names = pl.concat([pairs[side].drop_nulls().rename("trajectory_id") for side in _SIDES])
    known = state.named("trajectory_id", "seq")
    text = names.unique().to_frame().join(known, on="trajectory_id", how="left")
    if text["seq"].null_count():
        lost = text.filter(pl.col("seq").is_null())["trajectory_id"].sort()[0]
        raise RecipeError(f"a pair names the trajectory {lost}, which is not there")
    return text.select("seq")


def _with_parents(state: State, seqs: pl.DataFrame) -> pl.DataFrame:
    """Main lines and branches of some ``seq`` and of all that they start from."""
    known = seqs
    while True:
        above = state.branches.join(known, on="seq", how="semi").select(
            pl.col("parent_seq").alias("seq")
        )
        more = above.drop_nulls().unique().join(known, on="seq", how="anti")
        if not more.height:
            break
        known = pl.concat([known, more])
    # A copy would double the pair's context, so pairs are taken once.
    main = _once(_main(state, known))
    text = state.branches.join(known, on="seq", how="semi", maintain_order="left")
    no_split = pl.lit(None, dtype=pl.String).alias("split")
    columns = ("seq", "trajectory_id", no_split, *_SIZES, _ONE_COPY, _FIRST_STAGE, _BRANCH)
    branches = text.select(*columns)
    return pl.concat([main, branches])


def _entries(state: State, chosen: pl.DataFrame, *, branches: bool) -> pl.DataFrame:
    """The rows of an output in their order: stage, copy, then input order."""
    before = pl.lit(0)
    ordered = bool((chosen["seq"].diff() > 0).all())
    if not ordered:
        # Copies are counted over the stages, so that each has a number, and an id, of its own.
        before = pl.col("copies").cum_sum().over("seq") - pl.col("copies")
    rows = chosen.with_columns(before.cast(pl.Int32).alias("copy"))
    frames = [rows]
    if branches:
        level = rows.filter(pl.col("copy") == 0)
        while level.height:
            below = _children(state, level)
            frames.append(below)
            level = below
    often = rows.filter(pl.col("copies") > 1)
    if often.height:
        numbers = pl.int_ranges(
            pl.col("copy") + 1, pl.col("copy") + pl.col("copies"), dtype=pl.Int32
        )
        more = often.with_columns(numbers.alias("copy"))
        frames.append(more.explode("copy", empty_as_null=True, keep_nulls=True))
    entries = pl.concat(frames)
    if not ordered or any(frame.height for frame in frames[1:]) or rows["stage"].n_unique() > 1:
        entries = entries.sort("stage", "copy", "seq")
    entries = _named_copies(entries, state)
    return entries.with_row_index("position").select(
        pl.col("position").cast(pl.Int64),
        *("seq", "trajectory_id", "split", "stage", "copy", "main", "size", "rows"),
    )


def _children(state: State, level: pl.DataFrame) -> pl.DataFrame:
    """The branches of some trajectories, in the split and the stage of their parents."""
    above = level.select(pl.col("seq").alias("parent_seq"), "split", "stage")
    text = state.branches.join(above, on="parent_seq", how="inner", maintain_order="left")
    fresh = pl.lit(0, dtype=pl.Int32).alias("copy")
    return text.select("seq", "trajectory_id", "split", *_SIZES, _ONE_COPY, "stage", _BRANCH, fresh)


def _named_copies(entries: pl.DataFrame, state: State) -> pl.DataFrame:
    """Give copies ids of their own: ``#2``, ``#3``."""
    if not (entries["copy"] > 0).any():
        return entries
    known = state.named("trajectory_id")["trajectory_id"]
    again = pl.col("copy") > 0
    numbering = pl.format("{}#{}", "trajectory_id", pl.col("copy") + 1)
    new = entries.filter(again).select(numbering).to_series()
    if not new.is_in(known.implode()).any() and not new.is_duplicated().any():
        named = pl.when(again).then(numbering).otherwise("trajectory_id")
        return entries.with_columns(named.alias("trajectory_id"))
    taken = set(known)
    names = []
    for name, copy in entries.select("trajectory_id", "copy").iter_rows():
        if copy:
            number = copy + 1
            while ids.numbered(name, number) in taken:
                number += 1
            name = ids.numbered(name, number)
            taken.add(name)
        names.append(name)
    return entries.with_columns(pl.Series("trajectory_id", names, dtype=pl.String))
