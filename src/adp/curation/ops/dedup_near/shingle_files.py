"""Shingles of all documents, on disk: which are too common, and those that are left."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from adp_schema.writer import placing

Numbers = np.ndarray[Any, Any]

_BUCKETS = 1 << 22
"""Counters that the shingles share in the first count: 16 MB."""


@dataclass(frozen=True)
class ShingleFiles:
    """Where the shingles of the partitions lie."""

    folder: str

    def path(self, what: str, index: int) -> Path:
        """The file of a partition."""
        return Path(self.folder) / f"{what}-{index:05d}.npy"

    def save(self, what: str, index: int, values: Numbers) -> None:
        """Write the file of a partition."""
        with placing(self.path(what, index)) as staged, staged.open("wb") as file:
            np.save(file, values)

    def load(self, what: str, index: int) -> Numbers:
        """Read the file of a partition."""
        numbers: Numbers = np.load(self.path(what, index))
        return numbers


def common_shingles(files: ShingleFiles, indexes: Sequence[int], limit: float) -> Numbers:
    """The shingles of more than ``limit`` documents.

    First all shingles are counted in `_BUCKETS` shared counters, which never count too few; then
    those of the full counters one by one. Documents with the same shingles count once. So memory
    does not grow with the number of shingles.

    Args:
        files: where the shingles lie, under ``shingles``, ``sizes`` and ``counted``.
        indexes: numbers of the partitions.
        limit: a number of documents.

    Returns:
        Their hashes, sorted.
    """
    counts = np.zeros(_BUCKETS, np.uint32)
    for hashes in _counted(files, indexes):
        np.add.at(counts, _bucket(hashes), np.uint32(1))
    full = counts > limit
    known, times = np.zeros(0, np.uint64), np.zeros(0, np.int64)
    for hashes in _counted(files, indexes) if full.any() else ():
        more, often = np.unique(hashes[full[_bucket(hashes)]], return_counts=True)
        both, place = np.unique(np.concatenate([known, more]), return_inverse=True)
        total = np.zeros(len(both), np.int64)
        total[place[: len(known)]] += times
        total[place[len(known) :]] += often
        known, times = both, total
    return known[times > limit]


def _counted(files: ShingleFiles, indexes: Sequence[int]) -> Iterator[Numbers]:
    for index in indexes:
        hashes = files.load("shingles", index)
        counted = files.load("counted", index)
        if not counted.all():
            hashes = hashes[np.repeat(counted, files.load("sizes", index))]
        yield hashes


def _bucket(hashes: Numbers) -> Numbers:
    return (hashes & np.uint64(_BUCKETS - 1)).astype(np.int64)


def without(hashes: Numbers, sizes: Numbers, common: Numbers) -> tuple[Numbers, Numbers]:
    """The shingles of documents that are not common, and how many each document has."""
    if not len(common) or not len(hashes):
        return hashes, sizes
    marked = np.zeros(_BUCKETS, bool)
    marked[_bucket(common)] = True
    maybe = np.flatnonzero(marked[_bucket(hashes)])
    place = np.minimum(np.searchsorted(common, hashes[maybe]), len(common) - 1)
    keep = np.ones(len(hashes), bool)
    keep[maybe[common[place] == hashes[maybe]]] = False
    kept = np.concatenate([[0], np.cumsum(keep)])
    ends = np.cumsum(sizes)
    return hashes[keep], kept[ends] - kept[ends - sizes]


class ShingleReader:
    """The shingles of any candidate, read when they are asked for.

    Args:
        files: where they lie, under ``candidates``.
        indexes: numbers of the partitions.
        sizes: of each partition, how many shingles each candidate has.
    """

    def __init__(
        self, files: ShingleFiles, indexes: Sequence[int], sizes: Sequence[Numbers]
    ) -> None:
        self._files = [os.open(files.path("candidates", index), os.O_RDONLY) for index in indexes]
        self._file = np.repeat(np.arange(len(sizes)), [len(item) for item in sizes])
        heads = [os.fstat(file).st_size for file in self._files]
        starts = [np.zeros(0, np.int64)]
        for head, size in zip(heads, sizes, strict=True):
            # The data end the file; the header before them is of a length that numpy chooses.
            starts.append(head - 8 * int(size.sum()) + 8 * (np.cumsum(size) - size))
        self._starts = np.concatenate(starts)
        self.sizes = np.concatenate([np.zeros(0, np.int64), *sizes])

    def read(self, document: int) -> Numbers:
        """Hashes of the shingles of a document, sorted."""
        size = 8 * int(self.sizes[document])
        data = os.pread(self._files[self._file[document]], size, int(self._starts[document]))
        return np.frombuffer(data, np.uint64)

    def close(self) -> None:
        """Close the files."""
        for file in self._files:
            os.close(file)
        self._files = []
