"""How many alternates of a store were followed to the end, and what they cost."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl

from adp.core.json_values import json_object
from adp.rollouts.collecting.counts import COLUMNS, CollectReport, Episode, EpisodeCounts
from adp.rollouts.collecting.recorder import ROLLOUT
from adp_schema.store import Store

BEYOND = "alternates_beyond_the_limit"
"""Key of the counts of an episode: alternates that ``alternate_branches`` left out."""


def note_alternates(report: CollectReport, root: Path, dataset: str) -> None:
    """Add to a report what became of alternates, where they are followed to the end."""
    report.alternates = alternate_counts(root, dataset)


def alternate_counts(root: str | Path, dataset: str) -> dict[str, Any] | None:
    """Counts of the alternates of a data set that were followed to the end.

    Args:
        root: the store.
        dataset: the data set.

    Returns:
        ``branches`` and ``by_depth`` (depth -> branches); of these, ``succeeded``, ``failed``,
        ``unscored`` and ``broken``; ``calls``, ``tokens_in``, ``tokens_out`` and ``cost_usd`` of
        their own steps; ``beyond``, alternates that ``alternate_branches`` left out. None when
        there are none.
    """
    store = Store.open(str(root))
    of_run = (pl.col("dataset") == dataset) & (pl.col("source_format") == ROLLOUT)
    # An alternate of one step has no end.
    ended = (pl.col("branch_kind") == "alternate") & pl.col("terminated").is_not_null()
    rows = store.scan("trajectories").filter(of_run)
    branches = rows.filter(ended).select("seq", "parent_id", *COLUMNS).collect()
    if branches.is_empty():
        return None
    counts = EpisodeCounts()
    for row in branches.select(COLUMNS).iter_rows():
        counts.add(Episode(*row))
    parents = dict(branches.select("trajectory_id", "parent_id").iter_rows())
    calls = store.scan("tool_calls").select("seq").collect()
    extras = rows.filter(pl.col("extra").str.contains(BEYOND, literal=True)).select("extra")
    return {
        "branches": branches.height,
        "by_depth": dict(sorted(Counter(_depth(name, parents) for name in parents).items())),
        "succeeded": counts.succeeded,
        "failed": counts.scored - counts.succeeded,
        "unscored": counts.episodes - counts.broken - counts.scored,
        "broken": counts.broken,
        "calls": calls.join(branches, on="seq", how="semi").height,
        "tokens_in": counts.tokens_in,
        "tokens_out": counts.tokens_out,
        "cost_usd": counts.cost_usd,
        "beyond": sum(_beyond(extra) for extra in extras.collect()["extra"]),
    }


def _depth(name: str, parents: dict[str, str]) -> int:
    depth = 0
    while name in parents and depth <= len(parents):
        name, depth = parents[name], depth + 1
    return depth


def _beyond(extra: str) -> int:
    value: Any = json_object(extra)
    for key in ("run_metadata", "expert_assistance", "counts", BEYOND):
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, int) else 0
