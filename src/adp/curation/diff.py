"""Comparing two curations: what became of each trajectory in one and in the other."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import polars as pl

from adp.curation.ledger import ENDS
from adp.curation.record import reading
from adp.curation.why import record_of
from adp_schema.store import Store

ABSENT = "not in the inputs"
KEPT = "kept"


@dataclass
class CurationDifference:
    """How two curations differ.

    Attributes:
        same: trajectories with the same fate in both.
        changed: trajectories with another one.
        cells: the transition matrix: {a, b, count, examples}, the larger ones first; a and b are
            ``kept``, ``dropped by STAGE: REASON`` and the like.
        columns: for trajectories that both keep, columns that differ -> how many rows.
    """

    same: int
    changed: int
    cells: list[dict[str, Any]]
    columns: dict[str, int] = field(default_factory=dict)


def diff(a: str, b: str, *, examples: int = 3, detail: bool = True) -> CurationDifference:
    """Compare two curated stores, or a curated one with any other.

    Args:
        a: a curated store or folder, or any store, whose trajectories all count as kept.
        b: the other one.
        examples: ids to name in each cell.
        detail: tell reasons apart, not only stages.

    Raises:
        StoreError: one of them is neither.
    """
    both = _fates(a, detail=detail).join(
        _fates(b, detail=detail), on="trajectory_id", how="full", coalesce=True, suffix="_b"
    )
    both = both.with_columns(pl.col("fate", "fate_b").fill_null(ABSENT))
    cells = (
        both.sort("trajectory_id")
        .group_by("fate", "fate_b")
        .agg(pl.len().alias("count"), pl.col("trajectory_id").head(examples).alias("examples"))
        .sort(["count", "fate", "fate_b"], descending=[True, False, False])
    )
    same = int(both.select((pl.col("fate") == pl.col("fate_b")).sum()).item())
    rows = cells.rename({"fate": "a", "fate_b": "b"}).to_dicts()
    for row in rows:
        if row["a"] == row["b"]:
            row["examples"] = []
    return CurationDifference(same, both.height - same, rows, _columns(a, b))


def _fates(path: str, *, detail: bool) -> pl.DataFrame:
    """``trajectory_id`` and ``fate`` of every trajectory."""
    record = record_of(path)
    if record is None:
        rows = Store.open(path).scan("trajectories").filter(pl.col("parent_id").is_null())
        return rows.select("trajectory_id", pl.lit(KEPT).alias("fate")).collect()
    ledger = pl.scan_parquet(record / "ledger.parquet", glob=False).filter(
        pl.col("verdict").is_in(ENDS)
    )
    dropped = pl.format("dropped by {}", "op")
    if detail:
        dropped = pl.format("{}: {}", dropped, "reason")
    fate = pl.when(pl.col("verdict") == "dropped").then(dropped).otherwise(pl.col("verdict"))
    ends = ledger.sort("seq", "stage").unique("trajectory_id", keep="last", maintain_order=True)
    with reading(record):
        return ends.select("trajectory_id", fate.alias("fate")).collect()


def _columns(a: str, b: str) -> dict[str, int]:
    """Columns of the annotations that both have and that differ."""
    first, second = record_of(a), record_of(b)
    if first is None or second is None:
        return {}
    frames = []
    for record in (first, second):
        with reading(record):
            frames.append(pl.read_parquet(record / "annotations.parquet", glob=False))
    left, right = frames
    skipped = ("seq", "input", "trajectory_id")
    shared = [name for name in left.columns if name in right.columns and name not in skipped]
    joined = left.join(right, on="trajectory_id", how="inner", suffix="$b")
    columns = {}
    for name in shared:
        if joined[name].dtype == joined[f"{name}$b"].dtype:
            differs = joined.select(pl.col(name).ne_missing(pl.col(f"{name}$b")).sum()).item()
            columns.update({name: int(differs)} if differs else {})
    return columns
