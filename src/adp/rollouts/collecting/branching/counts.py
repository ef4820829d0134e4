"""How many attempts in a store began how."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from adp.core.json_values import json_object
from adp.rollouts.collecting.attempts import is_attempt_column
from adp.rollouts.collecting.branching.settings import BranchingSettings
from adp.rollouts.collecting.counts import CollectReport
from adp_schema.store import Store


def note_branching(
    report: CollectReport, root: Path, dataset: str, settings: BranchingSettings | None
) -> None:
    """Add to a report how attempts began, where they branch."""
    if settings is not None:
        report.branching = branching_counts(root, dataset, settings.initial)


def branching_counts(root: str | Path, dataset: str, initial: int) -> dict[str, int]:
    """Counts of the attempts that a store holds of a data set, those that broke included.

    Args:
        root: the store.
        dataset: the data set.
        initial: attempts at a task that begin together at the beginning.

    Returns:
        ``groups``, ``initial``, ``branches``, ``refills``, and ``forks_refused``, branches that
        were decided, but the world could not be copied.
    """
    frame = (
        Store.open(str(root))
        .scan("trajectories")
        .filter((pl.col("dataset") == dataset) & is_attempt_column())
        .select("task_id", "attempt", "parent_id", "extra")
        .collect()
    )
    branch = pl.col("parent_id").is_not_null()
    first = pl.col("attempt") < initial
    counts = frame.select(
        groups=pl.col("task_id").n_unique(),
        initial=(~branch & first).sum(),
        branches=branch.sum(),
        refills=(~branch & ~first).sum(),
    ).row(0, named=True)
    refused = sum(_refused(extra) for extra in frame["extra"])
    return {name: int(value) for name, value in counts.items()} | {"forks_refused": refused}


def _refused(extra: str | None) -> int:
    facts = json_object(extra).get("branching")
    value = facts.get("refused") if isinstance(facts, dict) else None
    return value if isinstance(value, int) else 0
