"""Statistics of groups, against exact fractions and full enumeration."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adp.curation.ops.pareto.statistics import group_codes, group_statistic, pass_at

whole = st.integers(-1000, 1000).map(float) | st.integers(-9, 9).map(lambda n: n / 4)
numbers = st.one_of(st.just(math.nan), whole, st.floats(-100, 100))
rows = st.lists(st.tuples(st.integers(0, 4), numbers), max_size=30)


def by_group(result):
    groups = [[] for _ in range(5)]
    for group, value in result:
        if not math.isnan(value):
            groups[group].append(Fraction(value))
    return groups


def arrays(result):
    codes = np.array([group for group, _ in result], dtype=np.int64)
    return np.array([value for _, value in result], dtype=np.float64), codes


@given(rows)
def test_statistics_are_right(result):
    values, codes = arrays(result)
    table = {of: group_statistic(values, codes, 5, of) for of in ("variance", "mean", "min", "max")}
    for place, group in enumerate(by_group(result)):
        if not group:
            assert [table[of][place] for of in table] == [0, 0, 0, 0]
            continue
        mean = sum(group) / len(group)
        variance = sum((value - mean) ** 2 for value in group) / len(group)
        assert table["min"][place] == min(group)
        assert table["max"][place] == max(group)
        assert table["mean"][place] == pytest.approx(float(mean), rel=1e-12, abs=1e-12)
        assert table["variance"][place] == pytest.approx(float(variance), rel=1e-9, abs=1e-12)
        if all((value - min(group)).denominator <= 4 for value in group):
            assert table["variance"][place] == float(variance)


@given(rows, st.randoms())
def test_the_order_of_rows_does_not_matter(value, chance):
    mixed = list(value)
    chance.shuffle(mixed)
    for of in ("variance", "mean"):
        ours, other = (group_statistic(*arrays(item), 5, of) for item in (value, mixed))
        assert ours.tolist() == other.tolist()


def test_equal_variances_tie():
    groups = [[0, 0, 1], [5, 5, 6], [7, 6, 7], [0.1, 0.1, 0.1], [1e6, 1e6, 1e6 + 1]]
    values = np.array([value for group in groups for value in group], dtype=np.float64)
    codes = np.repeat(np.arange(5), 3)
    result = group_statistic(values, codes, 5, "variance").tolist()
    assert result == [2 / 9, 2 / 9, 2 / 9, 0.0, 2 / 9]


@given(st.lists(st.integers(-3, 3), max_size=20))
def test_groups_are_numbered_by_their_first_row(keys):
    codes, first = group_codes(np.array(keys, dtype=np.int64))
    seen = list(dict.fromkeys(keys))
    assert codes.tolist() == [seen.index(key) for key in keys]
    assert first.tolist() == [keys.index(key) for key in seen]


@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_pass_at_k_is_the_share_of_draws_with_a_success(k):
    pairs = [(n, c) for n in range(7) for c in range(n + 1)]
    result = pass_at(k, *(np.array(column) for column in zip(*pairs, strict=True)))
    for (n, c), value in zip(pairs, result.tolist(), strict=True):
        draws = list(itertools.combinations([True] * c + [False] * (n - c), k))
        if n < k:
            assert math.isnan(value)
        else:
            assert value == pytest.approx(sum(map(any, draws)) / len(draws))
