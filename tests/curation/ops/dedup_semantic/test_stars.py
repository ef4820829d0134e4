"""Stars of vectors against a walk over all pairs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adp.curation.ops.dedup_semantic import planes, stars
from adp.curation.ops.dedup_semantic.planes import banded_stars, shape
from adp.curation.ops.dedup_semantic.stars import VectorRows, exact_stars
from adp.curation.texts.vectors import unit

vectors = st.lists(
    st.lists(st.integers(-2, 2), min_size=4, max_size=4).filter(any), min_size=1, max_size=30
)
blocks = st.sampled_from([(1, 1), (2, 5), (1024, 8192)])


def plain_stars(rows: VectorRows) -> tuple[list[int], list[float]]:
    """Each free row in turn takes all free rows near it."""
    wide = rows.matrix.astype(np.float64)
    length = np.sqrt((wide * wide).sum(axis=1))
    cosines = np.minimum(wide @ wide.T / np.outer(length, length), 1)
    anchor = list(range(len(wide)))
    cosine = [1.0] * len(wide)
    for number in range(len(wide)):
        for other in range(number + 1, len(wide)) if anchor[number] == number else ():
            same = rows.task[number] >= 0 and rows.task[number] == rows.task[other]
            if anchor[other] == other and cosines[number, other] >= rows.threshold and not same:
                anchor[other] = number
                cosine[other] = float(cosines[number, other])
    return anchor, cosine


def planted(count: int, dimensions: int = 64, seed: int = 0) -> Any:
    """Vectors of which a third are others with some noise, from nearly none to much."""
    random = np.random.default_rng(seed)
    matrix = random.standard_normal((count, dimensions))
    copies = random.choice(count, (2, count // 6), replace=False)
    noise = random.standard_normal((count // 6, dimensions)) * random.random((count // 6, 1)) * 0.6
    matrix[copies[0]] = matrix[copies[1]] + noise
    return unit(matrix)


@given(vectors, st.sampled_from([0.5, 0.8, 0.95, 1.0]), st.data(), blocks)
def test_exact_stars_are_those_of_the_walk(
    given_rows: list[list[int]], threshold: float, data: st.DataObject, block: tuple[int, int]
) -> None:
    count = len(given_rows)
    tasks = data.draw(st.lists(st.integers(-1, 2), min_size=count, max_size=count))
    rows = VectorRows(unit(np.array(given_rows)), np.array(tasks), threshold)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stars, "_ROWS", block[0])
        patch.setattr(stars, "_COLUMNS", block[1])
        result = exact_stars(rows)
    anchor, cosine = plain_stars(rows)
    assert result.anchor.tolist() == anchor
    assert result.cosine.tolist() == cosine


@pytest.mark.parametrize("threshold", [0.6, 0.9, 0.97])
@pytest.mark.parametrize("dense", [0.0, 0.02])
def test_no_pair_among_many_is_missed(
    threshold: float, dense: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stars, "_ROWS", 200)
    monkeypatch.setattr(stars, "_COLUMNS", 300)
    monkeypatch.setattr(stars, "_DENSE", dense)
    rows = VectorRows(planted(900), np.full(900, -1), threshold)
    result = exact_stars(rows)
    anchor, cosine = plain_stars(rows)
    assert result.anchor.tolist() == anchor
    assert result.cosine.tolist() == cosine
    assert len(set(anchor)) < 880


def test_equal_vectors_have_a_cosine_of_one() -> None:
    matrix = unit(np.random.default_rng(1).standard_normal((1, 384)))
    rows = VectorRows(np.repeat(matrix, 5, axis=0), np.full(5, -1), 1.0)
    assert exact_stars(rows).anchor.tolist() == [0] * 5


def test_planes_find_nearly_all_and_nothing_else() -> None:
    rows = VectorRows(planted(1500, seed=2), np.full(1500, -1), 0.9)
    anchor, cosine = plain_stars(rows)
    wanted = {place for place, entry in enumerate(anchor) if entry != place}
    result = banded_stars(rows)
    gone = {place for place, anchor in enumerate(result.anchor.tolist()) if anchor != place}
    assert len(gone & wanted) >= 0.98 * len(wanted)
    assert gone <= wanted
    assert len(wanted) > 100
    same = [place for place, entry in enumerate(result.anchor.tolist()) if entry == anchor[place]]
    assert [result.cosine[place] for place in same] == [cosine[place] for place in same]


@given(vectors, st.integers(1, 6))
def test_buckets_hold_all_pairs(given_rows: list[list[int]], most: int) -> None:
    sides = unit(np.array(given_rows)).argmax(axis=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(planes, "_MOST", most)
        left, right = planes._same_bucket(sides)
    wanted = {
        (number, other)
        for other in range(len(sides))
        for number in range(other)
        if sides[number] == sides[other] and (sides[:number] == sides[number]).sum() < most
    }
    assert set(zip(left.tolist(), right.tolist(), strict=True)) == wanted
    assert len(left) == len(wanted)


@pytest.mark.parametrize("count", [1, 1000, 10**6])
def test_bands_suffice_at_the_threshold(count: int) -> None:
    for threshold in (0.9, 0.95, 0.99, 1.0):
        width, bands = shape(count, threshold)
        same = (1 - np.arccos(threshold) / np.pi) ** width
        assert 1 - (1 - same) ** bands >= 0.995


def test_nothing_of_nothing() -> None:
    rows = VectorRows(np.zeros((0, 3), np.float32), np.zeros(0, np.int64), 0.9)
    assert not len(exact_stars(rows).anchor)
    assert not len(banded_stars(rows).anchor)
