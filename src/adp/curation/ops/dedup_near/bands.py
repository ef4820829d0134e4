"""Bands of all documents, on disk: a stage that finds the documents with an equal band.

The hashes of a band lie one after another in the file of a partition, so a worker reads one band of
all partitions and nothing else. With very many documents it takes a range of the hashes at a time:
memory grows with the documents of a range, not with all of them. This is the shuffle of the op.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from adp.curation.ops.dedup_near.shingle_files import ShingleFiles
from adp.curation.ops.dedup_near.stars import Buckets, equal_keys
from adp.curation.pool import Pool
from adp.stores.stage import run_stage

Numbers = np.ndarray[Any, Any]

RANGE_DOCUMENTS = 1 << 24
"""Documents of which a worker sorts a band at a time: about 300 MB."""

_RANK = "rank"


@dataclass(frozen=True)
class BandPart:
    """One range of the hashes of one band.

    Attributes:
        index: its number.
        size: bytes to read.
        band: number of the band.
        range: number of the range.
        ranges: how many there are, a power of two.
    """

    index: int
    size: int
    band: int
    range: int
    ranges: int


def shared_bands(
    pool: Pool, files: ShingleFiles, indexes: Sequence[int], ranks: Numbers, bands: int
) -> Buckets:
    """Find the documents that share a band.

    Args:
        pool: whose workers do it; its scratch folder holds what they find.
        files: where the hashes lie, under ``bands``.
        indexes: numbers of the partitions.
        ranks: for each column of the bands, partition after partition, the number of its document.
        bands: how many bands there are.
    """
    files.save(_RANK, 0, ranks)
    count = len(ranks)
    ranges = 1 << max(0, (count - 1) // RANGE_DOCUMENTS).bit_length()
    parts = [
        BandPart(band * ranges + part, 8 * count, band, part, ranges)
        for band in range(bands if count else 0)
        for part in range(ranges)
    ]
    scratch = Path(files.folder)
    known = {part.index: None for part in parts if _path(scratch, part.index).exists()}
    work = functools.partial(_find, files, tuple(indexes))
    run_stage(parts, work, pool.workers, pool.progress, known=known)
    members, sizes = [np.zeros(0, np.uint32)], [np.zeros(0, np.int64)]
    for part in parts:
        with np.load(_path(scratch, part.index)) as held:
            members.append(held["members"])
            sizes.append(held["sizes"])
    return Buckets(np.concatenate(members), np.concatenate(sizes))


def _path(scratch: Path, index: int) -> Path:
    return scratch / f"buckets-{index:05d}.npz"


def _find(files: ShingleFiles, indexes: Sequence[int], part: BandPart) -> None:
    """Write the documents that share a hash of a range."""
    ranks = np.load(files.path(_RANK, 0), mmap_mode="r")
    bits = np.uint64(max(len(ranks) - 1, 1).bit_length())
    shift = np.uint64(65 - part.ranges.bit_length())
    keys, start = [np.zeros(0, np.uint64)], 0
    for index in indexes:
        hashes = np.load(files.path("bands", index), mmap_mode="r")[part.band]
        rank = ranks[start : start + len(hashes)]
        start += len(hashes)
        if part.ranges > 1:
            inside = np.flatnonzero(hashes >> shift == np.uint64(part.range))
            hashes, rank = hashes[inside], rank[inside]
        # The lower bits give way to the number of the document: one sort does for both.
        keys.append(hashes >> bits << bits | rank.astype(np.uint64))
    members, sizes = equal_keys(np.concatenate(keys), int(bits))
    path = _path(Path(files.folder), part.index)
    staged = path.with_suffix(".tmp")
    with staged.open("wb") as file:
        np.savez(file, members=members, sizes=sizes)
    staged.replace(path)


def sketches_of(files: ShingleFiles, indexes: Sequence[int], columns: Numbers) -> Numbers:
    """Sketches of some documents.

    Args:
        files: where they lie, under ``sketch``.
        indexes: numbers of the partitions.
        columns: numbers of the documents among those with a sketch, partition after partition.
    """
    order = np.argsort(columns, kind="stable")
    wanted, start = columns[order], 0
    pieces = []
    for index in indexes:
        rows = np.load(files.path("sketch", index), mmap_mode="r")
        first, last = np.searchsorted(wanted, [start, start + len(rows)])
        pieces.append(rows[wanted[first:last] - start])
        start += len(rows)
    if not len(columns):
        return np.zeros((0, 1), np.uint8)
    result = np.empty((len(columns), pieces[0].shape[1]), np.uint8)
    result[order] = np.concatenate(pieces)
    return result
