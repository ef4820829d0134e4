"""What a person should know about a decontamination: counts, and what could not be compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from adp.curation.ops.decontaminate.index import Index
from adp.curation.ops.decontaminate.instances import is_specific
from adp.curation.ops.decontaminate.items import Benchmark, BenchmarkTask
from adp.curation.ops.decontaminate.scan import ScanMatches
from adp.curation.ops.decontaminate.shares import comparable_words

SHOWN = 5
ALARM = 0.5
"""A share of trajectories, or of items, that points to a wrong field or a shared prompt."""


def summary_of(
    benchmarks: Sequence[Benchmark],
    indexes: Mapping[str, Index],
    value: Mapping[str, ScanMatches],
    matches: pl.DataFrame,
    documents: int,
) -> tuple[dict[str, Any], list[str]]:
    """Figures for the report, and sentences.

    Args:
        benchmarks: the benchmarks.
        indexes: level -> all that was looked for.
        value: level -> what was found.
        matches: ``seq``, ``level``, ``item``, ``hit``.
        documents: number of trajectories.
    """
    hits = matches.filter(pl.col("hit"))
    by_level = dict(sorted(hits.group_by("level").len().iter_rows()))
    sure = hits.filter(pl.col("level") != "repository")["seq"].n_unique()
    summary: dict[str, Any] = {
        "trajectories": documents,
        "contaminated": sure,
        "by_level": by_level,
        "ignored": {level: len(result.frequent) for level, result in value.items()},
    }
    lines = [
        f"{sure:,} of {documents:,} trajectories are contaminated"
        + "".join(f"; {level}: {count:,}" for level, count in by_level.items())
    ]
    if documents and sure > ALARM * documents:
        lines.append("alarm: more than half are; look at the evidence, the fields and the prompts")
    first = 0
    parts = []
    for benchmark in benchmarks:
        numbers = range(first, first + len(benchmark.items))
        first += len(benchmark.items)
        part = _of_benchmark(benchmark, numbers, indexes, value)
        part["trajectories"] = hits.filter(
            pl.col("item").is_between(numbers.start, numbers.stop - 1)
        )["seq"].n_unique()
        parts.append(part)
        lines += _lines(part)
    summary["benchmarks"] = parts
    return summary, lines


def _of_benchmark(
    benchmark: Benchmark,
    numbers: range,
    indexes: Mapping[str, Index],
    value: Mapping[str, ScanMatches],
) -> dict[str, Any]:
    array = np.array(numbers)
    part: dict[str, Any] = {
        "name": benchmark.name,
        "items": len(benchmark.items),
        "unreadable_rows": benchmark.unreadable,
        "fields": benchmark.fields,
        "with_specific_id": sum(_named(item) for item in benchmark.items),
    }
    for level, index in indexes.items():
        comparable = comparable_words(index)[array] > 0
        lost = np.zeros(len(array), np.bool_)
        if level in value:
            lost = np.isin(array, value[level].lost)
        part[level] = {
            "comparable": int((comparable & ~lost).sum()),
            "too_short": int((~comparable).sum()),
            "too_frequent": int(lost.sum()),
            "too_short_examples": _labels(benchmark.items, np.flatnonzero(~comparable)),
            "too_frequent_examples": _labels(benchmark.items, np.flatnonzero(lost)),
            "found": int((value[level].over[array] > 0).sum()) if level in value else 0,
        }
    return part


def _named(item: BenchmarkTask) -> bool:
    return (item.id is not None and is_specific(item.id)) or item.commit is not None


def _labels(items: Sequence[BenchmarkTask], which: Any) -> list[str]:
    return [items[number].label for number in which[:SHOWN]]


def _lines(part: Mapping[str, Any]) -> list[str]:
    """One sentence for a benchmark, and one for each reason why items were not compared."""
    name, items = part["name"], part["items"]
    lines = []
    if part["unreadable_rows"]:
        lines.append(f"{name}: {part['unreadable_rows']:,} rows are not readable and were left out")
    text = part.get("text")
    if text:
        lines.append(
            f"{name}: {text['comparable']:,} of {items:,} items compared by text "
            f"({', '.join(part['fields'].get('text', '').split())}), {text['found']:,} found"
            if part["fields"].get("text")
            else f"{name}: no field with texts; compared by ids and patches"
        )
        if text["too_short"] and part["fields"].get("text"):
            shown = ", ".join(text["too_short_examples"])
            lines.append(f"{name}: {text['too_short']:,} items are too short for it, as {shown}")
        if text["too_frequent"]:
            shown = ", ".join(text["too_frequent_examples"])
            lines.append(
                f"alarm: {name}: the text of {text['too_frequent']:,} items is frequent in the "
                f"pool or the benchmark and was not compared, as {shown}"
            )
    return lines
