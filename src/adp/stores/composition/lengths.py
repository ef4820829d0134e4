"""How long trajectories and their parts are, and how success depends on it."""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow.compute as pc

from adp.stores.composition.model import Bin, Distribution, Rate
from adp.stores.composition.questions import rows
from adp.stores.stats import Recorded
from adp_schema.store import Store

PARTS = ("system", "user", "agent", "environment", "calls", "results")
"""What the characters of a trajectory are counted by: sources of steps, arguments, results."""

SINGLE = 30
"""A histogram up to this value has a bar for every number."""

_SPOKEN = "length(coalesce(text, '')) + length(coalesce(reasoning, ''))"
# Arguments that were found in the text of the step stand there already.
_ARGUMENTS = "if(span_start IS NULL, length(coalesce(arguments, arguments_raw, '')), 0)"
# A page of the web may have no text but its tree or its source.
_RESULT = "length(coalesce(nullif(text, ''), axtree, html, ''))"

_PER_TRAJECTORY = f"""
    SELECT t.seq, dataset, success, coalesce(steps, 0) AS steps, coalesce(calls, 0) AS calls,
        coalesce(spoken, 0) + coalesce(written, 0) + coalesce(returned, 0) AS characters,
        coalesce(total_tokens_in, if(turns > 0 AND turns = n_in, step_in, NULL)) AS tokens_in,
        coalesce(total_tokens_out, if(turns > 0 AND turns = n_out, step_out, NULL)) AS tokens_out,
        coalesce(by_agent, 0) AS by_agent, coalesce(reasoned, 0) AS reasoned
    FROM trajectories t
    LEFT JOIN (
        SELECT seq, count(*) AS steps, sum({_SPOKEN})::BIGINT AS spoken,
            count(*) FILTER (kind = 'llm_turn') AS turns,
            count(tokens_in) FILTER (kind = 'llm_turn') AS n_in,
            count(tokens_out) FILTER (kind = 'llm_turn') AS n_out,
            sum(tokens_in) FILTER (kind = 'llm_turn') ::BIGINT AS step_in,
            sum(tokens_out) FILTER (kind = 'llm_turn') ::BIGINT AS step_out,
            count(*) FILTER (source = 'agent') AS by_agent,
            count(*) FILTER (source = 'agent' AND reasoning <> '') AS reasoned
        FROM steps GROUP BY seq) s ON s.seq = t.seq
    LEFT JOIN (
        SELECT seq, count(*) AS calls, sum({_ARGUMENTS})::BIGINT AS written
        FROM tool_calls GROUP BY seq) c ON c.seq = t.seq
    LEFT JOIN (
        SELECT seq, sum({_RESULT})::BIGINT AS returned
        FROM observations GROUP BY seq) o ON o.seq = t.seq
    ORDER BY t.seq"""

_PARTS = f"""
    SELECT part, n, count(*) AS times FROM (
        SELECT source AS part, {_SPOKEN} AS n FROM steps SEMI JOIN trajectories USING (seq)
        UNION ALL
        SELECT 'calls', {_ARGUMENTS} FROM tool_calls SEMI JOIN trajectories USING (seq)
        WHERE span_start IS NULL
        UNION ALL
        SELECT 'results', {_RESULT} FROM observations SEMI JOIN trajectories USING (seq))
    GROUP BY ALL ORDER BY ALL"""

Array = "np.ndarray[Any, Any]"


@dataclass(frozen=True)
class LengthColumns:
    """One value for each main line, in input order.

    Attributes:
        names: the data sets, in order of appearance.
        dataset: index of the data set in ``names``.
        columns: name -> values. Tokens that are not recorded are -1, success is 1, 0 or -1.
    """

    names: list[str | None]
    dataset: np.ndarray[Any, Any]
    columns: dict[str, np.ndarray[Any, Any]]

    def sums(self, column: str) -> dict[str | None, int]:
        """Data set -> sum of a column."""
        values = self.columns[column]
        return {
            name: int(values[self.dataset == index].sum()) for index, name in enumerate(self.names)
        }

    def recorded(self, column: str) -> dict[str | None, Recorded]:
        """Data set -> sum of a column over the trajectories that record it."""
        return {
            name: recorded(self.columns[column][self.dataset == index])
            for index, name in enumerate(self.names)
        }


def recorded(values: np.ndarray[Any, Any]) -> Recorded:
    """The sum of the values that are recorded: those from 0."""
    known = values[values >= 0]
    return Recorded(int(known.sum()) if len(known) else None, len(known), len(values))


def read_lengths(store: Store) -> LengthColumns:
    """Measure every main line. A row of numbers each is held in memory."""
    table = store.query(_PER_TRAJECTORY)
    names = table["dataset"].combine_chunks().dictionary_encode(null_encoding="encode")
    columns = {
        name: pc.fill_null(table[name].cast("int64"), -1).to_numpy()
        for name in table.column_names
        if name != "dataset"
    }
    return LengthColumns(names.dictionary.to_pylist(), np.asarray(names.indices), columns)


def distribution(name: str, values: dict[int, int], of: int | None = None) -> Distribution:
    """Quantiles and a histogram.

    Args:
        name: what is measured.
        values: value -> how often it occurs; no value is negative.
        of: rows that could have a value; None for as many as have one.
    """
    n = sum(values.values())
    total = sum(value * times for value, times in values.items())
    full = n if of is None else of
    if not n:
        return Distribution(name, 0, full, 0)
    ordered = sorted(values)
    upto = list(itertools.accumulate(values[value] for value in ordered))
    return Distribution(
        name,
        n,
        full,
        total,
        total / n,
        min=ordered[0],
        **{f"p{percent}": ordered[_place(upto, percent)] for percent in (10, 50, 90, 99)},
        max=ordered[-1],
        bins=tuple(bins(values)),
    )


def _place(upto: list[int], percent: int) -> int:
    """Where the running count reaches a percentage of all."""
    return bisect.bisect_left(upto, max(-(-percent * upto[-1] // 100), 1))


def bins(values: dict[int, int]) -> Iterator[Bin]:
    """The histogram: a bar for every number, or, when they are large, the bars 1, 2, 5, 10, ..."""
    last = max(values)
    lows = range(min(values), last + 1) if last <= SINGLE else _steps(min(values), last)
    edges = [*lows, last + 1] if last <= SINGLE else [*lows, _after(last)]
    counts = dict.fromkeys(edges[:-1], 0)
    below = 0
    for value in sorted(values):
        while value >= edges[below + 1]:
            below += 1
        counts[edges[below]] += values[value]
    for low, high in itertools.pairwise(edges):
        yield Bin(low, high - 1, counts[low])


def _series() -> Iterator[int]:
    yield 0
    for power in itertools.count():
        yield from (10**power, 2 * 10**power, 5 * 10**power)


def _after(value: int) -> int:
    return next(edge for edge in _series() if edge > value)


def _steps(first: int, last: int) -> list[int]:
    edges = list(itertools.takewhile(lambda edge: edge <= last, _series()))
    start = max(index for index, edge in enumerate(edges) if edge <= first)
    return edges[start:]


def of_trajectories(lengths: LengthColumns) -> tuple[Distribution, ...]:
    """Steps, calls, characters and recorded tokens of a trajectory."""
    titles = {
        "steps": "steps",
        "calls": "calls",
        "characters": "characters",
        "tokens_in": "prompt tokens recorded",
        "tokens_out": "written tokens recorded",
    }
    results = []
    for column, title in titles.items():
        values = lengths.columns[column]
        results.append(distribution(title, _counted(values[values >= 0]), of=len(values)))
    return tuple(results)


def _counted(values: np.ndarray[Any, Any]) -> dict[int, int]:
    unique, times = np.unique(values, return_counts=True)
    return dict(zip(unique.tolist(), times.tolist(), strict=True))


def of_parts(store: Store) -> tuple[Distribution, ...]:
    """Characters of a step by its source, of the arguments of a call, and of a result."""
    values: dict[str, dict[int, int]] = {name: {} for name in PARTS}
    for row in rows(store, _PARTS):
        values.setdefault(row["part"] or "(none)", {})[row["n"]] = row["times"]
    return tuple(distribution(name, value) for name, value in values.items() if value)


def wilson(good: int, known: int) -> tuple[float | None, float | None]:
    """The 95 % score interval of a rate (E. B. Wilson, 1927); None when nothing is known.

    Args:
        good: successes.
        known: trials.
    """
    if not known:
        return None, None
    z = 1.959963984540054
    rate, square = good / known, z * z / known
    middle = (rate + square / 2) / (1 + square)
    half = z * math.sqrt(rate * (1 - rate) / known + square / (4 * known)) / (1 + square)
    return 0.0 if good == 0 else middle - half, 1.0 if good == known else middle + half


def rate(name: str | None, of: int, known: int, good: int) -> Rate:
    """A success rate with its interval."""
    return Rate(name, of, known, good, good / known if known else None, *wilson(good, known))


def by_length(lengths: LengthColumns) -> tuple[Rate, ...]:
    """Success of trajectories by their number of steps."""
    steps, success = lengths.columns["steps"], lengths.columns["success"]
    if not len(steps):
        return ()
    results = []
    edges = [*_steps(int(steps.min()), int(steps.max())), _after(int(steps.max()))]
    for low, after in itertools.pairwise(edges):
        inside = success[(steps >= low) & (steps < after)]
        name = str(low) if after == low + 1 else f"{low}-{after - 1}"
        known, good = int((inside >= 0).sum()), int((inside == 1).sum())
        results.append(rate(name, len(inside), known, good))
    return tuple(results)
