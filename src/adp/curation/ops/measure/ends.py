"""How a trajectory ends, and what was cut."""

from __future__ import annotations

import polars as pl

from adp.curation.ops.measure.rows import PartitionRows

LENGTH = r"^(?:length|max_?(?:output_|new_)?tokens.*|token_limit|model_length|context_length.*)$"
"""Why a model stopped, when its answer was cut."""

LIMIT = (
    r"limit|max_|length|timeout|timed_out|exit_cost|exit_context|budget|exceeded|truncated"
    r"|too_many_steps"
)
"""Why a run stopped, when a limit ended it."""

_CUT = (
    r"\[[^\]\n]*\b(?:truncated|omitted|elided|clipped)\b[^\]\n]*\]|<response clipped>"
    r"|\b(?:output|observation|result|response|content|file|text)"
    r" (?:was |is |has been |too long,? )?truncated"
    r"|\b[0-9,]+ (?:more )?(?:characters|chars|lines|tokens|bytes) (?:were |are )?"
    r"(?:truncated|omitted|elided)"
    r"|\btruncated (?:to|because|due|after|at) |\.\.\. ?\(?truncated"
)
_CUT_WORDS = ["truncated", "omitted", "elided", "clipped"]


def measure(rows: PartitionRows) -> pl.DataFrame:
    """Ends and cuts of each trajectory."""
    agent = rows.steps.filter(pl.col("agent"))
    reason = pl.col("stop_reason").str.to_lowercase()
    steps = agent.group_by("seq").agg(
        reason.str.contains(LENGTH).sum().cast(pl.Int64).alias("cut_steps"),
        reason.str.contains(LENGTH).sort_by("step").last().alias("cut_last"),
    )
    results = rows.results
    # The expression is slow, and few texts hold one of its words.
    words = pl.col("text").str.contains_any(_CUT_WORDS, ascii_case_insensitive=True)
    frame = results.filter(words).filter(is_cut(pl.col("text")))
    truncated = results.filter(pl.col("truncated").fill_null(value=False))
    places = pl.concat(
        [item.select("seq", "step", "order") for item in (frame, truncated)]
    ).unique()
    cut = places.group_by("seq").agg(pl.len().cast(pl.Int64).alias("cut_results"))
    runs = rows.trajectories.select(
        "seq",
        "truncated",
        pl.col("stop_reason").str.to_lowercase().str.contains(LIMIT).alias("limit"),
        (pl.col("final_answer").str.strip_chars() == "").alias("no_answer"),
    )
    return (
        runs.join(steps, on="seq", how="left")
        .join(cut, on="seq", how="left")
        .join(_empty(rows), on="seq", how="left")
        .select(
            "seq",
            _any_known("truncated", "limit", "cut_last").alias("run_truncated"),
            pl.col("cut_steps", "cut_results").fill_null(0),
            _any_known("empty", "no_answer").alias("empty_final"),
        )
    )


def is_cut(text: pl.Expr) -> pl.Expr:
    """Whether a text says that it was cut."""
    return text.str.contains(f"(?i){_CUT}")


def _any_known(*names: str) -> pl.Expr:
    """Whether one of the columns is true; null when none is known."""
    unknown = pl.all_horizontal(pl.col(name).is_null() for name in names)
    true = pl.any_horizontal(pl.col(name).fill_null(value=False) for name in names)
    return pl.when(unknown).then(None).otherwise(true)


def _empty(rows: PartitionRows) -> pl.DataFrame:
    """``empty``: the last step of the agent has neither text nor a picture nor calls."""
    last = rows.steps.filter(pl.col("agent")).group_by("seq").agg(pl.all().sort_by("step").last())
    called = rows.calls.select("seq", "step", called=pl.lit(value=True)).unique()
    blank = pl.col("text").fill_null("").str.strip_chars() == ""
    other = pl.col("content").fill_null("").str.contains_any(['"media"', '"opaque"'])
    return last.join(called, on=["seq", "step"], how="left").select(
        "seq", (blank & ~other & pl.col("called").is_null()).alias("empty")
    )
