"""How often an interval of 95 % holds the true number, for few tasks: what docs/scorers.md says."""

from __future__ import annotations

import random
from statistics import NormalDist

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adp.eval.metrics import Intervals, mean_figures, paired_difference
from adp.eval.metrics.intervals import student
from tests.eval.metrics.rows import scored

PUBLISHED = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 9: 2.262, 29: 2.045, 120: 1.980}
"""Two-sided 5 % points of Student's t, as printed tables have them."""


@pytest.mark.parametrize("freedom", PUBLISHED)
def test_quantiles_of_printed_tables(freedom):
    assert student(0.95, freedom) == pytest.approx(PUBLISHED[freedom], abs=6e-4)


@given(st.integers(1, 2000), st.sampled_from([0.5, 0.8, 0.9, 0.95, 0.99, 0.999]))
def test_quantiles_are_scipys(freedom, level):
    scipy = pytest.importorskip("scipy.stats")
    known = scipy.t.ppf(0.5 + level / 2, freedom)
    assert student(level, freedom) == pytest.approx(known, rel=1e-6)


def simulated(tasks, drawn, method="auto", attempts=4):
    """Figures of a made-up data set; tasks differ in difficulty, by a Beta(2, 2) distribution."""
    rows, other = [], []
    for task in range(tasks):
        hard = drawn.betavariate(2, 2)
        for attempt in range(attempts):
            rows.append(scored(float(drawn.random() < hard), f"t{task}", attempt))
            other.append(scored(float(drawn.random() < hard), f"t{task}", attempt))
    options = Intervals(method=method)
    (mean,) = mean_figures(rows, intervals=options)
    return mean, paired_difference(rows, other, "success", options).figure


def coverage(tasks, times=2000):
    """Share of the intervals that hold the truth: of the mean, with the normal quantile, paired."""
    drawn = random.Random(tasks)
    held = [0, 0, 0]
    normal = NormalDist().inv_cdf(0.975)
    for _ in range(times):
        mean, paired = simulated(tasks, drawn)
        held[0] += mean.low <= 0.5 <= mean.high
        half = (mean.high - mean.value) * normal / student(0.95, tasks - 1)
        held[1] += abs(mean.value - 0.5) <= half
        # Without an interval nothing is claimed: that is no miss.
        held[2] += paired.low is None or paired.low <= 0 <= paired.high
    return [one / times for one in held]


@pytest.mark.slow
@pytest.mark.parametrize(("tasks", "normal"), [(5, 0.91), (10, 0.94), (30, 0.955)])
def test_an_interval_of_95_percent_holds_the_truth_about_as_often(tasks, normal):
    mean, narrow, paired = coverage(tasks)
    assert 0.93 <= mean <= 0.985
    assert 0.93 <= paired <= 0.985
    assert narrow < min(mean, normal)
