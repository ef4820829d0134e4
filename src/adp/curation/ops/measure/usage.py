"""Results that nothing later refers to.

A cheap sign of calls that were for nothing. The *distinctive* words of a result are those that no
text of the trajectory had before it: numbers of two digits and more, and names of six letters and
more, in ASCII. The result is *used* when one of them is in a later text, reasoning or call of the
agent, and *unused* when none is. A result without distinctive words is not judged; neither is what
no later step of the agent follows.

It says nothing about what a call did: the words "file written" are rarely taken up, although the
file was needed. And a word may come back by chance, so the true number is higher. Of a result the
first `RESULT` characters are read, of other texts the first `OTHER`.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from adp.curation.ops.measure.rows import PartitionRows

WORD = r"[0-9][0-9.,:]*[0-9]|[A-Za-z_][A-Za-z0-9_]{5,}"
RESULT = 2_000
OTHER = 20_000

_STEP, _CALL, _RESULT = 0, 1, 2
_SHIFT = 1 << 20
"""A place is the step times this, the rank of the text in it, and the order of the result."""


def measure(rows: PartitionRows) -> pl.DataFrame:
    """Unused and judged results of each trajectory."""
    words = _words(rows)
    first, last = _ends(words)
    place = pl.col("place")
    results = (
        words.select("seq", "place", first=first, last=last)
        .filter((place % _SHIFT >= _RESULT) & (place == pl.col("first")))
        .group_by("seq", "place")
        .agg((pl.col("last") > place).any().alias("used"))
    )
    end = rows.steps.filter(pl.col("agent")).group_by("seq").agg(pl.col("step").max().alias("end"))
    judged = results.join(end, on="seq", how="inner").filter(
        pl.col("place") // _SHIFT < pl.col("end")
    )
    counted = judged.group_by("seq").agg(
        pl.len().cast(pl.Int64).alias("judged_results"),
        (~pl.col("used")).sum().cast(pl.Int64).alias("unused_results"),
    )
    return rows.seqs.join(counted, on="seq", how="left").fill_null(0)


def _ends(words: pl.DataFrame) -> tuple[pl.Series, pl.Series]:
    """For each word the first place of it in its trajectory, and the last where the agent says it.

    Sorting one number that stands for both is faster than grouping by the two.
    """
    size = words.height
    if not size:
        return pl.Series([], dtype=pl.Int64), pl.Series([], dtype=pl.Int64)
    seq = words["seq"].to_numpy().astype(np.uint64)
    key = words["word"].to_numpy() + seq * np.uint64(0x9E3779B97F4A7C15)
    order = np.argsort(key)
    ordered = key[order]
    starts = np.concatenate(([0], np.flatnonzero(ordered[1:] != ordered[:-1]) + 1))
    place = words["place"].to_numpy()
    where = np.where(words["agent"].to_numpy(), place, -_SHIFT)
    lengths = np.diff(np.concatenate((starts, [size])))
    ends = []
    for reduce, values in ((np.minimum, place), (np.maximum, where)):
        full = np.empty(size, np.int64)
        full[order] = np.repeat(reduce.reduceat(values[order], starts), lengths)
        ends.append(pl.Series(full))
    return ends[0], ends[1]


def _words(rows: PartitionRows) -> pl.DataFrame:
    """``seq``, ``place``, ``agent`` and ``word`` (a number that stands for it)."""
    step = pl.col("step").cast(pl.Int64) * _SHIFT
    arguments = pl.coalesce("arguments", "arguments_raw")
    # A step that stands for a result is read as that.
    results = rows.spoken.select("seq", step="place")
    steps = rows.steps.join(results, on=["seq", "step"], how="anti", maintain_order="left")
    agents = pl.col("agent").alias("agent")
    none = pl.lit(value=False).alias("agent")
    parts = (
        steps.select("seq", step.alias("place"), agents, _head(pl.col("text"), OTHER)),
        steps.select(
            "seq", step.alias("place"), agents, _head(pl.col("reasoning"), OTHER).alias("text")
        ),
        rows.calls.select(
            "seq",
            (step + _CALL).alias("place"),
            pl.lit(value=True).alias("agent"),
            _head(arguments, OTHER).alias("text"),
        ),
        rows.results.select(
            "seq",
            (step + _RESULT + pl.col("order").clip(0, _SHIFT // 2)).alias("place"),
            none,
            _head(pl.col("text"), RESULT),
        ),
    )
    word = pl.col("text").str.extract_all(WORD)
    # One part after the other: the words themselves are far larger than the numbers for them.
    return pl.concat(
        part.select("seq", "place", "agent", word.alias("word"))
        .explode("word")
        .drop_nulls("word")
        .with_columns(pl.col("word").hash())
        for part in parts
    )


def _head(text: pl.Expr, size: int) -> pl.Expr:
    return pl.when(text.str.len_bytes() > size).then(text.str.head(size)).otherwise(text)
