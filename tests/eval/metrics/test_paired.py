"""Paired differences, against scipy."""

from __future__ import annotations

import itertools
import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adp.eval.metrics import Intervals, paired_difference
from adp.eval.metrics.paired import permutation_test, sign_test
from tests.eval.metrics.rows import scored

T = {2: 12.7062047, 3: 4.3026527, 4: 3.1824463, 5: 2.7764451, 6: 2.5705818, 7: 2.4469118,
     8: 2.3646243}  # fmt: skip
"""Two-sided 5 % points of Student's t, by the number of tasks."""
PAIRS = st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3)), min_size=2, max_size=8)


def rows_of(values):
    return [scored(float(value), task=str(number)) for number, value in enumerate(values)]


@given(PAIRS)
def test_the_difference_of_means_with_the_error_of_pairs(pairs):
    first, second = zip(*pairs, strict=True)
    # Amounts: numbers that all lie between 0 and 1 are shares, whose differences end at 1.
    result = paired_difference(rows_of(first), rows_of(second), "success", amounts=True)
    differences = [after - before for before, after in pairs]
    assert result.figure.value == pytest.approx(statistics.fmean(differences))
    assert result.second - result.first == pytest.approx(result.figure.value)
    if len(set(differences)) == 1:
        assert result.figure.low is result.figure.method is None
        assert result.figure.reason == "no interval: the tasks do not differ"
        return
    half = T[len(pairs)] * statistics.stdev(differences) / math.sqrt(len(pairs))
    assert result.figure.high - result.figure.value == pytest.approx(half)
    assert result.figure.value - result.figure.low == pytest.approx(half)
    assert result.better + result.worse + result.equal == len(pairs)
    turned = paired_difference(rows_of(second), rows_of(first), "success")
    assert turned.figure.value == pytest.approx(-result.figure.value)
    assert turned.p_permutation == pytest.approx(result.p_permutation)


@given(st.lists(st.tuples(st.sampled_from([0, 1, 0.5]), st.sampled_from([0, 1])), min_size=2))
def test_differences_of_shares_stay_between_minus_one_and_one(pairs):
    first, second = (rows_of(values) for values in zip(*pairs, strict=True))
    figure = paired_difference(first, second, "success").figure
    wide = paired_difference(first, second, "success", amounts=True).figure
    assert (figure.amount, wide.amount) == (False, True)
    if figure.low is None:
        assert wide.low is None
        return
    assert -1 <= figure.low <= figure.value <= figure.high <= 1
    assert (figure.low, figure.high) == (max(-1, wide.low), min(1, wide.high))


def test_differences_of_amounts_may_go_beyond_one():
    first, second = rows_of([0, 0, 0]), rows_of([1, 1, 0])
    assert paired_difference(first, second, "success", amounts=True).figure.high > 1
    assert paired_difference(first, second, "success").figure.high == 1
    assert paired_difference(first, rows_of([2, 2, 0]), "success").figure.high > 1


@given(PAIRS)
def test_the_permutation_test_counts_all_flips(pairs):
    differences = [after - before for before, after in pairs]
    some = [difference for difference in differences if difference]
    flips = list(itertools.product((1, -1), repeat=len(some)))
    as_far = [
        abs(sum(sign * result for sign, result in zip(flip, some, strict=True))) >= abs(sum(some))
        for flip in flips
    ]
    assert permutation_test(differences) == pytest.approx(sum(as_far) / len(flips))


def test_many_differences_are_drawn_with_a_seed():
    differences = [1.0] * 25 + [-1.0] * 15
    result = permutation_test(differences, seed=3)
    assert result == permutation_test(differences, seed=3)
    assert result == pytest.approx(sign_test(25, 15), abs=0.02)
    # Draws never say that something is impossible.
    assert permutation_test([1.0] * 40) == 1 / 10_001


@given(st.integers(0, 40), st.integers(0, 40))
def test_the_sign_test_is_scipys(better, worse):
    scipy = pytest.importorskip("scipy.stats")
    known = scipy.binomtest(better, better + worse).pvalue if better + worse else 1.0
    assert sign_test(better, worse) == pytest.approx(known)


def test_only_tasks_of_both_count_and_attempts_are_averaged():
    first = [scored(0.0, task="a"), scored(1.0, task="b"), scored(1.0, task="old")]
    second = [
        scored(1.0, task="a", attempt=0),
        scored(0.0, task="a", attempt=1),
        scored(1.0, task="b"),
        scored(None, task="old"),
        scored(1.0, task="new"),
    ]
    result = paired_difference(first, second, "success")
    assert (result.figure.value, result.figure.tasks, result.figure.unscored) == (0.25, 2, 1)
    assert (result.only_first, result.only_second) == (1, 1)
    assert (result.better, result.worse, result.equal) == (1, 0, 1)


def test_no_task_in_common_is_undefined():
    result = paired_difference([scored(1.0, task="a")], [scored(1.0, task="b")], "success")
    assert result.figure.value is None
    assert result.figure.reason == "the two runs have no scored task in common"
    assert result.p_sign is None


def test_a_bootstrap_of_tasks():
    first, second = rows_of([0] * 40), rows_of([number % 2 for number in range(40)])
    result = paired_difference(first, second, "success", Intervals(method="bootstrap", seed=1))
    assert result.figure.method == "bootstrap"
    assert result.figure.low == pytest.approx(0.5 - 0.155, abs=0.05)
    assert result.figure.high == pytest.approx(0.5 + 0.155, abs=0.05)
