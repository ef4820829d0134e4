"""Lengths and the cost of windows, against counting row by row."""

from __future__ import annotations

import math

import numpy as np
import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st

from adp.rendering.lengths import WINDOWS, lengths_of
from adp.rendering.render import TokenRow
from adp.rendering.table import rows_table

# A row is a list of (step or -1, number of tokens); the same step does not come twice.
ROWS = st.lists(
    st.lists(
        st.tuples(st.sampled_from([-1, 1, 2, 3, 4]), st.integers(1, 900)),
        min_size=1,
        max_size=6,
        unique_by=lambda part: part[0] if part[0] >= 0 else object(),
    ),
    min_size=1,
    max_size=12,
)


def _row(parts):
    steps = np.concatenate([np.full(count, step, np.int32) for step, count in parts])
    ids = np.arange(len(steps), dtype=np.int32)
    weights = (steps >= 0).astype(np.float32)
    labels = np.where(weights > 0, ids, -100).astype(np.int32)
    return TokenRow("t", 0, 0, 0, ids, labels, weights, steps, False, "", ())


@given(rows=ROWS, cut=st.integers(0, 12))
def test_windows_cost_what_counting_says(rows, cut, tmp_path_factory):
    folder = tmp_path_factory.mktemp("rows")
    files = []
    for index, some in enumerate((rows[:cut], rows[cut:])):
        files.append(folder / f"part-{index}.parquet")
        pq.write_table(rows_table([_row(parts) for parts in some]), files[-1], row_group_size=3)
    lengths = lengths_of(files)
    sizes = [sum(count for _, count in parts) for parts in rows]
    trained = sum(count for parts in rows for step, count in parts if step >= 0)
    assert lengths.quantiles[1.0] == max(sizes)
    assert lengths.quantiles[0.5] == sorted(sizes)[(len(sizes) - 1) // 2]
    for cost in lengths.windows:
        late = dropped = alone = 0
        for parts, size in zip(rows, sizes, strict=True):
            end = head = 0
            found_first = False
            for step, count in parts:
                end += count
                if step >= 0:
                    head, found_first = (head if found_first else end - count), True
                    late += count if end > cost.tokens else 0
                    dropped += count if size > cost.tokens else 0
                    alone += count if size > cost.tokens < count + head else 0
        assert cost.fits == sum(size <= cost.tokens for size in sizes)
        for share, count in ((cost.drop, dropped), (cost.keep_start, late), (cost.sliding, alone)):
            assert math.isclose(share, count / max(trained, 1))
    assert lengths.windows[-1].fits == len(rows)
    assert [cost.tokens for cost in lengths.windows] == list(WINDOWS[: len(lengths.windows)])


def test_no_rows_are_no_error(tmp_path):
    lengths = lengths_of([])
    assert lengths.quantiles[1.0] == 0
    assert len(lengths.windows) == 1
