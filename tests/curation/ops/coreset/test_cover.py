"""Coverage against all distances, and shares of a whole against their definition."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adp.curation.allocate import allocate
from adp.curation.ops.coreset import cover
from adp.curation.ops.coreset.cover import coverage
from adp.curation.texts.vectors import unit

few = st.lists(st.lists(st.integers(-1, 2), min_size=3, max_size=3), min_size=1, max_size=25)


@given(few, st.data(), st.sampled_from([2, 1024]))
def test_coverage_is_that_of_all_distances(
    rows: list[list[int]], data: st.DataObject, block: int
) -> None:
    matrix = unit(np.array(rows))
    places = st.lists(st.integers(0, len(rows) - 1), min_size=1, unique=True)
    selected, looked_at = np.array(data.draw(places)), np.array(data.draw(places))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cover, "_ROWS", block)
        patch.setattr(cover, "_CENTERS", block)
        result = coverage(matrix, selected, looked_at)
    wide = matrix.astype(np.float64)
    distance = np.linalg.norm(wide[looked_at, None] - wide[None, selected], axis=2)
    assert result.distance == pytest.approx(distance.min(axis=1), abs=1e-7)
    at_nearest = distance[np.arange(len(looked_at)), result.nearest]
    assert at_nearest == pytest.approx(distance.min(axis=1), abs=1e-7)
    cosine = wide[looked_at] @ wide[selected].T
    assert result.facility == pytest.approx(np.maximum(cosine.max(axis=1), 0).sum())


@given(st.lists(st.integers(0, 40), min_size=1, max_size=8), st.integers(0, 200), st.booleans())
def test_shares_are_by_largest_remainder(sizes: list[int], total: int, equal: bool) -> None:
    taken = allocate(total, [Fraction(1 if equal else size) for size in sizes], sizes)
    assert sum(taken) == min(total, sum(sizes))
    assert all(0 <= some <= size for some, size in zip(taken, sizes, strict=True))
    if equal:
        short = [some for some, size in zip(taken, sizes, strict=True) if some < size]
        assert max(short, default=0) - min(short, default=0) <= 1
        assert all(some <= min(short) + 1 for some in taken) if short else True
    elif total < sum(sizes):
        exact = [Fraction(total * size, sum(sizes)) for size in sizes]
        rests = [item - int(item) for item in exact]
        up = [some > int(result) for some, result in zip(taken, exact, strict=True)]
        assert all(some - int(result) in (0, 1) for some, result in zip(taken, exact, strict=True))
        lowest = min((rest for rest, more in zip(rests, up, strict=True) if more), default=1)
        assert all(rest <= lowest for rest, more in zip(rests, up, strict=True) if not more)
