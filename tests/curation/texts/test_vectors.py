"""Vectors: columns of the pool, the grid, and TF-IDF of words against a plain count of them."""

from __future__ import annotations

import math
import re
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adp.curation import partitions
from adp.curation.texts import hashed
from adp.curation.texts.vectors import GRID, VectorOptions, column_matrix, squares, unit, vectors_of
from adp_schema.errors import RecipeError
from tests.curation.pools import open_pool
from tests.curation.vector_stores import chat_store, one_liners, with_column

finite = st.floats(allow_nan=False, allow_infinity=False)
matrices = st.integers(1, 6).flatmap(
    lambda width: st.lists(st.lists(finite, min_size=width, max_size=width), min_size=1, max_size=5)
)


@given(matrices)
def test_rows_get_length_one_on_the_grid(rows: list[list[float]]) -> None:
    matrix = np.array(rows)
    result = unit(matrix)
    assert np.array_equal(result * GRID, np.rint(result * GRID))
    length = squares(result)
    assert np.all((np.abs(length - 1) < 1e-6) | ((length == 0) & ~matrix.any(axis=1)))


def test_products_do_not_depend_on_the_order_of_addition() -> None:
    random = np.random.default_rng(0)
    matrix = unit(random.standard_normal((200, 384))).astype(np.float64)
    order = random.permutation(384)
    assert np.array_equal(matrix @ matrix.T, matrix[:, order] @ matrix[:, order].T)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([[1.0, 2.0], None], "no vector for 1 trajectories, the first is d/t1"),
        ([[1.0, 2.0], []], "no vector for 1 trajectories, the first is d/t1"),
        ([[1.0, 2.0], [1.0]], "several lengths: d/t0 has 2 numbers, d/t1 has 1"),
        ([[1.0, 2.0], [1.0, None]], "the vector of d/t1 .* null, NaN or infinite"),
        ([[1.0, 2.0], [1.0, math.nan]], "the vector of d/t1 .* null, NaN or infinite"),
        ([[1.0, 2.0], [1.0, math.inf]], "the vector of d/t1 .* null, NaN or infinite"),
        (["a", "b"], "holds String, not vectors"),
        ([["a"], ["b"]], "not vectors"),
        ([1.0, 2.0], "holds Float64, not vectors"),
    ],
)
def test_a_column_without_vectors_is_refused(values: list[Any], message: str) -> None:
    with pytest.raises(RecipeError, match=message):
        column_matrix(pl.Series("e", values), ["d/t0", "d/t1"])


def test_columns_of_lists_and_arrays_of_any_numbers() -> None:
    wanted = np.array([[1, 2], [3, 4]])
    for kind in (pl.List(pl.Int8), pl.List(pl.Float32), pl.Array(pl.Float64, 2)):
        column = pl.Series("e", [[1, 2], [3, 4]], dtype=kind)
        assert np.array_equal(column_matrix(column, ["a", "b"]), wanted)


def test_an_embedding_is_taken_as_it_is(tmp_path: Path) -> None:
    store = chat_store(tmp_path / "s", one_liners(["a", "b", "c"]))
    with open_pool(tmp_path / "x", store) as pool:
        with_column(pool, "e", [[3.0, 4.0], [0.0, 0.0], [-2.0, 0.0]])
        vectors = vectors_of(pool, VectorOptions(embedding="e"))
    assert vectors.matrix == pytest.approx(np.array([[0.6, 0.8], [0, 0], [-1, 0]]), abs=1e-7)
    assert (vectors.zeros, vectors.origin) == (1, "the column e")


# ---- words --------------------------------------------------------------------------------------


def _hash(data: bytes) -> int:
    base, value = int(hashed._BASE), 0
    for place, byte in enumerate(data):
        value += (byte + 1) * base**place
    return _spread(value)


def _spread(value: int) -> int:
    mask = (1 << 64) - 1
    value &= mask
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 & mask
    value = (value ^ value >> 27) * 0x94D049BB133111EB & mask
    return value ^ value >> 31


def _plain_count(texts: list[str | None], owners: list[int]) -> dict[int, int]:
    """The same keys, one word at a time."""
    counts: Counter[int] = Counter()
    for text, owner in zip(texts, owners, strict=True):
        data = (text or "").encode()
        for start in range(0, len(data), hashed._PIECE):
            piece = data[start : start + hashed._PIECE]
            words = [_hash(word) for word in re.findall(rb"[0-9A-Za-z_\x80-\xff]+", piece)]
            pairs = [_spread(a * int(hashed._STEP) + b) for a, b in pairwise(words)]
            counts.update(owner << hashed.BITS | key >> 64 - hashed.BITS for key in words + pairs)
    return dict(counts)


texts_of_owners = st.lists(
    st.tuples(st.none() | st.text("ab_1 \nüß.", max_size=40), st.integers(0, 3)), max_size=8
)


@given(texts_of_owners, st.sampled_from([(1 << 18, 1 << 18, 1 << 23), (7, 16, 5)]))
def test_words_are_counted_as_one_by_one(
    texts: list[tuple[str | None, int]], sizes: tuple[int, int, int]
) -> None:
    texts = sorted(texts, key=lambda pair: pair[1])
    owners = [owner for _, owner in texts]
    column = pl.Series([text for text, _ in texts], dtype=pl.String)
    with pytest.MonkeyPatch.context() as patch:
        for name, size in zip(("_PIECE", "_CHUNK", "_KEYS"), sizes, strict=True):
            patch.setattr(hashed, name, size)
        keys, counts = hashed.counted(column, np.array(owners, np.int64))
        wanted = _plain_count(column.to_list(), owners)
    assert list(keys) == sorted(wanted)
    assert dict(zip(keys.tolist(), counts.tolist(), strict=True)) == wanted


def _texts(count: int, seed: int) -> list[str]:
    """Texts in groups that share most of their words; all share some words in another order."""
    random = np.random.default_rng(seed)
    words = [f"w{number}" for number in range(2000)]
    results: list[str] = []
    while len(results) < count:
        base = random.choice(words, 80)
        for edits in (0, 1, 8, 30):
            text = base.copy()
            text[random.choice(80, edits, replace=False)] = random.choice(words, edits)
            common = random.permutation([f"the{number}" for number in range(40)])
            results.append(" ".join([*text, *common]))
    return results[:count]


def _exact_cosines(texts: list[str]) -> Any:
    """Cosines of TF-IDF of words and pairs, with dictionaries."""
    counts = []
    for text in texts:
        words = text.split()
        counts.append(Counter([*words, *pairwise(words)]))
    having = Counter(term for count in counts for term in count)
    places = {term: place for place, term in enumerate(having)}
    table = np.zeros((len(texts), len(places)))
    for row, count in enumerate(counts):
        for term, times in count.items():
            rarity = math.log((1 + len(texts)) / (1 + having[term])) + 1
            table[row, places[term]] = (1 + math.log(times)) * rarity
    table /= np.linalg.norm(table, axis=1, keepdims=True)
    return table @ table.T


def test_cosines_are_those_of_tf_idf(tmp_path: Path) -> None:
    texts = _texts(60, 1)
    store = chat_store(tmp_path / "s", one_liners(texts))
    with open_pool(tmp_path / "x", store) as pool:
        result = vectors_of(pool, VectorOptions()).matrix.astype(np.float64)
    exact = _exact_cosines(texts)
    error = np.abs(result @ result.T - exact)
    assert result.shape == (60, 384)
    assert error.max() < 0.25
    assert error.mean() < 0.06
    assert error[exact > 0.9].max() < 0.03


def test_vectors_do_not_depend_on_how_the_store_is_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dialogs = one_liners([*_texts(25, 2), "", "..."])
    results = []
    for number, size in enumerate((32 << 20, 500, 2000)):
        monkeypatch.setattr(partitions, "PARTITION_BYTES", size)
        monkeypatch.setattr(hashed, "_ROWS", 3 + number)
        store = chat_store(tmp_path / f"s{number}", dialogs, shards=number + 1)
        with open_pool(tmp_path / f"x{number}", store) as pool:
            assert (len(pool.partitions) > 1) == (number > 0)
            vectors = vectors_of(pool, VectorOptions(dimensions=50))
        assert vectors.zeros == 2
        results.append(vectors.matrix)
    assert np.array_equal(results[0], results[1])
    assert np.array_equal(results[0], results[2])


def test_only_the_chosen_texts_count(tmp_path: Path) -> None:
    turns = [("system", "be good"), ("user", "task one"), ("assistant", "done"), ("tool", "seen")]
    other = [("system", "be bad"), ("user", "task one"), ("assistant", "done"), ("tool", "heard")]
    store = chat_store(tmp_path / "s", [{"turns": turns}, {"turns": other}])
    same = []
    for number, views in enumerate((("task", "agent", "actions"), ("all",), ("observations",))):
        with open_pool(tmp_path / f"x{number}", store) as pool:
            matrix = vectors_of(pool, VectorOptions(views=views)).matrix
        same.append(np.array_equal(matrix[0], matrix[1]))
    assert same == [True, False, False]


def test_an_empty_pool_has_no_vectors(tmp_path: Path) -> None:
    store = chat_store(tmp_path / "s", one_liners(["a"]))
    with open_pool(tmp_path / "x", store) as pool:
        pool.members = pool.members.clear()
        assert vectors_of(pool, VectorOptions(dimensions=9)).matrix.shape == (0, 9)


@pytest.mark.parametrize("dimensions", [8, 33, 384])
def test_a_bucket_has_one_sign_in_each_block(dimensions: int) -> None:
    table = hashed.projection(dimensions)
    edges = np.linspace(0, dimensions, 5).astype(int)
    blocks = np.searchsorted(edges, table.places[:, :1000], side="right") - 1
    assert np.array_equal(blocks, np.tile(np.arange(4)[:, None], (1, 1000)))
    assert set(np.unique(table.signs)) == {-1.0, 1.0}
