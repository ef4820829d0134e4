"""The passes of near deduplication: shingles, what is common, sketches, clusters, the outcome."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from adp.curation.clusters import alarms, stop_on
from adp.curation.op import OpResult
from adp.curation.ops.dedup_near.bands import shared_bands, sketches_of
from adp.curation.ops.dedup_near.minhash import band_hashes, chance, choose_bands, signatures
from adp.curation.ops.dedup_near.options import DedupNear
from adp.curation.ops.dedup_near.shingle_files import (
    ShingleFiles,
    ShingleReader,
    common_shingles,
    without,
)
from adp.curation.ops.dedup_near.stars import Documents, stars
from adp.curation.partitions import Partition
from adp.curation.pool import Pool
from adp.curation.survivors import places_in_order
from adp.curation.texts.shingles import shingles
from adp.curation.texts.views import views, wanted_kinds
from adp_schema.ids import digest

Numbers = np.ndarray[Any, Any]

NEAR = "near duplicate"
EQUAL = "equal short text"

_SUSPICION = (
    "which looks like shared boilerplate rather than duplicates; look at the cluster (drop: false "
    "with alarm: warn), run dedup_exact first, or set alarm: warn"
)
"""What an alarm looks like, and what to do."""


@dataclass(frozen=True)
class _Plan:
    """What the workers need to know."""

    files: ShingleFiles
    views: tuple[str, ...]
    words: int
    permutations: int
    bands: int
    rows: int
    least: int


# ---- the passes over the partitions ---------------------------------------------------------


def _shingle(partition: Partition, plan: _Plan) -> pl.DataFrame:
    """First pass: ``seq``, ``partition``, ``shingles`` and ``same``, equal for equal shingles.

    The shingles themselves go to files.
    """
    result = shingles(views(partition, plan.views), plan.words)
    plan.files.save("shingles", partition.index, result.hashes)
    plan.files.save("sizes", partition.index, result.sizes)
    return pl.DataFrame(
        {
            "seq": pl.Series(result.seq, dtype=pl.Int64),
            "partition": pl.Series([partition.index] * len(result.seq), dtype=pl.Int32),
            "shingles": pl.Series(result.sizes, dtype=pl.Int64),
            "same": pl.Series(result.sums, dtype=pl.UInt64),
        }
    )


def _sketch(partition: Partition, plan: _Plan) -> pl.DataFrame:
    """Second pass: ``kept``, the number of shingles that each document keeps, and ``text``.

    ``text`` is the hash of the whole text of a document that keeps too few. What is left of the
    shingles goes to ``kept``; of the documents with enough of them, the lower bytes of the
    signatures to ``sketch`` and the bands to ``bands``.
    """
    files, index = plan.files, partition.index
    sizes = files.load("sizes", index)
    common = np.load(files.path("common", 0))
    hashes, kept = without(files.load("shingles", index), sizes, common)
    files.save("kept", index, hashes)
    files.save("kept_sizes", index, kept)
    enough = kept >= plan.least
    chosen = hashes[np.repeat(enough, kept)] if not enough.all() else hashes
    signature = signatures(chosen, kept[enough], plan.permutations)
    files.save("sketch", index, (signature & np.uint32(255)).astype(np.uint8))
    files.save("bands", index, band_hashes(signature, plan.bands, plan.rows))
    texts = _short_texts(partition, plan, np.flatnonzero(~enough), len(kept))
    return pl.DataFrame({"kept": pl.Series(kept, dtype=pl.Int64), "text": texts})


def _gather(partition: Partition, plan: _Plan) -> pl.DataFrame:
    """Third pass: the shingles of the candidates, which lie near each other afterwards."""
    files, index = plan.files, partition.index
    kept = np.load(files.path("kept", index), mmap_mode="r")
    wanted, sizes = files.load("wanted", index), files.load("kept_sizes", index)
    files.save("candidates", index, kept[np.repeat(wanted, sizes)])
    return pl.DataFrame({"partition": [index]})


def _short_texts(partition: Partition, plan: _Plan, short: Numbers, documents: int) -> pl.Series:
    """Hashes of the whole texts, task included, of some documents; null for the others."""
    texts: list[str | None] = [None] * documents
    if len(short):
        rows = views(partition, [*plan.views, "task"])
        compared = rows.filter(pl.col("kind").is_in(wanted_kinds(plan.views)))
        chosen = compared["seq"].unique(maintain_order=True).gather(short)
        rows = rows.filter(pl.col("seq").is_in(chosen.implode()))
        size = pl.col("text").str.len_bytes()
        framed = pl.concat_str("kind", pl.lit(" "), size, pl.lit(" "), "text").str.join("")
        joined = rows.group_by("seq", maintain_order=True).agg(framed.alias("text"))
        for place, text in zip(short.tolist(), joined["text"].to_list(), strict=True):
            texts[place] = digest(text.encode("utf-8"))
    return pl.Series(texts, dtype=pl.String)


# ---- the whole ------------------------------------------------------------------------------


def find(pool: Pool, options: DedupNear) -> OpResult:
    """Run the passes, and say what is near what."""
    bands, rows = options.bands, options.rows
    if bands is None or rows is None:
        bands, rows = choose_bands(options.threshold, options.permutations)
    plan = _Plan(
        files=ShingleFiles(str(pool.scratch)),
        views=options.views,
        words=options.words,
        permutations=options.permutations,
        bands=bands,
        rows=rows,
        least=options.least_shingles,
    )
    indexes = [partition.index for partition in pool.partitions]
    documents = _no_documents() if not indexes else pool.map(_shingle, plan, name="shingles")
    limit, common = _save_common(documents, plan.files, indexes, options)
    if indexes:
        documents = documents.with_columns(pool.map(_sketch, plan, name="sketches"))
    else:
        kept = pl.lit(0, pl.Int64).alias("kept")
        documents = documents.with_columns(kept, pl.lit(None, pl.String).alias("text"))
    shingle_count, kept_count = int(documents["shingles"].sum()), int(documents["kept"].sum())
    documents = documents.select("seq", "partition", "kept", "text")
    documents = documents.with_columns(_ranks(pool.members, documents["seq"], options))
    near, candidates = _near(pool, documents, plan, indexes, options.threshold)
    equal = _equal(documents.filter(pl.col("kept") < plan.least))
    columns = _columns_of(pool.members, pl.concat([near, equal]))
    summary = {
        "documents": documents.height,
        "compared": documents.filter(pl.col("kept") >= plan.least).height,
        "common_shingles": common,
        "common_above": limit,
        "shingles": shingle_count,
        "shingles_kept": kept_count,
        "candidates": candidates,
        "bands": bands,
        "rows": rows,
        "found_at_threshold": round(chance(options.threshold, bands, rows), 4),
    }
    return _outcome(pool, options, columns, summary)


def _no_documents() -> pl.DataFrame:
    return pl.DataFrame(
        schema={
            "seq": pl.Int64,
            "partition": pl.Int32,
            "shingles": pl.Int64,
            "same": pl.UInt64,
        }
    )


def _save_common(
    documents: pl.DataFrame, files: ShingleFiles, indexes: Sequence[int], options: DedupNear
) -> tuple[float, int]:
    """Find the common shingles and write them down; the limit, and how many there are."""
    counted = documents.select(
        "partition", (pl.col("same").is_first_distinct() & (pl.col("shingles") > 0)).alias("first")
    )
    for index, firsts in zip(indexes, _by_partition(counted, "first", indexes), strict=True):
        files.save("counted", index, firsts)
    limit = max(options.common * int(counted["first"].sum()), options.common_least)
    common = common_shingles(files, indexes, limit)
    files.save("common", 0, common)
    return limit, len(common)


def _by_partition(rows: pl.DataFrame, column: str, indexes: Sequence[int]) -> list[Numbers]:
    """The values of a column in each partition; the rows stand in the order of these."""
    partition = rows["partition"].to_numpy()
    starts = np.searchsorted(partition, indexes, "left")
    ends = np.searchsorted(partition, indexes, "right")
    values = rows[column].to_numpy()
    return [values[start:end] for start, end in zip(starts, ends, strict=True)]


def _ranks(members: pl.DataFrame, seqs: pl.Series, options: DedupNear) -> list[pl.Series]:
    """Of some members, ``rank``, from the best one, and ``same_task``: a hash of the task, from 0.

    Where the hash is null, a trajectory is compared with all.
    """
    places = places_in_order(members, options.keep).to_numpy()
    ranks = np.empty(len(places), np.uint32)
    ranks[places] = np.arange(len(places), dtype=np.uint32)
    chosen = np.searchsorted(members["seq"].to_numpy(), seqs.to_numpy())
    same = pl.lit(None, pl.Int64)
    if options.attempts != "together":
        named = (pl.col("task").hash() // 2).cast(pl.Int64)  # never negative
        same = pl.when(pl.col("task_id").is_not_null()).then(named)
    tasks = members.select("seq", same_task=same)["same_task"]
    return [pl.Series("rank", ranks[chosen]), tasks.gather(chosen)]


def _near(
    pool: Pool, documents: pl.DataFrame, plan: _Plan, indexes: Sequence[int], threshold: float
) -> tuple[pl.DataFrame, int]:
    """``seq``, ``anchor`` (a seq), ``jaccard`` of near duplicates; and the pairs compared."""
    enough = np.flatnonzero(documents["kept"].to_numpy() >= plan.least)
    columns = np.argsort(documents["rank"].to_numpy()[enough])
    place = enough[columns]
    ranks = np.empty(len(columns), np.uint32)
    ranks[columns] = np.arange(len(columns), dtype=np.uint32)
    match = shared_bands(pool, plan.files, indexes, ranks, plan.bands)
    candidates = np.unique(match.members)
    wanted = np.zeros(documents.height, np.bool_)
    wanted[place[candidates]] = True
    shingle_reader = _gathered(pool, documents.with_columns(wanted=pl.Series(wanted)), plan)
    try:
        compared = Documents(
            place=(np.cumsum(wanted) - 1)[place],
            candidates=candidates,
            sketch=sketches_of(plan.files, indexes, columns[candidates]),
            task=documents["same_task"].fill_null(-1).to_numpy()[place],
            reader=shingle_reader,
            threshold=threshold,
        )
        result = stars(compared, match)
    finally:
        shingle_reader.close()
    seq = documents["seq"].to_numpy()[place]
    gone = np.flatnonzero(result.anchor != np.arange(len(seq)))
    frame = pl.DataFrame(
        {
            "seq": pl.Series(seq[gone], dtype=pl.Int64),
            "anchor": pl.Series(seq[result.anchor[gone]], dtype=pl.Int64),
            "near_jaccard": pl.Series(result.jaccard[gone], dtype=pl.Float64),
            "reason": pl.Series([NEAR] * len(gone), dtype=pl.String),
        }
    )
    return frame, result.candidates


def _gathered(pool: Pool, documents: pl.DataFrame, plan: _Plan) -> ShingleReader:
    """Bring the shingles of the documents that are ``wanted`` together, and open their files."""
    indexes = [partition.index for partition in pool.partitions]
    marks = _by_partition(documents, "wanted", indexes)
    for index, wanted in zip(indexes, marks, strict=True):
        plan.files.save("wanted", index, wanted)
    if indexes:
        pool.map(_gather, plan, name="candidates")
    sizes = _by_partition(documents, "kept", indexes)
    chosen = [size[wanted] for size, wanted in zip(sizes, marks, strict=True)]
    return ShingleReader(plan.files, indexes, chosen)


def _equal(documents: pl.DataFrame) -> pl.DataFrame:
    """The same of documents that are too short to compare, with an equal whole text."""
    first = pl.col("seq", "same_task").sort_by("rank").first().over("text").name.prefix("first_")
    other = pl.col("first_same_task").is_null() | pl.col("same_task").is_null()
    other = other | (pl.col("first_same_task") != pl.col("same_task"))
    return (
        documents.with_columns(first)
        .filter((pl.col("seq") != pl.col("first_seq")) & other)
        .select(
            "seq",
            pl.col("first_seq").alias("anchor"),
            pl.lit(1.0).alias("near_jaccard"),
            pl.lit(EQUAL).alias("reason"),
        )
    )


def _columns_of(members: pl.DataFrame, gone: pl.DataFrame) -> pl.DataFrame:
    """The columns of the op for all members, with ``reason`` of those that are not anchors."""
    sizes = gone.group_by("anchor").agg((pl.len() + 1).cast(pl.Int64).alias("size"))
    ids = members.select("seq", "trajectory_id").filter(
        pl.col("seq").is_in(sizes["anchor"].implode())
    )
    names = sizes.join(ids.rename({"seq": "anchor"}), on="anchor", how="left")
    clusters = pl.concat(
        [
            gone.select("seq", "anchor", "near_jaccard", "reason"),
            sizes.select(
                pl.col("anchor").alias("seq"),
                "anchor",
                near_jaccard=pl.lit(None, pl.Float64),
                reason=pl.lit(None, pl.String),
            ),
        ]
    ).join(names, on="anchor", how="left")
    return (
        members.select("seq", "dataset", "trajectory_id")
        .join(clusters, on="seq", how="left", maintain_order="left", suffix="_of_anchor")
        .select(
            "seq",
            "dataset",
            "near_jaccard",
            "reason",
            pl.coalesce("anchor", "seq").alias("anchor"),
            near_cluster=pl.coalesce("trajectory_id_of_anchor", "trajectory_id"),
            near_cluster_size=pl.col("size").fill_null(1),
        )
    )


# ---- what is said about it ------------------------------------------------------------------


def _outcome(
    pool: Pool, options: DedupNear, columns: pl.DataFrame, summary: dict[str, Any]
) -> OpResult:
    gone = columns.filter(pl.col("reason").is_not_null())
    largest = columns["near_cluster_size"].max()
    summary |= {
        "duplicates": gone.height,
        "of_equal_short_text": gone.filter(pl.col("reason") == EQUAL).height,
        "clusters": gone["anchor"].n_unique(),
        "largest_cluster": largest if isinstance(largest, int) else 0,
    }
    lines = [
        f"{gone.height:,} of {len(pool):,} trajectories are near duplicates of one that stays; "
        f"the largest cluster has {summary['largest_cluster']:,}",
        f"{len(pool) - summary['compared']:,} have too few shingles of their own to be near "
        f"another one; of those {summary['of_equal_short_text']:,} have an equal text",
    ]
    named = columns.rename({"near_cluster": "cluster", "near_cluster_size": "size"})
    result = alarms(named.with_columns(pl.col("reason").is_not_null().alias("gone")), options)
    stop_on(result, options, _SUSPICION)
    summary["alarms"] = result
    return OpResult(
        columns=columns.select("seq", "near_cluster", "near_cluster_size", "near_jaccard"),
        dropped=_dropped(gone) if options.drop else None,
        summary=summary,
        lines=[*lines, *(f"alarm: {alarm}" for alarm in result)],
    )


def _dropped(gone: pl.DataFrame) -> pl.DataFrame:
    pairs = gone.select("near_cluster", "near_jaccard").iter_rows()
    evidence = [
        json.dumps(
            {"anchor": anchor, "jaccard": round(jaccard, 4)}, ensure_ascii=False, sort_keys=True
        )
        for anchor, jaccard in pairs
    ]
    return gone.select(
        "seq", "reason", pl.lit(pl.Series(evidence, dtype=pl.String)).alias("evidence")
    )
