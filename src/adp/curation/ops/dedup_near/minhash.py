"""MinHash sketches and bands of documents, by whole arrays.

The upper 32 bits of the hash of a shingle, x, go through 128 functions ``a * x + b`` modulo 2**32
with odd a, as in datasketch's scheme ``affine32``; the least value of each function over a
document is one number of its signature. Two documents have the same number with a probability
of about their Jaccard similarity (Broder 1997, "On the resemblance and containment of
documents"). Rows of numbers are mixed into bands; documents with an equal band are candidates
(Leskovec, Rajaraman and Ullman, "Mining of Massive Datasets", section 3.4).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from adp.curation.texts.shingles import BITS

Numbers = np.ndarray[Any, Any]

_BLOCK = 1 << 16
"""Shingles that go through all functions while they are in the cache."""

_SEED = 20_251
"""Fixed: what is compared with what must not depend on the seed of a recipe."""

_MIX = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93))

RECALL = 0.995
"""Probability of being compared that a pair exactly at the threshold should have."""


def chance(jaccard: float, bands: int, rows: int) -> float:
    """Probability that two documents share a band."""
    return float(1 - (1 - jaccard**rows) ** bands)


def choose_bands(threshold: float, permutations: int) -> tuple[int, int]:
    """Bands and rows for a threshold: the most rows with which few pairs at it are missed."""
    for rows in range(min(permutations, 16), 1, -1):
        bands = permutations // rows
        if chance(threshold, bands, rows) >= RECALL:
            return bands, rows
    return permutations, 1


def signatures(hashes: Numbers, sizes: Numbers, permutations: int) -> Numbers:
    """The signature of each document.

    Args:
        hashes: hashes of the shingles, one document after the other.
        sizes: how many each document has; none has 0.
        permutations: numbers of a signature.

    Returns:
        uint32, documents by permutations.
    """
    draw = np.random.Generator(np.random.PCG64(_SEED))
    factors = draw.integers(0, 1 << 32, permutations, dtype=np.uint32) | np.uint32(1)
    offsets = draw.integers(0, 1 << 32, permutations, dtype=np.uint32)
    ends = np.cumsum(sizes)
    result = np.empty((permutations, len(sizes)), np.uint32)
    values = (hashes >> np.uint64(BITS - 32)).astype(np.uint32)
    place = 0
    while place < len(sizes):
        start = ends[place] - sizes[place]
        stop = max(int(np.searchsorted(ends, start + _BLOCK, side="right")), place + 1)
        block = values[start : ends[stop - 1]]
        heads = ends[place:stop] - sizes[place:stop] - start
        mixed = np.empty_like(block)
        for number in range(permutations):
            np.multiply(block, factors[number], out=mixed)
            np.add(mixed, offsets[number], out=mixed)
            np.minimum.reduceat(mixed, heads, out=result[number, place:stop])
        place = stop
    return np.ascontiguousarray(result.T)


def band_hashes(signature: Numbers, bands: int, rows: int) -> Numbers:
    """Hashes of the bands of signatures: uint64, bands by documents."""
    values = np.zeros((bands, len(signature)), np.uint64)
    for band in range(bands):
        for row in range(band * rows, (band + 1) * rows):
            values[band] ^= signature[:, row]
            values[band] *= _MIX[row % 2]
            values[band] ^= values[band] >> np.uint64(32)
    return values
