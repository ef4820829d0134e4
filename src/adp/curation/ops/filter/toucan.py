"""The six rules of Toucan's filter of completions, in its order.

1. There is a system prompt. 2. The agent calls a tool. 3. There are no results, or one of them has
none of the words that report an error (`ERRORS`); of several turns of the user, only results from
the second turn on count. 4. No text of the agent holds ``[Error``. 5. The last message is not an
empty one of the agent. 6. No text of the agent holds twelve exclamation marks in a row.

A message is a step, or an observation that arrived after a step of the agent; the text of a step
is its prose where calls were parsed out of it. An observation before the first step counts as a
system prompt when its sender is called ``system``, as ADP v1 writes it.
"""

from __future__ import annotations

import polars as pl

from adp.curation.ops.filter.options import Filter
from adp.curation.ops.filter.verdicts import Verdicts
from adp.curation.partitions import Partition
from adp.curation.pool import Pool

ERRORS = (
    *("error", "exception", "failed", "not found", "unavailable", "invalid", "timed out"),
    *("could not", "does not exist", "unsuccessful", "no .* found", "too many requests"),
    *("no device selected", "no active sessions", "missing required credentials"),
    *("unauthorized", "not authorized", "not authenticated", "未找到", "失败"),
)
"""Expressions; a result in which one of them is found, whatever the case, is no good result."""

RULES = {
    "system": "no system prompt",
    "calls": "no tool call",
    "good": "no good result",
    "clean": "an error in the agent's text",
    "final": "the last message is empty",
    "calm": "a run of exclamation marks",
}
"""Column of `work` -> reason, in the order of the rules."""


def judge(pool: Pool, options: Filter, verdicts: Verdicts) -> None:
    """Apply the rules."""
    rows = pool.map(work, options.later_turns, "toucan")
    counts = dict.fromkeys(RULES.values(), 0)
    for row in rows.iter_rows(named=True):
        failed = [reason for name, reason in RULES.items() if not row[name]]
        if failed:
            counts[failed[0]] += 1
            verdicts.drop(row["seq"], failed[0], all=failed, results=row["results"])
    verdicts.summary["toucan"] = {"valid": rows.height - sum(counts.values()), **counts}


def work(partition: Partition, later_turns: bool) -> pl.DataFrame:
    """``seq``, whether each rule is met, and how many results count."""
    steps = partition.read("steps", ("step", "source", "kind", "text", "prose")).filter(
        pl.col("kind").is_null() | pl.col("kind").is_in(["message", "llm_turn"])
    )
    steps = steps.with_columns(pl.coalesce("prose", "text").fill_null("").alias("said"))
    calls = partition.read("tool_calls", ("step", "requestor"))
    frame = calls.filter((pl.col("requestor") != "user").fill_null(value=True))
    seen = partition.read("observations", ("step", "order", "source", "name", "text"))
    seqs = partition.seqs()
    flags = {
        "system": pl.concat(
            [
                steps.filter(pl.col("source") == "system").select("seq"),
                seen.filter((pl.col("step") < 0) & (pl.col("name") == "system")).select("seq"),
            ]
        ),
        "calls": frame.select("seq"),
        "bad_text": _texts(steps, r"(?i)\[error"),
        "bad_run": _texts(steps, "!!!!!!!!!!!!"),
        "bad_end": _empty_end(steps, seen),
    }
    for name, members in flags.items():
        seqs = seqs.with_columns(pl.col("seq").is_in(members["seq"].implode()).alias(name))
    seqs = seqs.join(_good(steps, seen, later_turns), on="seq", how="left")
    return seqs.select(
        "seq",
        "system",
        "calls",
        pl.col("good").fill_null(value=True),
        (~pl.col("bad_text")).alias("clean"),
        (~pl.col("bad_end")).alias("final"),
        (~pl.col("bad_run")).alias("calm"),
        pl.col("results").fill_null(0),
    )


def _texts(steps: pl.DataFrame, pattern: str) -> pl.DataFrame:
    """``seq`` of trajectories in which a text of the agent matches."""
    agent = steps.filter(pl.col("source") == "agent")
    return agent.filter(pl.col("said").str.contains(pattern)).select("seq")


def _empty_end(steps: pl.DataFrame, seen: pl.DataFrame) -> pl.DataFrame:
    """``seq`` of trajectories whose last message is an empty one of the agent."""
    last = steps.sort("seq", "step").group_by("seq", maintain_order=True).last()
    latest = seen.group_by("seq").agg(pl.col("step").max().alias("seen"))
    return (
        last.join(latest, on="seq", how="left")
        .filter((pl.col("source") == "agent") & (pl.col("said").str.strip_chars() == ""))
        .filter(pl.col("seen").is_null() | (pl.col("seen") < pl.col("step")))
        .select("seq")
    )


def _good(steps: pl.DataFrame, seen: pl.DataFrame, later_turns: bool) -> pl.DataFrame:
    """``good`` and ``results`` of the trajectories that have results that count."""
    second = (
        steps.filter(pl.col("source") == "user")
        .sort("seq", "step")
        .group_by("seq", maintain_order=True)
        .agg(pl.col("step").get(1, null_on_oob=True).alias("second"))
    )
    rows = seen.filter(pl.col("step") >= 0).join(second, on="seq", how="left")
    if later_turns:
        rows = rows.filter(pl.col("second").is_null() | (pl.col("step") >= pl.col("second")))
    bad = pl.col("text").str.contains("(?i)" + "|".join(ERRORS)).fill_null(value=True)
    return rows.group_by("seq").agg(
        (~bad & (pl.col("text") != "")).any().alias("good"),
        pl.len().cast(pl.Int64).alias("results"),
    )
