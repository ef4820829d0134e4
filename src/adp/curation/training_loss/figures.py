"""From sums of sequences to the figures of trajectories and steps."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import polars as pl

from adp.curation.training_loss.model_sums import Sums

DIGITS = 5
"""Digits behind the point of losses and ratios: the batch shows in the seventh in all."""

NOTHING = "no token is trained"
NOT_FINITE = "the model gives no finite training loss"
TOO_LARGE = "the perplexity is larger than a number holds"
NO_ALONE = "the answers alone have no training loss to divide by"

EVENTS = pl.Schema(
    {
        "seq": pl.Int64,
        "step": pl.Int32,
        "verdict": pl.String,
        "reason": pl.String,
        "evidence": pl.String,
    }
)


def step_sums(index: pl.DataFrame, sums: Mapping[str, Sums]) -> pl.DataFrame:
    """The sums of each step of each trajectory.

    Args:
        index: rows of `sequences.INDEX`.
        sums: of each sequence, by key.

    Returns:
        ``seq``, ``step``; ``tokens``, ``loss`` and ``plain`` of the rows of training, and
        ``alone_tokens`` and ``alone`` of the answers alone; sorted.
    """
    rows: dict[tuple[int, int], list[float]] = {}
    asked = index.filter(pl.col("row").is_not_null())
    for seq, alone, key, steps in asked.select("seq", "alone", "key", "steps").iter_rows():
        for step, (tokens, loss, plain) in zip(steps, sums.get(key, ()), strict=True):
            total = rows.setdefault((seq, step), [0, 0.0, 0.0, 0, 0.0])
            values = (0, 0.0, 0.0, tokens, plain) if alone else (tokens, loss, plain, 0, 0.0)
            for place, value in enumerate(values):
                total[place] += value
    names = ("tokens", "loss", "plain", "alone_tokens", "alone")
    kinds = (pl.Int64, pl.Float64, pl.Float64, pl.Int64, pl.Float64)
    frame = pl.DataFrame(
        {
            "seq": [seq for seq, _ in rows],
            "step": [step for _, step in rows],
            **{name: [row[place] for row in rows.values()] for place, name in enumerate(names)},
        },
        schema={"seq": pl.Int64, "step": pl.Int32, **dict(zip(names, kinds, strict=True))},
    )
    return frame.sort("seq", "step")


def _ratios(*, ifd: bool) -> list[pl.Expr]:
    """The figures, of columns with sums."""

    def finite(value: pl.Expr, digits: int | None = DIGITS) -> pl.Expr:
        value = pl.when(value.is_finite()).then(value)
        return value if digits is None else value.round(digits)

    loss = finite(pl.col("loss") / pl.col("tokens"))
    plain = finite(pl.col("plain") / pl.col("tokens"))
    results = [
        loss.alias("loss"),
        finite(plain.exp().round_sig_figs(6), None).alias("perplexity"),
    ]
    if ifd:
        # The same tokens on both sides, unless nothing stands before an answer alone.
        whole = (pl.col("alone") > 0) & (pl.col("alone_tokens") > 0)
        mean = pl.col("alone") / pl.col("alone_tokens")
        ratio = finite(pl.col("plain") / pl.col("tokens") / mean)
        results.append(pl.when(whole).then(ratio).alias("ifd"))
    return [*results, pl.col("tokens").alias("trained_tokens")]


def figures(
    index: pl.DataFrame, sums: Mapping[str, Sums], *, ifd: bool
) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Figures of trajectories and of steps, and what could not be had.

    Args:
        index: rows of `sequences.INDEX`.
        sums: of each sequence, by key.
        ifd: whether answers alone were asked about.

    Returns:
        ``seq`` and columns, one row a trajectory; ``seq``, ``step`` and columns; events.
    """
    by_step = step_sums(index, sums)
    whole = by_step.group_by("seq").agg(pl.exclude("seq", "step").sum())
    rows = index.filter(pl.col("row").is_not_null() & ~pl.col("alone").fill_null(False))
    sizes = rows.group_by("seq").agg(
        pl.col("length").cast(pl.Int64).sum().alias("row_tokens"),
        pl.len().cast(pl.Int64).alias("training_rows"),
    )
    lost = index.filter(pl.col("row").is_null()).select("seq", "lost")
    full = lost.select("seq").join(whole, on="seq", how="left").join(sizes, on="seq", how="left")
    zero = pl.col("tokens", "row_tokens", "training_rows").fill_null(0)
    full = full.with_columns(zero).sort("seq")
    columns = full.select("seq", *_ratios(ifd=ifd), "row_tokens", "training_rows")
    steps = by_step.select("seq", "step", *_ratios(ifd=ifd))
    return columns, steps, _events(columns, full, lost, ifd=ifd)


def _events(
    columns: pl.DataFrame, full: pl.DataFrame, lost: pl.DataFrame, *, ifd: bool
) -> pl.DataFrame:
    """What could not be had, and why."""
    rows: list[dict[str, Any]] = []
    losses = dict(lost.iter_rows())
    nothing = [None] * columns.height
    numbers = zip(
        columns["seq"],
        columns["loss"],
        columns["perplexity"],
        columns["ifd"] if ifd else nothing,
        full["tokens"],
        strict=True,
    )
    for seq, loss, perplexity, ratio, tokens in numbers:
        reasons: dict[str, int] = json.loads(losses[seq])

        def note(verdict: str, reason: str, evidence: str | None, seq: int = seq) -> None:
            rows.append({"seq": seq, "verdict": verdict, "reason": reason, "evidence": evidence})

        evidence = losses[seq] if reasons else None
        if not tokens:
            first = min(reasons, key=lambda name: (-reasons[name], name), default=NOTHING)
            note("not_scored", first, evidence)
        elif loss is None:
            note("not_scored", NOT_FINITE, None)
        else:
            if reasons:
                note("partly_scored", "some steps are in no row", evidence)
            if perplexity is None:
                note("partly_scored", TOO_LARGE, None)
            if ifd and ratio is None:
                note("partly_scored", NO_ALONE, None)
    return pl.DataFrame(rows, schema=EVENTS)
