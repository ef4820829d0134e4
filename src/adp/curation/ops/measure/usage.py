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

import itertools
from collections.abc import Iterator

import numpy as np
import polars as pl

from adp.curation.ops.measure.rows import PartitionRows

WORD = r"[0-9][0-9.,:]*[0-9]|[A-Za-z_][A-Za-z0-9_]{5,}"
RESULT = 2_000
OTHER = 20_000
SLICE = 4_000
"""Texts that are taken apart at a time."""

_Flags = np.ndarray[tuple[int], np.dtype[np.bool_]]

_STEP, _CALL, _RESULT = 0, 1, 2
_SHIFT = 1 << 20
"""A place is the step times this, the rank of the text in it, and the order of the result."""


def measure(rows: PartitionRows) -> pl.DataFrame:
    """Unused and judged results of each trajectory."""
    results = pl.concat(_judged(piece) for piece in _pieces(_texts(rows)))
    end = rows.steps.filter(pl.col("agent")).group_by("seq").agg(pl.col("step").max().alias("end"))
    results = results.filter("judged").join(end, on="seq", how="inner")
    counted = (
        results.filter(pl.col("place") // _SHIFT < pl.col("end"))
        .group_by("seq")
        .agg(
            pl.len().cast(pl.Int64).alias("judged_results"),
            (~pl.col("used")).sum().cast(pl.Int64).alias("unused_results"),
        )
    )
    return rows.seqs.join(counted, on="seq", how="left").fill_null(0)


def _pieces(texts: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """The texts of some whole trajectories at a time: their words stay in memory's caches."""
    seq = texts["seq"].to_numpy()
    starts = np.flatnonzero(seq[1:] != seq[:-1]) + 1
    _, first = np.unique(starts // SLICE, return_index=True)
    cuts = [0, *starts[first].tolist(), texts.height]
    for start, end in itertools.pairwise(cuts):
        yield texts.slice(start, end - start)


def _judged(texts: pl.DataFrame) -> pl.DataFrame:
    """``seq``, ``place``, ``agent`` of each place, and what `_judge` says of it."""
    texts = texts.with_columns(number=pl.struct("seq", "place").rle_id())
    words = _words(texts)
    places = texts.unique("number", keep="first", maintain_order=True).drop("number", "text")
    judged, used = _judge(places, words)
    return places.with_columns(judged=pl.Series(judged), used=pl.Series(used))


def _judge(texts: pl.DataFrame, words: pl.DataFrame) -> tuple[_Flags, _Flags]:
    """For each place whether it is a result with distinctive words, and whether one is taken up.

    One number stands for a trajectory and a word. Of the other texts, most words are in no result:
    a table of bits by the last digits of the numbers leaves nearly all of them out. What is left is
    sorted by the number, which is faster than grouping.
    """
    judged, used = np.zeros((2, texts.height), np.bool_)
    is_result = (texts["place"] % _SHIFT >= _RESULT).to_numpy()
    number = words["number"].to_numpy()
    of_result = is_result[number]
    if not of_result.any():
        return judged, used
    spread = texts["seq"].to_numpy().astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    key = words["word"].to_numpy() + spread[number]
    bits = np.zeros(1 << int(8 * of_result.sum()).bit_length(), np.bool_)
    slot = key & np.uint64(len(bits) - 1)
    bits[slot[of_result]] = True
    kept = pl.DataFrame({"key": key, "number": number}).filter(pl.Series(bits[slot])).sort("key")
    ordered, number = kept["key"].to_numpy(), kept["number"].to_numpy()
    starts = np.concatenate(([0], np.flatnonzero(ordered[1:] != ordered[:-1]) + 1))
    first = np.minimum.reduceat(number, starts)
    by_agent = texts["agent"].to_numpy()[number]
    last = np.maximum.reduceat(np.where(by_agent, number, 0), starts)
    judged[first] = True
    used[first[last > first]] = True
    return judged & is_result, used


def _texts(rows: PartitionRows) -> pl.DataFrame:
    """``seq``, ``place``, ``agent``, ``text`` of every text, sorted."""
    step = pl.col("step").cast(pl.Int64) * _SHIFT
    arguments = pl.coalesce("arguments", "arguments_raw")
    # A step that stands for a result is read as that.
    results = rows.spoken.select("seq", step="place")
    steps = rows.steps.join(results, on=["seq", "step"], how="anti", maintain_order="left")
    agents = pl.col("agent").alias("agent")
    none = pl.lit(value=False).alias("agent")
    reasoning = _head(pl.col("reasoning"), OTHER).alias("text")
    parts = (
        steps.select("seq", step.alias("place"), agents, _head(pl.col("text"), OTHER)),
        steps.select("seq", step.alias("place"), agents, reasoning),
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
    return pl.concat(parts).drop_nulls("text").sort("seq", "place")


def _words(texts: pl.DataFrame) -> pl.DataFrame:
    """``number`` of the place, and ``word`` (a number that stands for it)."""
    # Piece by piece: the words themselves are far larger than the numbers for them.
    pieces = (
        texts.slice(start, SLICE).select("number", "text")
        for start in range(0, max(texts.height, 1), SLICE)
    )
    return pl.concat(_words_of(piece) for piece in pieces)


def _words_of(texts: pl.DataFrame) -> pl.DataFrame:
    """`_words` of a few texts; of equal ones, such as system prompts, one is taken apart."""
    words = texts.select("text").unique().with_columns(word=pl.col("text").str.extract_all(WORD))
    rows = texts.join(words, on="text", how="left", maintain_order="left")
    return (
        rows.select("number", "word")
        .explode("word")
        .drop_nulls("word")
        .with_columns(pl.col("word").hash())
    )


def _head(text: pl.Expr, size: int) -> pl.Expr:
    return pl.when(text.str.len_bytes() > size).then(text.str.head(size)).otherwise(text)
