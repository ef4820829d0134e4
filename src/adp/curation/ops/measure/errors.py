"""Failed results, and whose fault they were.

A failed result says nothing about a trajectory by itself: good agents fail and recover. So these
are numbers, and what failed around the agent is kept apart from what it did wrong; see the table
of `faults`.
"""

from __future__ import annotations

import polars as pl

from adp.curation.ops.measure import faults
from adp.curation.ops.measure.rows import PartitionRows


def measure_errors(rows: PartitionRows) -> pl.DataFrame:
    """Failed results of each trajectory."""
    counted = rows.results.group_by("seq").agg(
        pl.col("failed").count().cast(pl.Int64).alias("known_results"),
        pl.col("failed").sum().cast(pl.Int64).alias("n_errors"),
        pl.col("looks").sum().cast(pl.Int64).alias("likely_errors"),
    )
    counts = rows.seqs.join(counted, on="seq", how="left").fill_null(0)
    rate = pl.col("n_errors") / pl.col("known_results")
    known = pl.col("known_results") > 0
    return counts.with_columns(pl.when(known).then(rate).alias("error_rate"))


def measure_faults(rows: PartitionRows) -> pl.DataFrame:
    """Faults by side. Results of unknown status count when they look failed."""
    failed = rows.results.filter(pl.coalesce("recorded", "looks")).with_columns(
        side=faults.side(
            pl.concat_str(pl.col("error_type", "text"), separator=" ", ignore_nulls=True)
        )
    )
    names = {faults.INFRA: "infra_errors", faults.MODEL: "model_errors", "other": "other_errors"}
    counted = failed.group_by("seq").agg(
        (pl.col("side") == side).sum().cast(pl.Int64).alias(name) for side, name in names.items()
    )
    ended = pl.concat_str(pl.col("error_type", "error_message"), separator=" ", ignore_nulls=True)
    wrong = pl.any_horizontal(pl.col("error_type", "error_message").is_not_null())
    runs = rows.trajectories.select(
        "seq", pl.when(wrong).then(faults.side(ended)).alias("run_fault")
    )
    fill_null = rows.seqs.join(counted, on="seq", how="left").fill_null(0)
    return fill_null.join(runs, on="seq", how="left")


def error_steps(rows: PartitionRows) -> pl.DataFrame:
    """``seq``, ``step`` and ``is_error_step`` of the steps of the agent.

    A result that answers no call counts for the step after which it arrived: a reply that could
    not be parsed is answered so.
    """
    step = pl.coalesce("call_step", "step")
    known = rows.results.filter(pl.col("failed").is_not_null())
    by_step = known.group_by("seq", step.alias("step")).agg(
        pl.col("failed").any().alias("is_error_step")
    )
    return rows.agent_steps.join(by_step, on=["seq", "step"], how="left", maintain_order="left")
