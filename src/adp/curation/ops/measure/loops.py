"""Repeated actions and retries after errors.

An *action* is a call: its tool and its arguments, compared as JSON values with sorted keys, so that
spaces and the order of keys do not matter. With ``loop_by: result`` the text of its result belongs
to it, so that scrolling on, or waiting until something changes, is no repetition.

A *loop* is a longest stretch of a trajectory's calls in which a block of one, two or three calls
is repeated without a break, at least ``loop_rounds`` times in full; a block of several equal calls
is a block of one. All calls after the first round are *repeated*. Three rounds, and blocks of one
or two, are what OpenHands takes for an agent that is stuck.

A *retry* is a call behind a failed call of the same tool, with the same or nearly the same
arguments, in the next step that calls anything. Two arguments are nearly the same when the Dice
coefficient of their bags of words is at least `SIMILAR`. A failed call with all retries that follow
one another is one *error-retry cycle*.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from adp.curation.ops.measure.rows import PartitionRows

PERIODS = (1, 2, 3)
"""Lengths of the blocks that a loop repeats."""

SIMILAR = 0.6
"""Dice coefficient from which arguments count as nearly the same."""

_WORD = re.compile(rb"\w+")

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Loops:
    """The loops in a row of calls.

    Attributes:
        repeated: for each call, whether it is repeated.
        first: index of the first call of each loop, and
        period: the length of its block.
        run: for each call, how many equal calls end with it, itself counted.
    """

    repeated: Array
    first: Array
    period: Array
    run: Array


def find_loops(owner: Array, action: Array, rounds: int) -> Loops:
    """Find the loops.

    Args:
        owner: trajectory of each call; calls of one trajectory stand together.
        action: number of the action; equal numbers are equal actions.
        rounds: how often a block must be there, from 2.
    """
    size = len(owner)
    repeated = np.zeros(size, bool)
    firsts, periods = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    run = np.ones(size, np.int64)
    alike_before = np.zeros(size + 1, np.int64)
    for period in PERIODS:
        same = np.zeros(size, bool)
        same[period:] = (action[period:] == action[:-period]) & (owner[period:] == owner[:-period])
        edges = np.diff(np.concatenate(([0], same.view(np.int8), [0])))
        starts, ends = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)
        if period == 1:
            np.cumsum(same, out=alike_before[1:])
            place = np.arange(size)
            began = np.maximum.accumulate(np.where(same, 0, place))
            run = place - began + 1
        loop = ends - starts + period >= rounds * period
        if period > 1:
            alike = alike_before[starts] - alike_before[starts - period + 1]
            loop &= alike < period - 1
        for start, end in zip(starts[loop], ends[loop], strict=True):
            repeated[start:end] = True
        firsts.append(starts[loop] - period)
        periods.append(np.full(int(loop.sum()), period))
    return Loops(repeated, np.concatenate(firsts), np.concatenate(periods), run)


def numbered(rows: PartitionRows, loop_by: str) -> Array:
    """The number of each call's action."""
    keys: Sequence[Any] = list(zip(rows.calls["name"], rows.actions, strict=True))
    if loop_by == "result":
        frame = rows.results.filter(rows.results["call_step"].is_not_null())
        first = frame.unique(["seq", "call_step", "call"], keep="first", maintain_order=True)
        texts = rows.calls.select("seq", "step", "call").join(
            first.select("seq", "call_step", "call", "text"),
            left_on=["seq", "step", "call"],
            right_on=["seq", "call_step", "call"],
            how="left",
            maintain_order="left",
        )["text"]
        keys = list(zip(keys, texts, strict=True))
    known: dict[Any, int] = {}
    return np.array([known.setdefault(key, len(known)) for key in keys], np.int64)


def loops(rows: PartitionRows, loop_by: str, rounds: int) -> Loops:
    """The loops of the calls of a partition."""
    owner = rows.calls["seq"].to_numpy()
    return find_loops(owner, numbered(rows, loop_by), rounds)


def measure_loops(rows: PartitionRows, value: Loops) -> pl.DataFrame:
    """Loops of each trajectory."""
    calls = rows.calls.select(
        "seq", pl.Series("repeated", value.repeated), pl.Series("run", value.run, pl.Int64)
    )
    counted = calls.group_by("seq").agg(
        pl.col("run").max().alias("longest_repeat"),
        pl.col("repeated").sum().cast(pl.Int64).alias("repeated_calls"),
    )
    owner = rows.calls["seq"].to_numpy()[value.first]
    frame = pl.DataFrame({"seq": pl.Series(owner, dtype=pl.Int64)})
    frame = frame.group_by("seq").agg(pl.len().cast(pl.Int64).alias("loops"))
    out = rows.seqs.join(counted, on="seq", how="left").join(frame, on="seq", how="left")
    return out.fill_null(0)


def measure_retries(rows: PartitionRows) -> pl.DataFrame:
    """Error-retry cycles of each trajectory."""
    calls = rows.calls.select("seq", "step", "call", "name").with_row_index("row")
    calls = calls.join(rows.outcomes, on=["seq", "step", "call"], how="left", maintain_order="left")
    # Neighbours are compared: functions over groups take many times as long.
    calls = calls.with_columns(act=pl.struct("seq", "step").rle_id().cast(pl.Int64))
    calls = calls.filter(pl.col("name").is_not_null()).sort("seq", "name", "step", "call")
    following = (
        (pl.col("seq") == pl.col("seq").shift())
        & (pl.col("name") == pl.col("name").shift())
        & (pl.col("act") == pl.col("act").shift() + 1)
        & pl.col("failed").shift().fill_null(value=False)
    )
    calls = calls.with_columns(retry=following.fill_null(value=False), before=pl.col("row").shift())
    near = [
        bool(retry) and similar(rows.actions[before], rows.actions[row])
        for retry, before, row in calls.select("retry", "before", "row").iter_rows()
    ]
    calls = calls.with_columns(pl.Series("retry", near, pl.Boolean))
    calls = calls.with_columns(chain=(~pl.col("retry")).cum_sum())
    chains = calls.group_by("seq", "chain").agg(
        pl.len().cast(pl.Int64).alias("calls"), pl.col("failed").sort_by("step", "call").last()
    )
    chains = chains.filter(pl.col("calls") > 1)
    counted = chains.group_by("seq").agg(
        pl.len().cast(pl.Int64).alias("error_retry_cycles"),
        pl.col("calls").max().alias("longest_retry"),
        (pl.col("failed") == False).sum().cast(pl.Int64).alias("recovered_retries"),  # noqa: E712
    )
    return rows.seqs.join(counted, on="seq", how="left").fill_null(0)


def similar(data: bytes | str, other: bytes | str) -> bool:
    """Whether the arguments of two calls are the same or nearly the same."""
    if data == other:
        return True
    words = [
        Counter(_WORD.findall(text if isinstance(text, bytes) else text.encode()))
        for text in (data, other)
    ]
    total = sum(words[0].values()) + sum(words[1].values())
    return total > 0 and 2 * sum((words[0] & words[1]).values()) >= SIMILAR * total
