"""Means and their intervals, against slow references and numbers that Inspect and scipy give."""

from __future__ import annotations

import json
import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adp.eval.metrics import (
    Intervals,
    mean_figures,
    productivity_figure,
    ratio_figure,
    wilson,
)
from adp.eval.scorer import Score, Scored
from tests.eval.metrics.rows import scored
from tests.eval.metrics.test_passes import AIRLINE, airline, shared

NUMBERS = st.floats(-10, 10, allow_nan=False)
T = {2: 12.7062047, 3: 4.3026527, 4: 3.1824463, 5: 2.7764451, 6: 2.5705818}
"""Two-sided 5 % points of Student's t, by the number of tasks."""
GROUPED = st.lists(st.lists(NUMBERS, min_size=1, max_size=4), min_size=2, max_size=6)


def rows_of(groups, metric="x"):
    return [
        scored(value, task=f"t{number}", attempt=attempt, metric=metric)
        for number, group in enumerate(groups)
        for attempt, value in enumerate(group)
    ]


def inspect_error(groups):
    """Inspect AI's clustered standard error, as its source writes it: products within clusters."""
    values = [value for group in groups for value in group]
    mean, total = sum(values) / len(values), 0.0
    for group in groups:
        total += sum((item - mean) * (other - mean) for item in group for other in group)
    correction = len(groups) / (len(groups) - 1)
    return math.sqrt(max(0.0, total) * correction) / len(values)


@given(GROUPED)
def test_the_interval_of_a_mean_is_clustered_as_in_inspect(groups):
    (figure,) = mean_figures(rows_of(groups), intervals=Intervals(method="cluster"))
    values = [value for group in groups for value in group]
    assert figure.value == pytest.approx(sum(values) / len(values), abs=1e-9)
    if figure.low is None:
        # The products of the oracle cancel less exactly than the sums do.
        assert inspect_error(groups) == pytest.approx(0, abs=1e-6)
        assert figure.reason == "no interval: the tasks do not differ"
        return
    half = T[len(groups)] * inspect_error(groups)
    if min(values) < 0 or max(values) > 1:
        assert figure.high - figure.value == pytest.approx(half, abs=1e-6)
        assert figure.value - figure.low == pytest.approx(half, abs=1e-6)
    assert (figure.count, figure.tasks, figure.method) == (len(values), len(groups), "cluster")


def test_shares_without_any_difference_between_tasks_have_wilsons_interval():
    rows = [scored(float(a % 2), task=str(n), attempt=a) for n in range(6) for a in range(4)]
    (figure,) = mean_figures(rows)
    assert (figure.value, figure.method) == (0.5, "wilson")
    assert (figure.low, figure.high) == pytest.approx(wilson(3, 6))


@pytest.mark.parametrize("method", ["cluster", "bootstrap"])
@pytest.mark.parametrize("value", [0.0, 1.0])
def test_an_interval_without_width_is_none_and_says_so(method, value):
    rows = [scored(value, task=str(n), attempt=a) for n in range(5) for a in range(2)]
    (figure,) = mean_figures(rows, intervals=Intervals(method=method))
    assert (figure.value, figure.low, figure.high, figure.method) == (value, None, None, None)
    assert figure.reason == "no interval: the tasks do not differ"


@given(st.integers(0, 60), st.integers(1, 60))
def test_wilson_is_scipys(successes, more):
    scipy = pytest.importorskip("scipy.stats")
    count = successes + more
    known = scipy.binomtest(successes, count).proportion_ci(method="wilson")
    assert wilson(successes, count) == pytest.approx((known.low, known.high), abs=1e-9)


@shared
def test_the_intervals_of_the_airline_rewards():
    rows = [
        scored(run["reward"], task=str(run["task_id"]), attempt=run["trial"]) for run in airline()
    ]
    ends = {}
    for method in ("wilson", "auto", "cluster", "bootstrap"):
        (figure,) = mean_figures(rows, intervals=Intervals(method=method))
        ends[figure.method] = (figure.low, figure.high)
    assert ends["wilson"] == pytest.approx((0.3537, 0.4893), abs=1e-4)
    # Inspect has 0.318 to 0.522, with 1.96 in the place of Student's 2.01 for 50 tasks.
    assert ends["cluster"] == pytest.approx((0.3151, 0.5249), abs=1e-4)
    # Between the two: as wide as the clustered one, and nearer to the middle as Wilson's is.
    low, high = ends["wilson-cluster"]
    assert ends["cluster"][0] < low < ends["wilson"][0]
    assert ends["wilson"][1] < high < ends["cluster"][1] + 0.01
    assert ends["bootstrap"] == pytest.approx((0.32, 0.52), abs=0.01)
    assert AIRLINE.exists()


def test_one_run_a_task_and_truths_are_wilson():
    rows = [scored(float(number < 3), task=str(number)) for number in range(10)]
    (figure,) = mean_figures(rows)
    assert (figure.low, figure.high, figure.method) == (*wilson(3, 10), "wilson")


def test_when_all_agree_the_interval_is_not_empty():
    rows = [scored(0.0, task=str(n), attempt=a) for n in range(20) for a in range(5)]
    (figure,) = mean_figures(rows)
    assert (figure.value, figure.low, figure.method) == (0.0, 0.0, "wilson")
    assert figure.high == pytest.approx(wilson(0, 20)[1])


def test_amounts_are_no_truths():
    rows = [scored(1.0, task=str(n), metric="calls") for n in range(5)]
    (share,), (amount,) = mean_figures(rows), mean_figures(rows, amounts=["calls"])
    assert (share.method, share.high) == ("wilson", 1.0)
    assert (amount.method, amount.low, amount.high) == (None, None, None)
    assert amount.reason == "no interval: the tasks do not differ"


def test_a_share_of_none_or_all_has_wilsons_interval_over_tasks_that_say_something():
    rows = [
        row
        for n, calls in enumerate([3, 4, 0, 2])
        for row in (scored(0, str(n), metric="bad"), scored(calls, str(n), metric="calls"))
    ]
    none = ratio_figure(rows, "bad", "calls", "share")
    assert (none.low, none.high, none.method) == (*wilson(0, 3), "wilson")
    every = ratio_figure(rows, "calls", "calls", "share")
    assert (every.low, every.high) == wilson(3, 3)


def test_one_task_alone_has_no_interval():
    rows = [scored(0.5, attempt=0), scored(0.75, attempt=1)]
    for method in ("auto", "cluster", "bootstrap", "none"):
        (figure,) = mean_figures(rows, intervals=Intervals(method=method))
        assert (figure.value, figure.low, figure.method) == (0.625, None, None)


def test_trajectories_without_a_task_are_independent():
    rows = [Scored(str(n), None, None, Score("x", float(n % 2))) for n in range(10)]
    (figure,) = mean_figures(rows)
    assert (figure.tasks, figure.method) == (10, "wilson")


def test_unscored_is_not_zero_and_is_counted():
    rows = [
        scored(1.0, task="a"),
        scored(None, task="b"),
        scored(math.nan, task="c"),
        Scored(
            "d", "d", 0, Score("success", None, "the judge did not answer", infrastructure=True)
        ),
    ]
    (figure, missing) = mean_figures(rows, ["success", "reward"])
    assert (figure.value, figure.count) == (1.0, 1)
    assert (figure.unscored, figure.infrastructure) == (3, 1)
    assert (missing.value, missing.reason) == (None, "nothing was scored")
    (alone,) = mean_figures(rows[3:])
    assert alone.reason == "nothing was scored: the judge did not answer (1 of 1)"


@given(GROUPED, st.integers(0, 3))
def test_a_bootstrap_is_repeatable_and_holds_what_is_drawn(groups, seed):
    options = Intervals(method="bootstrap", draws=50, seed=seed)
    first, second = (mean_figures(rows_of(groups), intervals=options) for _ in range(2))
    assert first == second
    values = [value for group in groups for value in group]
    if first[0].low is None:
        assert first[0].reason == "no interval: the tasks do not differ"
        return
    assert min(values) - 1e-9 <= first[0].low <= first[0].high <= max(values) + 1e-9


def test_a_bootstrap_draws_tasks_and_not_runs():
    # All runs of a task are alike, so drawing runs would halve the width.
    groups = [[float(number % 2)] * 4 for number in range(40)]
    (figure,) = mean_figures(rows_of(groups), intervals=Intervals(method="bootstrap"))
    half = 1.96 * inspect_error(groups)
    assert figure.high - 0.5 == pytest.approx(half, rel=0.15)
    assert 0.5 - figure.low == pytest.approx(half, rel=0.15)


def test_a_ratio_is_of_the_sums_and_skips_what_lacks_a_part():
    rows = [
        *(scored(value, task=name, metric="bad") for name, value in (("a", 1), ("b", 0), ("c", 2))),
        *(scored(value, task=name, metric="all") for name, value in (("a", 10), ("b", 1))),
    ]
    figure = ratio_figure(rows, "bad", "all", name="share")
    assert figure.value == pytest.approx(1 / 11)
    assert (figure.count, figure.unscored) == (2, 1)
    empty = ratio_figure([scored(0, metric="bad"), scored(0, metric="all")], "bad", "all", "share")
    assert (empty.value, empty.reason) == (None, "all is 0 in all trajectories")


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 6)), min_size=1, max_size=12))
def test_tool_productivity_is_et_agents(runs):
    rows = [scored(float(right), task=str(n), metric="ok") for n, (right, _) in enumerate(runs)]
    rows += [scored(calls, task=str(n), metric="calls") for n, (_, calls) in enumerate(runs)]
    right, calls = (sum(column) / len(runs) for column in zip(*runs, strict=True))
    figure = productivity_figure(rows, "ok", "calls")
    assert figure.value == pytest.approx(right * calls / (calls + 0.1) * 100)
    if figure.low is None:
        assert len(set(runs)) == 1 or not right or not calls
    else:
        assert figure.low <= figure.value <= figure.high


def test_the_interval_of_productivity_is_near_a_bootstrap():
    generator = random.Random(7)
    runs = [(float(generator.random() < 0.6), generator.randint(0, 4)) for _ in range(200)]
    rows = [scored(right, task=str(n), metric="ok") for n, (right, _) in enumerate(runs)]
    rows += [scored(calls, task=str(n), metric="calls") for n, (_, calls) in enumerate(runs)]
    figure = productivity_figure(rows, "ok", "calls")
    values = []
    for _ in range(400):
        drawn = generator.choices(runs, k=len(runs))
        right, calls = (sum(column) / len(runs) for column in zip(*drawn, strict=True))
        values.append(100 * right * calls / (calls + 0.1))
    values.sort()
    assert figure.low == pytest.approx(values[10], abs=2)
    assert figure.high == pytest.approx(values[-11], abs=2)


def test_figures_are_json():
    json.dumps([{"low": figure.low} for figure in mean_figures([scored(1.0)])], allow_nan=False)
