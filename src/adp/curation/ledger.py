"""The ledger: why each trajectory of the inputs is in or out, as a table."""

from __future__ import annotations

import polars as pl

from adp.curation.outputs import BUFFER, OutputSelection
from adp.curation.state import State

LEDGER = {
    "seq": "Key of the trajectory, as in the table annotations.",
    "input": "Name of the input.",
    "trajectory_id": "The trajectory.",
    "stage": "Number of the stage, from 0; the last number is the selection.",
    "op": "Name of the stage; output for the selection.",
    "verdict": "dropped, kept, left_out, waiting: what became of it, once each; admitted, "
    "repeated, masked, flagged, repaired, paired, not_paired and others: what was noted.",
    "step": "Step that it is about; null when it is about the whole trajectory.",
    "reason": "Why, in words that are the same for all of the kind.",
    "evidence": "What it rests on: JSON.",
}
"""Columns of the ledger."""

ENDS = ("dropped", "kept", "left_out", "waiting")
"""Verdicts that say what became of a trajectory. Each trajectory ends by one of them."""


def whole_ledger(state: State, chosen: list[OutputSelection]) -> pl.DataFrame:
    """All rows of the ledger, by trajectory and stage.

    Args:
        state: after the last stage.
        chosen: what the outputs take.
    """
    text = pl.concat([*state.ledger, _ends(state, chosen)]).with_row_index("place")
    names = state.named("seq", "input", "trajectory_id")
    text = text.join(names, on="seq", how="left", maintain_order="left")
    return text.sort("seq", "stage", "place").select(*LEDGER)


def _ends(state: State, chosen: list[OutputSelection]) -> pl.DataFrame:
    """What became of each trajectory that no stage dropped; and those that only pairs take."""
    names = pl.concat(
        [item.entries.select("seq", pl.lit(item.name).alias("out")) for item in chosen]
    )
    names = names.filter(pl.col("out") != BUFFER).unique()
    taken = names.group_by("seq").agg(pl.col("out").sort().str.join(", ").alias("taken"))
    rows = state.rows.select("seq").with_columns(state.inside.alias("inside"))
    rows = rows.join(taken, on="seq", how="left", maintain_order="left")
    rows = rows.with_columns(pl.col("seq").is_in(state.dropped().implode()).alias("dropped"))
    words = (
        pl.when(pl.col("inside") & (pl.col("taken") == ""))
        .then(pl.struct(verdict=pl.lit("kept"), reason=pl.lit("it passed every stage")))
        .when(pl.col("inside") & pl.col("taken").is_not_null())
        .then(pl.struct(verdict=pl.lit("kept"), reason=pl.format("taken by {}", "taken")))
        .when("inside")
        .then(pl.struct(verdict=pl.lit("left_out"), reason=pl.lit("no output takes it")))
        .when(~pl.col("dropped"))
        .then(pl.struct(verdict=pl.lit("waiting"), reason=pl.lit("in reserve, and no op took it")))
        .when(pl.col("taken").is_not_null())
        .then(pl.struct(verdict=pl.lit("kept_for_pairs"), reason=pl.lit("a pair names it")))
    )
    return (
        rows.with_columns(words.alias("words"))
        .unnest("words")
        .filter(pl.col("verdict").is_not_null())
        .select(
            "seq",
            pl.lit(len(state.report), dtype=pl.Int32).alias("stage"),
            pl.lit("output").alias("op"),
            "verdict",
            pl.lit(None, dtype=pl.Int32).alias("step"),
            "reason",
            pl.lit(None, dtype=pl.String).alias("evidence"),
        )
    )
