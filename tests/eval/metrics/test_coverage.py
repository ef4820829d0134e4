"""How often an interval of 95 % holds the true number, for few tasks: what docs/scorers.md says."""

from __future__ import annotations

import random
from statistics import NormalDist

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adp.eval.metrics import Intervals, mean_figures, paired_difference, pass_figures
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
    """Share of the intervals that hold the truth: of the mean, of the clustered one with the normal
    quantile, paired."""
    drawn = random.Random(tasks)
    held = [0, 0, 0]
    normal = NormalDist().inv_cdf(0.975)
    for _ in range(times):
        mean, paired = simulated(tasks, drawn)
        held[0] += mean.low <= 0.5 <= mean.high
        half = (paired.high - paired.value if paired.low is not None else 1.0) * normal
        held[1] += abs(paired.value) <= half / student(0.95, tasks - 1)
        # Without an interval nothing is claimed: that is no miss.
        held[2] += paired.low is None or paired.low <= 0 <= paired.high
    return [item / times for item in held]


@pytest.mark.slow
@pytest.mark.parametrize(("tasks", "normal"), [(5, 0.91), (10, 0.94), (30, 0.955)])
def test_an_interval_of_95_percent_holds_the_truth_about_as_often(tasks, normal):
    mean, narrow, paired = coverage(tasks)
    assert 0.93 <= mean <= 0.985
    assert 0.93 <= paired <= 0.985
    assert narrow < min(paired, normal)


NEAR_THE_CEILING = [(30, 0.0), (30, 0.3), (100, 0.0), (100, 0.1)]
"""Tasks, and the correlation of attempts at one task."""


def near_the_ceiling(tasks, correlation, method, times, share=0.97, attempts=4):
    """Part of the intervals of the mean success that hold the true share."""
    drawn, held = random.Random(tasks), 0
    for _ in range(times):
        rows = []
        for task in range(tasks):
            easy = share
            if correlation:
                size = (1 - correlation) / correlation
                easy = drawn.betavariate(share * size, (1 - share) * size)
            rows += [scored(float(drawn.random() < easy), f"t{task}", a) for a in range(attempts)]
        (figure,) = mean_figures(rows, intervals=Intervals(method=method))
        held += figure.low is not None and figure.low <= share <= figure.high
    return held / times


@pytest.mark.parametrize(("tasks", "correlation"), NEAR_THE_CEILING)
def test_near_the_ceiling_the_interval_holds_the_truth_as_often_as_it_says(tasks, correlation):
    times = 600
    # Three standard errors of a share of 0.95 over so many data sets.
    margin = 3 * (0.95 * 0.05 / times) ** 0.5
    assert near_the_ceiling(tasks, correlation, "auto", times) >= 0.95 - margin


@pytest.mark.slow
@pytest.mark.parametrize(("tasks", "correlation"), NEAR_THE_CEILING)
def test_near_the_ceiling_the_symmetrical_interval_holds_it_less_often(tasks, correlation):
    symmetrical = near_the_ceiling(tasks, correlation, "cluster", 4000)
    assert symmetrical < near_the_ceiling(tasks, correlation, "auto", 4000)


@given(
    st.integers(2, 8).flatmap(
        lambda attempts: st.lists(
            st.lists(st.booleans(), min_size=attempts, max_size=attempts), min_size=2, max_size=12
        )
    ),
    st.sampled_from(["auto", "cluster", "bootstrap", "none"]),
)
def test_success_and_pass_at_1_of_a_run_have_one_interval(runs, method):
    rows = [
        scored(float(success), f"t{task}", attempt)
        for task, attempts in enumerate(runs)
        for attempt, success in enumerate(attempts)
    ]
    options = Intervals(method=method, draws=50)
    (mean,) = mean_figures(rows, intervals=options)
    for figure in pass_figures(rows, ks=[1], intervals=options):
        assert figure.value == pytest.approx(mean.value)
        assert figure.method == mean.method
        ends = (figure.low, figure.high)
        assert ends == ((None, None) if mean.low is None else pytest.approx((mean.low, mean.high)))


@given(st.integers(2, 40), st.integers(2, 5), st.randoms(use_true_random=False))
def test_the_clustered_interval_of_wilson_solves_wilsons_equation(tasks, attempts, drawn):
    scipy = pytest.importorskip("scipy.stats")
    rows = [
        scored(float(drawn.random() < 0.9), f"t{task}", attempt)
        for task in range(tasks)
        for attempt in range(attempts)
    ]
    (figure,) = mean_figures(rows)
    (plain,) = mean_figures(rows, intervals=Intervals(method="cluster"))
    if figure.method == "wilson":  # all tasks agree
        assert plain.low is None
        return
    values = [row.score.value for row in rows]
    mean = sum(values) / len(values)
    sums = [sum(values[n * attempts : (n + 1) * attempts]) - mean * attempts for n in range(tasks)]
    error = (sum(x * x for x in sums) * tasks / (tasks - 1)) ** 0.5 / len(values)
    effective = mean * (1 - mean) / error**2
    for end in (figure.low, figure.high):
        # Wilson 1927: the ends are the shares whose own error, times the quantile, is the distance.
        distance = scipy.t.ppf(0.975, tasks - 1) * (end * (1 - end) / effective) ** 0.5
        assert abs(end - mean) == pytest.approx(distance, rel=1e-6, abs=1e-9)
