"""k-center and MMR against the plain loops, ties and duplicates included."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adp.curation.ops.coreset import greedy
from adp.curation.texts.vectors import unit

few = st.lists(
    st.lists(st.integers(-1, 2), min_size=3, max_size=3), min_size=1, max_size=30
)  # so few values that many rows are equal, equally far, or zeros
batches = st.sampled_from([1, 3, 512])


def _squared(matrix: Any, rows: list[int]) -> Any:
    """Squared distances of all rows to some; exact, like those of the op."""
    wide = matrix.astype(np.float64)
    length = (wide * wide).sum(axis=1)
    return length[:, None] + length[rows] - 2 * wide @ wide[rows].T


def plain_k_center(matrix: Any, size: int, start: list[int]) -> list[int]:
    """Again and again the row that is farthest from all that are selected."""
    chosen = list(start)
    while len(chosen) < min(len(start) + size, len(matrix)):
        near = _squared(matrix, chosen).min(axis=1)
        near[chosen] = -np.inf
        chosen.append(int(near.argmax()))
    return chosen[len(start) :]


def plain_mmr(matrix: Any, size: int, relevance: Any, weight: float) -> list[int]:
    """Again and again the row with the highest score."""
    wide = matrix.astype(np.float64)
    chosen: list[int] = []
    while len(chosen) < min(size, len(matrix)):
        alike = np.zeros(len(matrix))
        if chosen:
            alike = np.maximum(0, (wide @ wide[chosen].T).max(axis=1))
        score = weight * relevance + (1 - weight) * (1 - alike)
        score[chosen] = -np.inf
        chosen.append(int(score.argmax()))
    return chosen


@given(few, st.integers(1, 31), batches)
def test_k_center_is_plain_greedy(rows: list[list[int]], size: int, batch: int) -> None:
    matrix = unit(np.array(rows))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(greedy, "BATCH", batch)
        result = greedy.k_center(matrix, size)
    first = int(result.rows[0])
    assert list(result.rows[1:]) == plain_k_center(matrix, size - 1, [first])
    assert len(set(result.rows.tolist())) == min(size, len(rows))
    assert np.isnan(result.gains[0])
    assert list(result.gains[1:]) == sorted(result.gains[1:], reverse=True)


@given(few, st.integers(1, 31), st.data(), batches)
def test_k_center_goes_on_from_given_rows(
    rows: list[list[int]], size: int, data: st.DataObject, batch: int
) -> None:
    matrix = unit(np.array(rows))
    given_rows = data.draw(
        st.lists(st.integers(0, len(rows) - 1), min_size=1, unique=True, max_size=len(rows))
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(greedy, "BATCH", batch)
        result = greedy.k_center(matrix, size, np.array(given_rows))
    assert list(result.rows) == plain_k_center(matrix, size, given_rows)


@given(few, st.integers(1, 31), st.sampled_from([0.0, 0.25, 0.5, 1.0]), st.data(), batches)
def test_mmr_is_the_plain_loop(
    rows: list[list[int]], size: int, weight: float, data: st.DataObject, batch: int
) -> None:
    matrix = unit(np.array(rows))
    quarters = st.sampled_from([0.0, 0.25, 0.5, 1.0])
    count = len(rows)
    relevance = np.array(data.draw(st.lists(quarters, min_size=count, max_size=count)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(greedy, "BATCH", batch)
        mmr = greedy.mmr(matrix, size, relevance, weight)
    assert list(mmr.rows) == plain_mmr(matrix, size, relevance, weight)


def test_k_center_of_thousands_is_plain_greedy() -> None:
    random = np.random.default_rng(4)
    centers = random.standard_normal((60, 24))
    matrix = unit(centers[random.integers(0, 60, 2500)] + random.standard_normal((2500, 24)) / 2)
    matrix[random.integers(0, 2500, 300)] = matrix[random.integers(0, 2500, 300)]
    mmr = greedy.k_center(matrix, 90)
    assert list(mmr.rows[1:]) == plain_k_center(matrix, 89, [int(mmr.rows[0])])
    relevance = random.random(2500)
    mmr = greedy.mmr(matrix, 40, relevance, 0.5)
    assert list(mmr.rows) == plain_mmr(matrix, 40, relevance, 0.5)


@pytest.mark.parametrize("clusters", [2, 60])
def test_distances_that_float32_cannot_tell_apart(clusters: int) -> None:
    random = np.random.default_rng(clusters)
    centers = random.standard_normal((clusters, 16))
    matrix = unit(
        centers[random.integers(0, clusters, 300)] + 2e-3 * random.standard_normal((300, 16))
    )
    mmr = greedy.k_center(matrix, 150)
    assert list(mmr.rows[1:]) == plain_k_center(matrix, 149, [int(mmr.rows[0])])
    given_rows = random.permutation(300)[: max(2 * clusters, 40)]
    mmr = greedy.k_center(matrix, 60, given_rows)
    assert list(mmr.rows) == plain_k_center(matrix, 60, given_rows.tolist())
    mmr = greedy.mmr(matrix, 80, np.zeros(300), 0.5)
    assert list(mmr.rows) == plain_mmr(matrix, 80, np.zeros(300), 0.5)


@pytest.mark.parametrize("block", [1, 3, 4096])
def test_the_first_center_is_nearest_to_the_mean(
    block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(greedy, "BLOCK", block)
    matrix = unit(np.array([[1, 0], [0, 1], [1, 1], [1, 1.1], [3, -1.0]]))
    mean = matrix.sum(axis=0)
    result = greedy.k_center(matrix, 4).rows.tolist()
    assert result[0] == int((matrix @ mean).argmax())
    assert result[1:] == plain_k_center(matrix, 3, result[:1])


def test_nothing_of_nothing() -> None:
    empty = np.zeros((0, 3), np.float32)
    assert not len(greedy.k_center(empty, 3).rows)
    assert not len(greedy.mmr(empty, 3, np.zeros(0), 0.5).rows)
