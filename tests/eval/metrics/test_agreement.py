"""Agreement against plain definitions, published examples and other packages."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adp.eval.metrics.agreement import (
    brier,
    calibration_error,
    cohen_kappa,
    coincidences,
    krippendorff_alpha,
    resampled,
    spearman,
)

labels = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("abc")), min_size=1)


@given(labels)
def test_kappa_against_its_definition(pairs):
    first, second = zip(*pairs, strict=True)
    count = len(pairs)
    seen = sum(x == y for x, y in pairs) / count
    chance = sum(first.count(name) * second.count(name) for name in "abc") / count**2
    kappa = cohen_kappa(first, second)
    if chance == 1:
        assert kappa is None
    else:
        assert kappa == pytest.approx((seen - chance) / (1 - chance))


def plain_alpha(units, order, level):
    """Alpha from all ordered pairs of verdicts within units, and between all verdicts."""
    units = [[label for label in unit if label is not None] for unit in units]
    units = [unit for unit in units if len(unit) > 1]
    everything = [label for unit in units for label in unit]

    def distance(left, right):
        low, high = sorted((order.index(left), order.index(right)))
        if level == "nominal":
            return float(low != high)
        between = sum(everything.count(label) for label in order[low : high + 1])
        ends = (everything.count(left) + everything.count(right)) / 2
        return (between - ends) ** 2

    total = len(everything)
    if not total:
        return None
    within = sum(
        distance(*pair) / (len(unit) - 1)
        for unit in units
        for pair in itertools.permutations(unit, 2)
    )
    between = sum(distance(*pair) for pair in itertools.permutations(everything, 2))
    return 1 - (within / total) / (between / (total * (total - 1))) if between else None


@given(
    st.lists(st.lists(st.sampled_from(["0", "1", "2", "3", None]), max_size=5), max_size=8),
    st.sampled_from(["nominal", "ordinal"]),
)
def test_alpha_against_its_definition(units, level):
    order = ["0", "1", "2", "3"]
    alpha = krippendorff_alpha(coincidences(units, order).sum(axis=0), level)
    wanted = plain_alpha(units, order, level)
    assert alpha == (None if wanted is None else pytest.approx(wanted))


def test_alpha_of_krippendorffs_example():
    """Four observers, twelve units (Krippendorff 2011, "Computing Krippendorff's Alpha")."""
    observers = (
        "1 2 3 3 2 1 4 1 2 * * *",
        "1 2 3 3 2 2 4 1 2 5 * 3",
        "* 3 3 3 2 3 4 2 2 5 1 *",
        "1 2 3 3 2 4 4 1 2 5 1 *",
    )
    rows = [[None if mark == "*" else mark for mark in row.split()] for row in observers]
    table = coincidences(list(zip(*rows, strict=True)), list("12345")).sum(axis=0)
    assert krippendorff_alpha(table, "nominal") == pytest.approx(0.743, abs=5e-4)
    assert krippendorff_alpha(table, "ordinal") == pytest.approx(0.815, abs=5e-4)


def test_other_packages_agree():
    metrics = pytest.importorskip("sklearn.metrics")
    stats = pytest.importorskip("scipy.stats")
    draw = np.random.default_rng(1)
    first, second = draw.integers(0, 4, (2, 200))
    kappa = metrics.cohen_kappa_score(first, second)
    assert cohen_kappa(first.tolist(), second.tolist()) == pytest.approx(kappa)
    chances, truths = draw.random(200), draw.integers(0, 2, 200).astype(float)
    assert brier(chances, truths) == pytest.approx(metrics.brier_score_loss(truths, chances))
    rho = stats.spearmanr(first, chances).statistic
    assert spearman(first.astype(float), chances) == pytest.approx(rho)


def test_calibration_error_by_hand():
    chances = np.array([0.05, 0.05, 0.95, 1.0])
    truths = np.array([0.0, 1.0, 1.0, 1.0])
    assert calibration_error(chances, truths) == pytest.approx((2 * 0.45 + 2 * 0.025) / 4)
    assert calibration_error(truths, truths) == 0
    assert brier(np.array([0.5, 1.0]), np.array([1.0, 1.0])) == 0.125


def test_ranks_with_ties():
    assert spearman(np.array([1.0, 2, 2, 3]), np.array([1.0, 2, 2, 3])) == pytest.approx(1)
    assert spearman(np.array([1.0, 2, 3]), np.array([6.0, 5, 4])) == pytest.approx(-1)
    assert spearman(np.array([1.0, 1, 1]), np.array([1.0, 2, 3])) is None
    assert spearman(np.array([]), np.array([])) is None


def test_intervals_come_from_whole_tasks():
    values = np.array([0.0, 0, 0, 0, 1, 1, 1, 1])

    def mean(at):
        return float(values[at].mean())

    low, high, method = resampled(mean, [*"aaaabbbb"])
    assert (low, high, method) == (0, 1, "bootstrap")
    runs = resampled(mean, list(range(8)))
    assert 0 < runs[0] < 0.5 < runs[1] < 1
    assert resampled(mean, list(range(8))) == runs
    assert resampled(mean, ["a"] * 8) == (None, None, None)
    assert resampled(lambda _: 1.0, [*"ab"])[2] == "no interval: the tasks do not differ"
    assert resampled(lambda _: None, [*"ab"])[0] is None
