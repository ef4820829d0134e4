"""Stars of similar vectors: each row belongs to the first row before it that is similar enough.

The rows come in the order in which they would stay. The first is an anchor and takes all rows that
are similar to it; the next one that is free is an anchor, and so on. So a cluster is an anchor and
rows similar to the anchor itself, and no list of all similar pairs is ever needed.

The search is exact. The squared distance of two vectors is at least that of their first
coordinates in any rotation of the space; rotated to the main axes of the data, a few coordinates
rule out nearly all pairs, and only the others are computed in full. How many coordinates is decided
by a sample; it changes the time and nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from adp.curation.texts.vectors import BLOCK, in_threads, one_thread, squares

Array = np.ndarray[Any, Any]

_ROWS = 1024
_COLUMNS = 8192
_PAIRS = 8192
"""Pairs that are computed in full at a time."""

_MARGIN = 1e-4
"""Far above the error of float32 here: the coarse search must not miss a pair."""

_SAMPLE = 512
_WIDTHS = (16, 32, 64, 128, 256)
_FULL = 15_000
"""What a pair computed in full costs, in coordinates of the coarse search."""

_DENSE = 0.02
"""With more candidates than this share of all pairs, all are computed in full at once."""


@dataclass
class VectorRows:
    """What is compared.

    Attributes:
        matrix: n x d, as `texts.vectors.unit` makes them, without rows of zeros; in the
            order in which they would stay.
        task: number of the task of each row; -1 when it may be compared with all.
        threshold: least cosine of a duplicate.
    """

    matrix: Array
    task: Array
    threshold: float

    def __post_init__(self) -> None:
        self.length = np.sqrt(squares(self.matrix))

    def cosines(self, left: Array, right: Array) -> Array:
        """The cosines of pairs of rows."""
        values = np.empty(len(left))
        for start in range(0, len(left), _PAIRS):
            result, other = left[start : start + _PAIRS], right[start : start + _PAIRS]
            values[start : start + _PAIRS] = np.einsum(
                "ij,ij->i", self.matrix[result].astype(np.float64), self.matrix[other]
            )
        cosine: Array = np.minimum(values / (self.length[left] * self.length[right]), 1)
        return cosine

    def near(self, left: Array, right: Array) -> tuple[Array, Array, Array]:
        """Those of some pairs that are duplicates, and their cosines."""
        good = (self.task[left] < 0) | (self.task[left] != self.task[right])
        left, right = left[good], right[good]
        cosine = self.cosines(left, right)
        near = cosine >= self.threshold
        return left[near], right[near], cosine[near]


@dataclass
class SemanticStars:
    """The clusters.

    Attributes:
        anchor: for each row the anchor of its cluster; an anchor has itself.
        cosine: its cosine with the anchor; 1 for an anchor.
    """

    anchor: Array
    cosine: Array

    @classmethod
    def alone(cls, count: int) -> SemanticStars:
        """Every row by itself."""
        return cls(np.arange(count), np.ones(count))

    def take(self, anchor: Array, row: Array, cosine: Array) -> None:
        """Give rows to anchors; each row is named once."""
        self.anchor[row] = anchor
        self.cosine[row] = cosine


def exact_stars(rows: VectorRows) -> SemanticStars:
    """Find the clusters by looking at all pairs."""
    count = len(rows.matrix)
    stars = SemanticStars.alone(count)
    with one_thread():
        search = VectorSearch(rows)
    everything = np.arange(count)

    def free(start: int, size: int) -> Array:
        part = everything[start : start + size]
        array: Array = part[stars.anchor[part] == part]
        return array

    for start in range(0, count, _ROWS):
        block = free(start, _ROWS)
        with one_thread():
            link(stars, *search.pairs(block, block))
        anchors = free(start, _ROWS)
        later = [free(other, _COLUMNS) for other in range(start + _ROWS, count, _COLUMNS)]
        for left, right, cosine in in_threads(partial(search.pairs, anchors), later):
            order = np.lexsort((left, right))
            first = order[np.flatnonzero(np.diff(right[order], prepend=-1))]
            stars.take(left[first], right[first], cosine[first])
    return stars


def link(stars: SemanticStars, left: Array, right: Array, cosine: Array) -> None:
    """Make clusters from similar pairs; left comes before right in each."""
    order = np.lexsort((right, left))
    left, right, cosine = left[order], right[order], cosine[order]
    cuts = np.flatnonzero(np.diff(left, prepend=-1, append=-1))
    for start, end in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True):
        anchor = int(left[start])
        if stars.anchor[anchor] != anchor:
            continue
        others = right[start:end]
        free = stars.anchor[others] == others
        stars.take(np.full(int(free.sum()), anchor), others[free], cosine[start:end][free])


class VectorSearch:
    """The coarse search, and the exact one of what it leaves."""

    def __init__(self, rows: VectorRows) -> None:
        self.rows = rows
        axes = _axes(rows.matrix)
        limit = 2 - 2 * rows.threshold + _MARGIN
        width = _width(rows.matrix, axes, limit)
        count = len(rows.matrix)
        # left . right = product - (|left|^2 + |right|^2 - limit) / 2, so near means not negative
        self.left = np.empty((count, width + 2), np.float32)
        self.right = np.empty((count, width + 2), np.float32)
        for start in range(0, count, BLOCK):
            turned = rows.matrix[start : start + BLOCK].astype(np.float64) @ axes[:, :width]
            half = (turned * turned).sum(axis=1) / 2
            part = slice(start, start + BLOCK)
            self.left[part, :width] = self.right[part, :width] = turned
            self.left[part, width], self.left[part, width + 1] = limit / 2 - half, 1
            self.right[part, width], self.right[part, width + 1] = 1, -half

    def pairs(self, left: Array, right: Array) -> tuple[Array, Array, Array]:
        """Similar pairs with one of each, the first one before the other, and their cosines."""
        near = self.left[left] @ self.right[right].T >= 0
        if np.count_nonzero(near) > _DENSE * near.size:
            vectors, others = self.rows.matrix[left], self.rows.matrix[right]
            products = vectors.astype(np.float64) @ others.astype(np.float64).T
            near &= products >= self.rows.threshold - _MARGIN
        row, column = np.divmod(np.flatnonzero(near), max(len(right), 1))
        result, other = left[row], right[column]
        before = result < other
        return self.rows.near(result[before], other[before])

    def check(self, left: Array, right: Array) -> tuple[Array, Array, Array]:
        """Those of some pairs that are similar, and their cosines."""
        near = np.empty(len(left), bool)
        for start in range(0, len(left), _PAIRS):
            part = slice(start, start + _PAIRS)
            product = np.einsum("ij,ij->i", self.left[left[part]], self.right[right[part]])
            near[part] = product >= 0
        return self.rows.near(left[near], right[near])


def _axes(matrix: Array) -> Array:
    """The main axes of the data, the widest first."""
    dimensions = matrix.shape[1]
    total, product = np.zeros(dimensions), np.zeros((dimensions, dimensions))
    for start in range(0, len(matrix), BLOCK):
        part = matrix[start : start + BLOCK].astype(np.float64)
        total += part.sum(axis=0)
        product += part.T @ part
    mean = total / max(len(matrix), 1)
    axes: Array = np.linalg.eigh(product / max(len(matrix), 1) - np.outer(mean, mean))[1]
    return axes[:, ::-1]


def _width(matrix: Array, axes: Array, limit: float) -> int:
    """How many coordinates to look at first: those for which the search takes the least time."""
    dimensions: int = axes.shape[1]
    step = max(len(matrix) // _SAMPLE, 1)
    turned = matrix[::step][:_SAMPLE].astype(np.float64) @ axes
    best, least = dimensions, float(dimensions)
    for width in _WIDTHS:
        if width >= dimensions:
            break
        part = turned[:, :width]
        half = (part * part).sum(axis=1) / 2
        near = part @ part.T - half - half[:, None] + limit / 2 >= 0
        share = (near.sum() - len(part)) / max(near.size - len(part), 1)
        cost = width + _FULL * float(share)
        if cost < least:
            best, least = width, cost
    return best
