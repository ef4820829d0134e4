"""Trajectories that mean nearly the same: of each group one stays.

Trajectories are compared by the cosine of their vectors: a column of the pool, such as the
embeddings of a model, or vectors of the words of their texts. The threshold belongs to the vectors:
0.95 suits those that are made here; look at the least similar pairs in the report before you trust
another one.

Clusters are stars around an anchor, which is the one that stays: the trajectories are gone through
in the order of ``keep``, and each that is free takes all free ones that are near it. Attempts at
one task, by the task ids of the source, are not compared with each other. A trajectory whose vector
is zeros is like no other. When a cluster or the loss of a data set is suspiciously big, the op
stops instead of emptying the data: see ``alarm``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import polars as pl
from pydantic import Field

from adp.curation.clusters import ClusterOptions, alarms, stop_on
from adp.curation.op import Op, OpResult
from adp.curation.ops.dedup_semantic.planes import banded_stars
from adp.curation.ops.dedup_semantic.stars import VectorRows, exact_stars
from adp.curation.pool import COLUMNS, Pool
from adp.curation.survivors import in_order, keep_columns
from adp.curation.texts.vectors import VectorOptions, vectors_of

REASON = "semantic duplicate"

_SUSPICION = (
    "which looks like a threshold that is too low or texts that are mostly boilerplate; "
    "look at the cluster (drop: false with alarm: warn), raise the threshold, or set alarm: warn"
)
"""What an alarm looks like, and what to do."""

_SHOWN = 5


class DedupSemantic(VectorOptions, ClusterOptions):
    """Options of `dedup_semantic`."""

    threshold: float = Field(0.95, gt=0, le=1)
    """Least cosine of a duplicate."""
    exact_up_to: int = Field(200_000, ge=0)
    """With more trajectories than this, candidates come from random planes, which miss up to 5
    in 1,000 of the pairs at the threshold; else no pair is missed."""


def run(pool: Pool, options: DedupSemantic) -> OpResult:
    """Find the clusters, and of each the one that stays."""
    ordered = in_order(pool.members, options.keep)
    vectors = vectors_of(pool, options)
    places = np.searchsorted(pool.members["seq"].to_numpy(), ordered["seq"].to_numpy())
    known = np.flatnonzero(vectors.matrix[places].any(axis=1))
    rows = VectorRows(
        vectors.matrix[places[known]], _tasks(ordered, options)[known], options.threshold
    )
    exact = len(known) <= options.exact_up_to
    stars = exact_stars(rows) if exact else banded_stars(rows)
    anchor, cosine = np.arange(len(places)), np.ones(len(places))
    anchor[known], cosine[known] = known[stars.anchor], stars.cosine
    gone = anchor != np.arange(len(anchor))
    names = ordered["trajectory_id"]
    columns = pl.DataFrame(
        {
            "seq": ordered["seq"],
            "trajectory_id": names,
            "dataset": ordered["dataset"],
            "semantic_cluster": names.gather(anchor),
            "semantic_cluster_size": np.bincount(anchor, minlength=len(anchor))[anchor],
            "semantic_similarity": pl.Series(np.where(gone, cosine, np.nan), nan_to_null=True),
            "gone": gone,
        }
    ).sort("seq")
    result = alarms(
        columns.rename({"semantic_cluster": "cluster", "semantic_cluster_size": "size"}), options
    )
    stop_on(result, options, _SUSPICION)
    summary = {
        "vectors": {"from": vectors.origin, "zeros": vectors.zeros},
        "search": "exact" if exact else "random planes",
        "compared": len(known),
        "not_compared": len(pool) - len(known),
        "clusters": int((np.bincount(anchor[gone]) > 0).sum()) if gone.any() else 0,
        "duplicates": int(gone.sum()),
        "largest_cluster": int(columns["semantic_cluster_size"].max() or 0),  # type: ignore[arg-type]
        "least_similar": _least_similar(columns),
        "alarms": result,
    }
    return OpResult(
        columns=columns.drop("trajectory_id", "dataset", "gone"),
        dropped=_dropped(columns) if options.drop else None,
        summary=summary,
        lines=_lines(summary, options),
    )


def _tasks(ordered: pl.DataFrame, options: DedupSemantic) -> np.ndarray[Any, Any]:
    """A number for each task that the source names; -1 for trajectories that may match all."""
    if options.attempts == "together":
        return np.full(ordered.height, -1)
    number = pl.col("task").rank("dense").cast(pl.Int64)
    named = pl.when(pl.col("task_id").is_not_null()).then(number).otherwise(-1)
    return ordered.select(named.alias("task"))["task"].to_numpy()


def _least_similar(columns: pl.DataFrame) -> list[dict[str, Any]]:
    """The duplicates that are least like their anchors: where a threshold shows its faults."""
    rows = columns.filter(columns["gone"]).sort("semantic_similarity", "seq").head(_SHOWN)
    return [
        {"anchor": anchor, "trajectory_id": name, "similarity": round(similarity, 4)}
        for anchor, name, similarity in rows.select(
            "semantic_cluster", "trajectory_id", "semantic_similarity"
        ).iter_rows()
    ]


def _dropped(columns: pl.DataFrame) -> pl.DataFrame:
    gone = columns.filter(columns["gone"])
    evidence = [
        json.dumps(
            {"anchor": anchor, "similarity": round(similarity, 4)},
            ensure_ascii=False,
            sort_keys=True,
        )
        for anchor, similarity in gone.select("semantic_cluster", "semantic_similarity").iter_rows()
    ]
    return gone.select(
        "seq", pl.lit(REASON).alias("reason"), pl.Series("evidence", evidence, dtype=pl.String)
    )


def _lines(summary: dict[str, Any], options: DedupSemantic) -> list[str]:
    lines = [
        f"{summary['duplicates']:,} trajectories have a cosine of at least {options.threshold:g} "
        f"with another one, in {summary['clusters']:,} clusters; the largest has "
        f"{summary['largest_cluster']:,}"
    ]
    if summary["least_similar"]:
        pairs = (
            f"{item['trajectory_id']} and {item['anchor']} ({item['similarity']:.3f})"
            for item in summary["least_similar"]
        )
        lines.append("the least similar: " + ", ".join(pairs))
    if summary["vectors"]["zeros"]:
        lines.append(
            f"{summary['vectors']['zeros']:,} have no words or a vector of zeros and were not "
            "compared"
        )
    return [*lines, *(f"alarm: {alarm}" for alarm in summary["alarms"])]


def _needs(options: DedupSemantic) -> Iterable[str]:
    wanted = [*keep_columns(options.keep), *([options.embedding] if options.embedding else [])]
    return [name for name in wanted if name not in COLUMNS]


def _columns(options: DedupSemantic) -> Mapping[str, str]:
    return {
        "semantic_cluster": "trajectory_id of the anchor of the cluster, the one that stays.",
        "semantic_cluster_size": "Trajectories of the cluster, itself included.",
        "semantic_similarity": "Cosine with the anchor; null for anchors.",
    }


OP = Op(
    name="dedup_semantic",
    title="Of trajectories whose vectors are nearly the same, keep one.",
    options=DedupSemantic,
    run=run,
    cost="50,000 vectors of 384 dimensions take a few seconds, exactly; twice as many take four "
    "times as long. Memory for 6 bytes a dimension of each.",
    source='Abbas and others, 2023, "SemDeDup", with stars around an anchor instead of k-means; '
    "random planes after Charikar, 2002.",
    needs=_needs,
    columns=_columns,
)
