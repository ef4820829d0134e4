"""Vectors of texts without a model: hashed word n-grams, TF-IDF, sparse random projection.

Words and pairs of words are hashed into 2**18 buckets (feature hashing; Weinberger and others,
2009, "Feature Hashing for Large Scale Multitask Learning"). A bucket counts 1 + ln(times in the
trajectory), times ln((1 + n) / (1 + trajectories that have it)) + 1. The buckets are projected to
few dimensions by a sparse random matrix of signs with one entry in each of four blocks (Kane and
Nelson, 2014, "Sparser Johnson-Lindenstrauss Transforms"). Cosines of what comes out are those of
the TF-IDF vectors, give or take (1 - cosine**2) / sqrt(dimensions): near 1 they are exact, and
around 0 they are noise of 0.05.

The texts are read once, partition by partition. Hashes are our own, of bytes, so that the same
texts give the same vectors in every version of every library.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from adp.curation.partitions import Partition
from adp.curation.pool import Pool
from adp.curation.texts.views import views
from adp_schema.writer import placing

Array = np.ndarray[Any, Any]

BITS = 18
"""There are 2**BITS buckets."""

_BLOCKS = 4
_SEED = 20140119
"""Of the projection. It is no option: vectors of two runs can be compared."""

_PIECE = 1 << 18
"""A longer text is cut, so that memory is bounded; n-grams over the cut are lost."""

_CHUNK = 1 << 18
"""Bytes of text that are hashed at a time."""

_KEYS = 1 << 23
"""Keys that are held before equal ones are counted."""

_ROWS = 2048
"""Trajectories that are projected at a time."""

_BASE = np.uint64(0x9E3779B97F4A7C15)
_STEP = np.uint64(0xD6E8FEB86659FD93)


@dataclass(frozen=True)
class HashJob:
    """What a worker needs to know.

    Attributes:
        views: which texts; see `adp.curation.texts.views`.
        folder: where the counts are.
        documents: number of trajectories that have a word.
        dimensions: of the vectors.
    """

    views: tuple[str, ...]
    folder: str
    documents: int = 0
    dimensions: int = 0

    def counts(self, partition: Partition) -> Path:
        """File of the counts of a partition."""
        return Path(self.folder) / f"counts-{partition.index:05d}.npz"


def hashed_vectors(pool: Pool, kinds: tuple[str, ...], dimensions: int) -> Array:
    """Vectors of all members, in the order of ``seq``; not yet of length 1.

    Args:
        pool: the pool; its scratch folder holds the counts meanwhile.
        kinds: which texts.
        dimensions: of the vectors.

    Returns:
        n x dimensions, float32. A trajectory without a word has zeros.
    """
    job = HashJob(kinds, str(pool.scratch))
    frequencies = pool.map(_count, job, name="words")
    values = np.zeros((len(pool), dimensions), np.float32)
    if not len(pool):
        return values
    total = frequencies.group_by("bucket").agg(total=_sum("documents")).sort("bucket")
    documents = np.zeros((1 << BITS) + 1, np.int64)
    documents[total["bucket"].to_numpy()] = total["total"].to_numpy()
    np.save(pool.scratch / "frequencies.npy", documents[:-1])
    job = HashJob(kinds, str(pool.scratch), int(documents[-1]), dimensions)
    rows = pool.map(_project, job, name=f"vectors-{dimensions}")
    place = np.searchsorted(pool.members["seq"].to_numpy(), rows["seq"].to_numpy())
    start = 0
    for part in rows["vector"].to_frame().iter_slices(_ROWS):
        block = np.frombuffer(b"".join(part["vector"].to_list()), "<f4").reshape(-1, dimensions)
        values[place[start : start + len(block)]] = block
        start += len(block)
    for partition in pool.partitions:
        job.counts(partition).unlink(missing_ok=True)
    return values


def _sum(name: str) -> pl.Expr:
    return pl.col(name).sum()


# ---- words --------------------------------------------------------------------------------------


def _count(partition: Partition, job: HashJob) -> pl.DataFrame:
    """Count the buckets of every trajectory into a file; say in how many each bucket is.

    The bucket 2**18, which no word has, stands for the trajectories that have a word at all.
    """
    rows = views(partition, job.views)
    seqs = partition.seqs()["seq"].to_numpy()
    owners = np.searchsorted(seqs, rows["seq"].to_numpy())
    keys, counts = counted(rows["text"].str.to_lowercase(), owners)
    with placing(job.counts(partition)) as staged, staged.open("wb") as file:
        np.savez(file, keys=keys, counts=counts)
    frequencies = np.bincount((keys & np.uint64((1 << BITS) - 1)).astype(np.int64))
    buckets = np.flatnonzero(frequencies)
    having = len(np.unique(keys >> np.uint64(BITS)))
    return pl.DataFrame(
        {
            "bucket": np.append(buckets, 1 << BITS).astype(np.uint32),
            "documents": np.append(frequencies[buckets], having).astype(np.int64),
        }
    )


def counted(texts: pl.Series, owners: Array) -> tuple[Array, Array]:
    """Count the buckets of words and pairs of words.

    Args:
        texts: texts in lower case. A pair never goes from one into the next.
        owners: for each text the number of its document, not falling.

    Returns:
        Keys (document << BITS | bucket), sorted, each once; and how often each is there.
    """
    held: list[Array] = []
    size = 0
    done: list[tuple[Array, Array]] = []
    for data, starts, numbers in _chunks(texts, owners):
        chunk_keys = _chunk_keys(data, starts, numbers)
        held.append(chunk_keys)
        size += len(chunk_keys)
        if size >= _KEYS:
            done.append(_run_lengths(np.concatenate(held)))
            held, size = [], 0
    if held or not done:
        done.append(_run_lengths(np.concatenate([np.zeros(0, np.uint64), *held])))
    if len(done) == 1:
        return done[0]
    keys = np.concatenate([part[0] for part in done])
    order = np.argsort(keys, kind="stable")
    counts = np.concatenate([part[1] for part in done])[order]
    keys = keys[order]
    first = np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))
    return keys[first], np.add.reduceat(counts, first).astype(np.uint32)


def _run_lengths(keys: Array) -> tuple[Array, Array]:
    keys.sort()
    first = np.flatnonzero(np.append(len(keys) > 0, keys[1:] != keys[:-1]))
    return keys[first], np.diff(np.append(first, len(keys))).astype(np.uint32)


def _chunks(texts: pl.Series, owners: Array) -> Iterator[tuple[Array, Array, Array]]:
    """Bytes of some texts, where each text starts in them, and the document of each."""
    parts: list[bytes] = []
    starts: list[int] = []
    numbers: list[int] = []
    size = 0
    for text, owner in zip(texts, owners.tolist(), strict=True):
        data = (text or "").encode("utf-8", "surrogatepass")
        for place in range(0, len(data), _PIECE):
            piece = data[place : place + _PIECE]
            starts.append(size)
            numbers.append(owner)
            parts += (piece, b"\n")
            size += len(piece) + 1
            if size >= _CHUNK:
                yield _bytes(parts), np.array(starts), np.array(numbers, np.uint64)
                parts, starts, numbers, size = [], [], [], 0
    if parts:
        yield _bytes(parts), np.array(starts), np.array(numbers, np.uint64)


def _bytes(parts: list[bytes]) -> Array:
    return np.frombuffer(b"".join(parts), np.uint8)


def _word_bytes() -> Array:
    """For each byte whether it belongs to a word: letters, digits, underscore, all not ASCII."""
    plain = [chr(byte).isalnum() or byte == ord("_") for byte in range(128)]
    return np.array(plain + [True] * 128)


_IN_WORD = _word_bytes()


@functools.lru_cache(maxsize=1)
def _powers(count: int) -> tuple[Array, Array]:
    """Powers of the base modulo 2**64, and of what it is multiplied with to get 1."""
    back = pow(int(_BASE), -1, 1 << 64)
    ahead, behind = (np.full(count, base, np.uint64) for base in (int(_BASE), back))
    return np.multiply.accumulate(ahead), np.multiply.accumulate(behind)


def _chunk_keys(data: Array, starts: Array, numbers: Array) -> Array:
    """Keys of all words and pairs of a chunk.

    The hash of a word is a polynomial over its bytes modulo 2**64. It is taken from prefix sums:
    the sum over the word, divided by the power at its start, which an odd base allows.
    """
    inside = np.zeros(len(data) + 2, np.int8)
    inside[1:-1] = _IN_WORD[data]
    edges = np.diff(inside)
    begin, end = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)
    if not len(begin):
        return np.zeros(0, np.uint64)
    ahead, back = _powers(max(len(data), _CHUNK + _PIECE + 1))
    sums = np.zeros(len(data) + 1, np.uint64)
    np.cumsum((data + np.uint64(1)) * ahead[: len(data)], out=sums[1:])
    words = _mixed((sums[end] - sums[begin]) * back[begin])
    text = np.searchsorted(starts, begin, side="right") - 1
    owner = numbers[text] << np.uint64(BITS)
    shift = np.uint64(64 - BITS)
    same = text[1:] == text[:-1]
    pairs = _mixed((words[:-1] * _STEP + words[1:])[same])
    return np.concatenate([owner | words >> shift, owner[1:][same] | pairs >> shift])


def _mixed(hashes: Array) -> Array:
    """Spread every bit over all bits (the end of splitmix64)."""
    hashes = (hashes ^ hashes >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    hashes = (hashes ^ hashes >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    mixed: Array = hashes ^ hashes >> np.uint64(31)
    return mixed


# ---- vectors ------------------------------------------------------------------------------------


def _project(partition: Partition, job: HashJob) -> pl.DataFrame:
    """Weigh the counts of a partition and project them."""
    with np.load(job.counts(partition)) as held:
        keys, counts = held["keys"], held["counts"]
    documents = np.load(Path(job.folder) / "frequencies.npy")
    weights = np.log((1 + job.documents) / (1 + documents)) + 1
    seqs = partition.seqs()["seq"]
    vectors = []
    table = projection(job.dimensions)
    for start in range(0, len(seqs), _ROWS):
        rows = min(_ROWS, len(seqs) - start)
        first, last = np.searchsorted(
            keys, np.array([start, start + rows], np.uint64) << np.uint64(BITS)
        )
        key = keys[first:last]
        bucket = (key & np.uint64((1 << BITS) - 1)).astype(np.int64)
        row = (key >> np.uint64(BITS)).astype(np.int64) - start
        value = (1 + np.log(counts[first:last])) * weights[bucket]
        block = projected(row, bucket, value, rows, table)
        vectors += [line.tobytes() for line in block.astype("<f4")]
    return pl.DataFrame({"seq": seqs, "vector": pl.Series(vectors, dtype=pl.Binary)})


@dataclass(frozen=True)
class Projection:
    """A sparse random matrix.

    Attributes:
        places: for each bucket its dimensions, one in each block; blocks x buckets.
        signs: -1 or 1 for each.
        dimensions: number of dimensions.
    """

    places: Array
    signs: Array
    dimensions: int


@functools.lru_cache(maxsize=1)
def projection(dimensions: int) -> Projection:
    """The matrix for a number of dimensions; it is always the same."""
    random = np.random.default_rng(_SEED)
    blocks = min(_BLOCKS, dimensions)
    edges = np.linspace(0, dimensions, blocks + 1).astype(np.int64)
    draws = random.random((blocks, 1 << BITS))
    places = edges[:-1, None] + (draws * np.diff(edges)[:, None]).astype(np.int64)
    signs = np.where(random.random((blocks, 1 << BITS)) < 0.5, -1.0, 1.0)
    return Projection(places, signs, dimensions)


def projected(row: Array, bucket: Array, value: Array, rows: int, table: Projection) -> Array:
    """Multiply sparse rows with the projection.

    Args:
        row: number of the row of each entry.
        bucket: its bucket.
        value: its value.
        rows: number of rows.
        table: the projection.

    Returns:
        rows x dimensions, float64.
    """
    size = rows * table.dimensions
    values = np.zeros(size)
    start = row * table.dimensions
    for places, signs in zip(table.places, table.signs, strict=True):
        values += np.bincount(start + places[bucket], value * signs[bucket], size)
    return values.reshape(rows, table.dimensions)
