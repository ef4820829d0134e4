"""The ledger: why each trajectory of the inputs is in or out, as a table."""

from __future__ import annotations

import polars as pl

from adp.curation import mapped_frames
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
    seqs = state.rows["seq"].rechunk()
    inside = state.inside.rechunk().alias("inside")
    dropped = seqs.is_in(state.dropped().implode()).alias("dropped")
    rows = pl.DataFrame([seqs, inside, dropped, _taken(seqs, chosen)])
    last = len(state.report)
    parts: list[pl.DataFrame] = []
    size = mapped_frames.MAPPED_ROWS
    for start in range(0, max(rows.height, 1), size):
        part = rows.slice(start, size)
        # Notes may be about branches too, whose numbers lie between those of the main lines.
        first = part["seq"][0] if start else None
        behind = rows["seq"][start + size] if start + size < rows.height else None
        text = pl.concat(
            [*(_between(note, first, behind) for note in state.ledger), _ends(part, last)]
        )
        columns = ("seq", "input", "trajectory_id")
        branches = _between(state.branches.select(columns), first, behind)
        names = pl.concat([state.rows.select(columns).slice(start, size), branches])
        text = text.join(names, on="seq", how="left", maintain_order="left")
        text = text.sort("seq", "stage", maintain_order=True).select(*LEDGER)
        path = state.folder / f"ledger-{len(parts):04d}.arrow"
        parts.append(mapped_frames.mapped(text, path))
    return pl.concat(parts)


def _between(frame: pl.DataFrame, first: int | None, behind: int | None) -> pl.DataFrame:
    """The rows from one ``seq`` until before another one; None is no bound."""
    low = pl.lit(True) if first is None else pl.col("seq") >= first
    high = pl.lit(True) if behind is None else pl.col("seq") < behind
    return frame.filter(low & high)


def _taken(seqs: pl.Series, chosen: list[OutputSelection]) -> pl.Series:
    """``taken``: the names of the outputs that take each trajectory; null when none does."""
    outputs = sorted((item for item in chosen if item.name != BUFFER), key=lambda item: item.name)
    there = [seqs.is_in(item.entries["seq"].implode()) for item in outputs]
    frame = pl.DataFrame([flag.alias(str(place)) for place, flag in enumerate(there)])
    names = [pl.when(str(place)).then(pl.lit(item.name)) for place, item in enumerate(outputs)]
    joined = pl.concat_str(names, separator=", ", ignore_nulls=True)
    return frame.select(pl.when(pl.any_horizontal("*")).then(joined).alias("taken")).to_series()


def _ends(rows: pl.DataFrame, last: int) -> pl.DataFrame:
    """What became of each trajectory that no stage dropped; and those that only pairs take.

    Args:
        rows: ``seq``, ``inside``, ``dropped`` and ``taken``.
        last: number of the selection.
    """
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
            pl.lit(last, dtype=pl.Int32).alias("stage"),
            pl.lit("output").alias("op"),
            "verdict",
            pl.lit(None, dtype=pl.Int32).alias("step"),
            "reason",
            pl.lit(None, dtype=pl.String).alias("evidence"),
        )
    )
