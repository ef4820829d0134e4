"""Reading the trajectories: which parts of items each of them holds, partition by partition."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from adp.curation.ops.decontaminate.index import Index
from adp.curation.ops.decontaminate.shares import (
    Hits,
    ItemShares,
    frequent_parts,
    held,
    item_counts,
)
from adp.curation.partitions import Partition
from adp.curation.pool import Pool
from adp.curation.texts import token_hashes as kernel
from adp.curation.texts.token_hashes import I64
from adp.curation.texts.views import views
from adp_schema.writer import placing

TASK_VIEWS = ("task", "user")
"""What tells one document from another: attempts at one task say the same here."""

PATCH_VIEWS = ("patch", "actions", "agent")
"""What an agent edits, runs and says."""


@dataclass(frozen=True)
class Scan:
    """What `scan` looks for.

    Attributes:
        index: file of an `Index`.
        views: kinds of texts, see `adp.curation.texts.views`.
        hits: the files that it writes, with ``{}`` for the number of the partition.
        keyed: return the keys of the task texts too.
    """

    index: str
    views: tuple[str, ...]
    hits: str
    keyed: bool


def texts(partition: Partition, kinds: Sequence[str]) -> pl.DataFrame:
    """Texts of a partition: ``seq``, ``step`` (null for the task's record), ``kind``, ``text``.

    Each row is a message, or a part of one. Among the texts of the kind ``task`` are the
    instructions of the table of tasks.
    """
    frame = views(partition, kinds).select("seq", pl.col("step").cast(pl.Int32), "kind", "text")
    if "task" not in kinds:
        return frame
    instructions = partition.task_columns(["instruction"]).filter(
        pl.col("instruction").is_not_null()
    )
    nowhere = pl.lit(None, pl.Int32).alias("step")
    if not instructions.height:
        return frame
    instruction_texts = instructions.select(
        "seq", nowhere, pl.lit("task").alias("kind"), pl.col("instruction").alias("text")
    )
    return pl.concat([frame, instruction_texts]).sort("seq", maintain_order=True)


def keys(partition: Partition, rows: pl.DataFrame) -> pl.DataFrame:
    """``seq`` and a key of the task text of each trajectory; equal texts have equal keys.

    One without a task text has a key of its own.
    """
    hashers = {}
    rows = rows.filter(pl.col("kind").is_in(TASK_VIEWS))
    for seq, text in zip(rows["seq"].to_list(), rows["text"].to_list(), strict=True):
        if seq not in hashers:
            hashers[seq] = hashlib.blake2b(digest_size=8)
        hashers[seq].update(text.encode("utf-8") + b"\x00")
    bits: dict[int, bytes] = {}
    for seq in partition.seqs()["seq"].to_list():
        hasher = hashers.get(seq) or hashlib.blake2b(f"{seq}".encode(), digest_size=8, salt=b"seq")
        bits[seq] = hasher.digest()
    numbers = np.array([int.from_bytes(key, "big") for key in bits.values()], np.uint64)
    return pl.DataFrame({"seq": pl.Series(list(bits), dtype=pl.Int64), "key": numbers})


def scan(partition: Partition, options: Scan) -> pl.DataFrame:
    """Note in a file which parts each trajectory holds; return the keys, when they are wanted.

    The file has ``seq``; ``at``: number of the part's first word among those of the partition;
    and ``part``.
    """
    index = Index.load(Path(options.index))
    finder = index.finder()
    kinds = {*options.views, *TASK_VIEWS} if options.keyed else options.views
    rows = texts(partition, sorted(kinds))
    found_keys = (
        keys(partition, rows)
        if options.keyed
        else pl.DataFrame(schema={"seq": pl.Int64, "key": pl.UInt64})
    )
    rows = rows.filter(pl.col("kind").is_in(options.views))
    seqs = rows["seq"].to_numpy()
    frames = []
    before = 0
    for words in kernel.read_words(rows["text"].to_list()):
        hashes, start, _ = index.parts_of(words)
        which, part = finder.find(hashes)
        first = start[which]
        unit = words.line if index.line_words else np.arange(len(words))
        columns = {"seq": seqs[words.text[first]], "at": before + unit[first], "part": part}
        frames.append(pl.DataFrame(columns))
        before += int(unit[-1]) + 2 if len(unit) else 0
    schema = {"seq": pl.Int64, "at": pl.Int64, "part": pl.Int64}
    frame = pl.concat([pl.DataFrame(schema=schema), *frames])
    with placing(Path(options.hits.format(partition.index))) as staged:
        frame.write_parquet(staged)
    return found_keys


@dataclass(frozen=True)
class ScanMatches:
    """What a scan found.

    Attributes:
        index: without the frequent parts.
        frequent: numbers of the parts that are ignored.
        best: ``seq``, ``item``, ``share``: the item that each trajectory holds most of.
        over: number of items at or over the threshold in all, by item.
        lost: items that can be compared no more, since their parts are frequent.
    """

    index: Index
    frequent: I64
    best: pl.DataFrame
    over: I64
    lost: I64


@dataclass(frozen=True)
class CountRule:
    """How parts are counted.

    Attributes:
        threshold: share from which on a trajectory holds an item.
        count: count parts, else the words or lines that they cover.
        least: words or lines that can be compared, of an item that is compared at all.
        frequent: share of tasks, or items, above which a part is ignored.
        at_least: a part in so many, or fewer, never is.
    """

    threshold: float
    count: bool
    least: int
    frequent: float
    at_least: int


class PoolScanner:
    """Runs scans over a pool."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._first: I64 | None = None

    def run(
        self, name: str, index: Index, kinds: Sequence[str], same: I64, rule: CountRule
    ) -> ScanMatches:
        """Look for the parts of an index.

        Args:
            name: tells several scans apart.
            index: what to look for.
            kinds: texts to look in.
            same: of each item: a number that equal items share.
            rule: how to count.
        """
        path = self._pool.scratch / f"{name}-index.npz"
        index.save(path)
        files = str(self._pool.scratch / f"{name}-found-{{:05d}}.parquet")
        options = Scan(str(path), tuple(kinds), files, keyed=self._first is None)
        keyed = self._pool.map(scan, options, name)
        if self._first is None:
            self._first = _first_of(keyed)
        paths = [Path(files.format(partition.index)) for partition in self._pool.partitions]
        counts = np.zeros(len(index.hashes), np.int64)
        for hits in _read(paths):
            documents = _once(hits.document, hits.part, len(counts))
            first = np.isin(documents[0], self._first)
            counts += np.bincount(documents[1][first], minlength=len(counts))
        frequent = np.union1d(
            frequent_parts(counts, len(self._first), rule.frequent, rule.at_least),
            frequent_parts(
                item_counts(index, same), len(np.unique(same)), rule.frequent, rule.at_least
            ),
        )
        shares = ItemShares(index, frequent, rule.least, rule.count)
        best, over = _best(paths, shares, rule)
        return ScanMatches(shares.index, frequent, best, over, shares.lost)


def _first_of(keyed: pl.DataFrame) -> I64:
    """``seq`` of the first trajectory of each different task text, sorted."""
    if not keyed.height:
        return np.empty(0, np.int64)
    _, first = np.unique(keyed["key"].to_numpy(), return_index=True)
    return np.sort(keyed["seq"].to_numpy()[first])


def _read(paths: Sequence[Path]) -> Iterator[Hits]:
    for path in paths:
        frame = pl.read_parquet(path, glob=False)
        yield Hits(*(frame[name].to_numpy() for name in ("seq", "at", "part")))


def _once(documents: I64, parts: I64, several: int) -> tuple[I64, I64]:
    """Each pair of a document and a part once."""
    names, number = np.unique(documents, return_inverse=True)
    pairs = kernel.distinct(number * max(several, 1) + parts)
    return names[pairs // max(several, 1)], pairs % max(several, 1)


def _best(paths: Sequence[Path], shares: ItemShares, rule: CountRule) -> tuple[pl.DataFrame, I64]:
    """The best item of each trajectory; of equals the first. And how often each item is held."""
    items_of = shares.index.items
    over = np.zeros(items_of, np.int64)
    frames = []
    for hits in _read(paths):
        names, number = np.unique(hits.document, return_inverse=True)
        number, items, share = shares.of(Hits(number, hits.at, hits.part))
        documents = names[number]
        over += np.bincount(items[held(share, rule.threshold)], minlength=items_of)
        order = np.lexsort((items, -share, documents))
        documents, items, share = documents[order], items[order], share[order]
        first = np.flatnonzero(np.diff(documents, prepend=-1))
        frames.append(
            pl.DataFrame(
                {"seq": documents[first], "item": items[first], "share": share[first]},
                schema={"seq": pl.Int64, "item": pl.Int64, "share": pl.Float64},
            )
        )
    schema = {"seq": pl.Int64, "item": pl.Int64, "share": pl.Float64}
    return pl.concat(frames) if frames else pl.DataFrame(schema=schema), over
