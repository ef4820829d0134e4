"""Runs of neighbours in columns are those of the walk over items."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from adp.stores.cutting import count_one, cut_places, cut_runs

ITEMS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 1), st.integers(0, 1)), max_size=40)


@given(ITEMS, st.integers(1, 20), st.integers(1, 5))
def test_columns_are_cut_as_items_are(
    items: list[tuple[int, int, int]], most: int, count: int
) -> None:
    limits = [(lambda item: item[0], most), (count_one, count)]
    walked = list(cut_runs(items, limits, kind=lambda item: item[1:]))
    columns = np.array(items, np.int64).reshape(-1, 3)
    places = cut_places(
        [(columns[:, 0], most), (np.ones(len(items), np.int64), count)],
        [columns[:, 1], columns[:, 2]],
    )
    assert [items[start:end] for start, end in places] == walked
