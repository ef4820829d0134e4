"""Facility location against greedy that computes every gain anew."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adp.curation.ops.coreset import facility
from adp.curation.ops.coreset.cover import coverage
from adp.curation.ops.coreset.facility import facility_location, neighbours
from adp.curation.texts.vectors import unit

few = st.lists(st.lists(st.integers(-1, 2), min_size=3, max_size=3), min_size=1, max_size=25)


def table(matrix: Any) -> Any:
    """Cosines as the search rounds them: whole numbers."""
    numbers = np.rint(matrix * np.float32(4000)).astype(np.int64)
    scale = min(((1 << 24) - 1) // len(matrix), 16_000_000)
    products = (numbers @ numbers.T).astype(np.float32) * np.float32(scale / 16_000_000)
    return np.maximum(np.rint(products), 0).astype(np.int64)


def plain_greedy(similar: Any, size: int) -> list[int]:
    """Every gain of every row, each time."""
    chosen: list[int] = []
    best = np.zeros(len(similar), np.int64)
    while len(chosen) < min(size, len(similar)):
        gains = np.maximum(similar - best, 0).sum(axis=1)
        gains[chosen] = -1
        chosen.append(int(gains.argmax()))
        best = np.maximum(best, similar[chosen[-1]])
    return chosen


def _clusters(count: int, seed: int = 0) -> Any:
    random = np.random.default_rng(seed)
    centers = random.standard_normal((count // 12 + 1, 32))
    rows = centers[random.integers(0, len(centers), count)]
    return unit(rows + 0.8 * random.standard_normal((count, 32)))


@given(few, st.integers(1, 26))
def test_dense_is_plain_greedy(rows: list[list[int]], size: int) -> None:
    matrix = unit(np.array(rows))
    result = facility_location(matrix, size, exchange=False)
    assert list(result.rows) == plain_greedy(table(matrix), size)
    assert result.gains.sum() == pytest.approx(
        coverage(matrix, result.rows).facility, abs=2e-3 * len(rows)
    )


@given(few, st.integers(1, 26))
def test_an_exchange_never_costs(rows: list[list[int]], size: int) -> None:
    matrix = unit(np.array(rows))
    similar = table(matrix)
    plain = facility_location(matrix, size, exchange=False).rows
    result = facility_location(matrix, size)
    assert len(set(result.rows.tolist())) == min(size, len(rows))
    reached, before = similar[result.rows].max(axis=0).sum(), similar[plain].max(axis=0).sum()
    assert reached >= before
    scale = min(((1 << 24) - 1) // len(matrix), 16_000_000)
    assert result.gains.sum() * scale == pytest.approx(reached, rel=1e-6)


def test_the_exchange_is_one_by_one() -> None:
    matrix = _clusters(400)
    similar = table(matrix)
    chosen = plain_greedy(similar, 25)
    for place in range(25):
        rest = chosen[:place] + chosen[place + 1 :]
        best = similar[rest].max(axis=0)
        gains = np.maximum(similar - best, 0).sum(axis=1)
        ours = gains[chosen[place]]
        gains[rest] = -1
        if gains.max() > ours:
            chosen[place] = int(gains.argmax())
    result = facility_location(matrix, 25)
    assert list(result.rows) == chosen
    assert similar[chosen].max(axis=0).sum() > similar[plain_greedy(similar, 25)].max(axis=0).sum()


@given(few, st.integers(1, 8))
def test_neighbours_are_the_most_similar(rows: list[list[int]], most: int) -> None:
    matrix = unit(np.array(rows))
    numbers = np.rint(matrix * np.float32(4000)).astype(np.int64)
    products = numbers @ numbers.T
    wanted = set()
    for row, line in enumerate(products.tolist()):
        order = sorted(range(len(line)), key=lambda column: (-line[column], column))
        wanted |= {(row, column) for column in order[:most] if line[column] > 0}
    near = neighbours(matrix, most)
    results = [
        (int(owner), column)
        for column in range(len(rows))
        for owner in near.owners[near.starts[column] : near.starts[column + 1]]
    ]
    assert len(results) == len(set(results))
    assert set(results) == wanted


def test_spans_find_the_same_neighbours(monkeypatch: pytest.MonkeyPatch) -> None:
    matrix = _clusters(700)
    near = neighbours(matrix, 9)
    monkeypatch.setattr(facility, "_SPAN", 1 << 20)
    plain = neighbours(matrix, 9)
    assert np.array_equal(near.owners, plain.owners)
    assert np.array_equal(near.values, plain.values)


@given(few, st.integers(1, 26))
def test_sparse_with_all_neighbours_is_plain_greedy(rows: list[list[int]], size: int) -> None:
    matrix = unit(np.array(rows))
    numbers = np.rint(matrix * np.float32(4000)).astype(np.int64)
    result = facility_location(matrix, size, dense=0)
    assert list(result.rows) == plain_greedy(np.maximum(numbers @ numbers.T, 0), size)


def test_sparse_is_nearly_as_good() -> None:
    matrix = _clusters(1500, 2)
    dense = facility_location(matrix, 60, exchange=False).rows
    sparse = facility_location(matrix, 60, dense=100).rows
    assert coverage(matrix, sparse).facility > 0.98 * coverage(matrix, dense).facility


def test_nothing_of_nothing() -> None:
    assert not len(facility_location(np.zeros((0, 3), np.float32), 4).rows)
