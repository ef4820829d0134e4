"""Candidates among very many vectors: those on the same side of several random planes.

Charikar, 2002, "Similarity estimation techniques from rounding algorithms": a random plane through
the origin separates two vectors with a probability of angle / pi. A band is so many planes that
about 16 rows are on the same sides of all; there are so many bands that a pair at the threshold
shares one with a probability of 99.5 %, and the more similar sooner. Every pair is then computed in
full, so the only error is a pair that is missed.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from adp.curation.ops.dedup_semantic.stars import SemanticStars, VectorRows, VectorSearch, link

Array = np.ndarray[Any, Any]

_SEED = 20020519
_RECALL = 0.995
_MOST_BANDS = 256
_MOST = 256
"""In a bucket of more rows, only the first so many are compared with all."""

_COARSE = np.float32(4000)
"""Vectors are rounded to multiples of 1 / 4000 here: float32 adds such numbers without error."""

_BLOCK = 65_536


def banded_stars(rows: VectorRows) -> SemanticStars:
    """Find the clusters; a pair of similar rows may be missed."""
    count, dimensions = rows.matrix.shape
    if count < 2:
        return SemanticStars.alone(count)
    planes, bands = shape(count, rows.threshold)
    search = VectorSearch(rows)
    random = np.random.default_rng(_SEED)
    arrays: list[Array] = [np.zeros((3, 0))]
    for _ in range(bands):
        signs = np.where(random.random((dimensions, planes)) < 0.5, -1, 1).astype(np.float32)
        left, right = _same_bucket(_sides(rows.matrix, signs))
        arrays.append(np.stack(search.check(left, right)))
    pairs = np.concatenate(arrays, axis=1)
    keys = pairs[0].astype(np.int64) * count + pairs[1].astype(np.int64)
    keys, first = np.unique(keys, return_index=True)
    stars = SemanticStars.alone(count)
    link(stars, *np.divmod(keys, count), pairs[2][first])
    return stars


def shape(count: int, threshold: float) -> tuple[int, int]:
    """Planes of a band, and bands."""
    planes = min(max(int(math.log2(max(count, 2))) - 4, 4), 24)
    same = (1 - math.acos(min(threshold, 1.0)) / math.pi) ** planes
    bands = 1 if same >= 1 else math.ceil(math.log(1 - _RECALL) / math.log(1 - same))
    return planes, min(bands, _MOST_BANDS)


def _sides(matrix: Array, signs: Array) -> Array:
    """For each row a number: on which side of each plane it is."""
    weights = 1 << np.arange(signs.shape[1])
    values = np.empty(len(matrix), np.int64)
    for start in range(0, len(matrix), _BLOCK):
        part = np.rint(matrix[start : start + _BLOCK] * _COARSE)
        values[start : start + _BLOCK] = (part @ signs > 0) @ weights
    return values


def _same_bucket(sides: Array) -> tuple[Array, Array]:
    """Pairs of rows with the same number, the first before the second."""
    order = np.argsort(sides, kind="stable")
    ordered = sides[order]
    starts = np.flatnonzero(np.diff(ordered, prepend=-1))
    ends = np.append(starts[1:], len(order))
    place = np.arange(len(order))
    end = np.repeat(ends, ends - starts)
    start = np.repeat(starts, ends - starts)
    first = place[place - start < _MOST]
    others = end[first] - first - 1
    left = np.repeat(first, others)
    right = left + 1 + np.arange(len(left)) - np.repeat(np.cumsum(others) - others, others)
    return order[left], order[right]
