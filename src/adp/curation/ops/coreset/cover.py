"""How well a selection covers all trajectories."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from adp.curation.texts.vectors import in_threads, squares

Array = np.ndarray[Any, Any]

_ROWS = 1024
_CENTERS = 1024


@dataclass
class Coverage:
    """How near every row is to a selection.

    Attributes:
        nearest: for each row the place, in the selection, of the selected row nearest to it.
        distance: its distance to that.
        facility: sum over the rows of the highest cosine with a selected row, at least 0: the
            facility-location objective.
    """

    nearest: Array
    distance: Array
    facility: float

    def figures(self) -> dict[str, float]:
        """Radius, mean distance and objective, rounded for people."""
        return {
            "radius": round(float(self.distance.max(initial=0)), 6),
            "mean_distance": round(float(self.distance.mean()) if len(self.distance) else 0.0, 6),
            "facility_location": round(self.facility, 4),
        }


def coverage(matrix: Array, selected: Array, rows: Array | None = None) -> Coverage:
    """Measure a selection, exactly.

    Args:
        matrix: n x d, as `adp.curation.texts.vectors.unit` makes them.
        selected: numbers of the selected rows, at least one.
        rows: numbers of the rows to look at; None for all.

    Returns:
        The coverage of those rows, in their order.
    """
    length = squares(matrix)
    places = np.arange(len(matrix)) if rows is None else rows

    def part(start: int) -> tuple[Array, Array, Array]:
        return _nearest(matrix, length, selected, places[start : start + _ROWS])

    parts = list(in_threads(part, range(0, len(places), _ROWS)))
    if not parts:
        return Coverage(np.zeros(0, np.int64), np.zeros(0), 0.0)
    nearest, gaps, cosines = (np.concatenate(part) for part in zip(*parts, strict=True))
    return Coverage(nearest, np.sqrt(np.maximum(gaps, 0)), float(cosines.sum()))


def _nearest(
    matrix: Array, length: Array, selected: Array, places: Array
) -> tuple[Array, Array, Array]:
    """Of some rows the nearest selected row, its squared distance, and the highest cosine."""
    nearest = np.zeros(len(places), np.int64)
    gaps = np.full(len(places), np.inf)
    cosines = np.zeros(len(places))
    vectors = matrix[places].astype(np.float64)
    for first in range(0, len(selected), _CENTERS):
        part = selected[first : first + _CENTERS]
        gap = vectors @ matrix[part].astype(np.float64).T
        np.maximum(cosines, gap.max(axis=1), out=cosines)
        gap *= -2
        gap += length[part]
        best = gap.argmin(axis=1)
        result = gap[np.arange(len(best)), best] + length[places]
        closer = result < gaps
        gaps[closer] = result[closer]
        nearest[closer] = first + best[closer]
    return nearest, gaps, cosines
