"""Near-duplicate tasks: their texts, which of them lie in different splits, and moving them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from adp.curation.ops.split.near import NearDuplicates, near_pairs
from adp.curation.partitions import Partition
from adp.curation.pool import Pool
from adp.curation.texts import token_hashes as kernel
from adp.curation.texts.token_hashes import I64, U64
from adp.curation.texts.views import views
from adp_schema.writer import placing


@dataclass(frozen=True)
class Texts:
    """Which texts to shingle.

    Attributes:
        wanted: file with ``seq`` and ``unit``, the number that the text gets.
        shingle: words of a shingle.
        made: the files to write, with ``{}`` for the number of the partition.
    """

    wanted: str
    shingle: int
    made: str


def shingle(partition: Partition, options: Texts) -> pl.DataFrame:
    """Write ``unit`` and ``hash`` of the different shingles of the wanted texts.

    The text of a task is what the user says before the agent's first step; else the instruction of
    the table of tasks. A message of fewer words than a shingle has is one shingle.
    """
    wanted = pl.read_parquet(options.wanted, glob=False).filter(
        pl.col("seq").is_between(partition.first, partition.last)
    )
    rows = views(partition, ("task",)).select("seq", "text")
    text = partition.task_columns(["instruction"]).rename({"instruction": "text"})
    text = text.filter(pl.col("text").is_not_null()).join(rows, on="seq", how="anti")
    rows = pl.concat([rows, text]).join(wanted, on="seq", how="inner", maintain_order="left")
    units = rows["unit"].to_numpy()
    parts = [np.empty((0, 2), np.uint64)]
    for words in kernel.read_words(rows["text"].to_list()):
        for hashes, number in _shingles(words, options.shingle):
            parts.append(np.stack([units[number].astype(np.uint64), hashes], axis=1))
    pairs = np.concatenate(parts)
    pairs = pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]
    new = np.ones(len(pairs), np.bool_)
    new[1:] = (pairs[1:] != pairs[:-1]).any(axis=1)
    frame = pl.DataFrame({"unit": pairs[new, 0].astype(np.int64), "hash": pairs[new, 1]})
    with placing(Path(options.made.format(partition.index))) as staged:
        frame.write_parquet(staged)
    return pl.DataFrame({"partition": [partition.index], "shingles": [frame.height]})


def _shingles(words: kernel.WordHashes, size: int) -> Iterator[tuple[U64, I64]]:
    """Hashes of shingles, with the numbers of their texts."""
    hashes, start = kernel.runs(words, size)
    yield hashes, words.text[start]
    _, first, lengths = np.unique(words.text, return_index=True, return_counts=True)
    for length in range(1, size):
        short = lengths == length
        if short.any():
            hashes, start = kernel.runs(words, length)
            repeated = np.isin(start, first[short])
            yield hashes[repeated], words.text[start[repeated]]


def near_units(
    pool: Pool, units: pl.DataFrame, size: int, threshold: float, limit: float
) -> NearDuplicates:
    """The near-duplicates among the tasks of some trajectories.

    Args:
        pool: the pool.
        units: ``seq`` and ``unit``, numbers from 0.
        size: words of a shingle.
        threshold: Jaccard similarity of a pair.
        limit: a shingle in more tasks than this is ignored.
    """
    wanted = pool.scratch / "units.parquet"
    units.select("seq", "unit").write_parquet(wanted)
    made = str(pool.scratch / "units-{:05d}.parquet")
    done = pool.map(shingle, Texts(str(wanted), size, made), "shingles")
    paths = [Path(made.format(number)) for number in (done["partition"] if done.height else [])]

    def chunks() -> Iterator[tuple[I64, U64]]:
        for path in paths:
            frame = pl.read_parquet(path, glob=False)
            yield frame["unit"].to_numpy(), frame["hash"].to_numpy()

    shingles = int(done["shingles"].sum()) if done.height else 0
    return near_pairs(chunks, units.height, shingles, threshold, limit)


def crossing(near: NearDuplicates, splits: Sequence[str]) -> pl.DataFrame:
    """Near-duplicates in different splits.

    Args:
        near: the near-duplicates.
        splits: split of each unit.

    Returns:
        ``unit``; ``other``: the first unit of each other split among the nearest; ``split`` and
        ``other_split``; ``jaccard``: one row for each unit and other split that it leaks into or
        from.
    """
    units = pl.DataFrame(
        {
            "unit": np.arange(len(near.first)),
            "first": near.first,
            "split": pl.Series(splits, dtype=pl.String),
        }
    ).filter(pl.Series(near.compared))
    nodes = units.group_by("first", "split").agg(pl.col("unit").min().alias("other"))
    firsts = np.unique(near.first)
    relation = pl.DataFrame(
        {
            "first": np.concatenate([near.left, near.right, firsts]),
            "near": np.concatenate([near.right, near.left, firsts]),
            "jaccard": np.concatenate([near.jaccard, near.jaccard, np.ones(len(firsts))]),
        }
    )
    others = nodes.rename({"first": "near", "split": "other_split"})
    unique = (
        relation.join(others, on="near", how="inner")
        .sort("first", "other_split", -pl.col("jaccard"), "other")
        .unique(["first", "other_split"], keep="first", maintain_order=True)
    )
    return (
        units.join(unique, on="first", how="inner")
        .filter(pl.col("split") != pl.col("other_split"))
        .select("unit", "other", "split", "other_split", "jaccard")
        .sort("unit", -pl.col("jaccard"), "other")
    )


def components(near: NearDuplicates, groups: I64, number: int) -> I64:
    """Groups that hang together by near-duplicates get the same number.

    Args:
        near: the near-duplicates among units.
        groups: group of each unit.
        number: number of groups.
    """
    parent = list(range(number))

    def root(group: int) -> int:
        while parent[group] != group:
            parent[group] = parent[parent[group]]
            group = parent[group]
        return group

    units = np.arange(len(groups))
    left = groups[np.concatenate([near.left, units])]
    right = groups[np.concatenate([near.right, near.first])]
    for result, other in zip(left.tolist(), right.tolist(), strict=True):
        first, second = sorted((root(result), root(other)))
        parent[second] = first
    return np.array([root(group) for group in range(number)], np.int64)


def together(
    component: I64, spots: Sequence[float], splits: Sequence[str | None], fixed: Sequence[bool]
) -> list[str | None]:
    """The split of each group: that of the one with the smallest hash in its component.

    Where an existing split is kept, it decides, and stays.
    """
    best: dict[int, int] = {}
    for group, name in enumerate(component.tolist()):
        at = best.get(name)
        if at is None or (not fixed[group], spots[group]) < (not fixed[at], spots[at]):
            best[name] = group
    return [
        splits[group] if fixed[group] else splits[best[name]]
        for group, name in enumerate(component.tolist())
    ]


def shares_of(counts: Mapping[str, int]) -> dict[str, float]:
    """Share of each split in the sum."""
    total = sum(counts.values())
    return {name: round(count / total, 4) if total else 0.0 for name, count in counts.items()}
