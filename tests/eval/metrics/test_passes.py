"""pass@k and pass^k, against enumeration and the published table of tau-bench."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adp.eval.metrics import mean_figures, pass_at_k, pass_figures, pass_hat_k
from adp.eval.scorer import Score, Scored
from adp.rollouts.turns import is_success
from tests.eval.metrics.rows import scored

AIRLINE = (
    Path(__file__).parents[3].parent / "shared/data/eval/tau_bench/gpt-4o-airline.rewards.jsonl"
)
shared = pytest.mark.skipif(not AIRLINE.exists(), reason="the reference data are not here")

PUBLISHED = {
    **{"pass@1": 0.42, "pass@2": 0.5667, "pass@3": 0.66, "pass@4": 0.72},
    **{"pass^1": 0.42, "pass^2": 0.2733, "pass^3": 0.22, "pass^4": 0.20},
}
"""gpt-4o with function calling on the airline tasks, 4 trials (README of tau-bench)."""


@given(st.lists(st.booleans(), min_size=1, max_size=7), st.integers(1, 8))
def test_both_are_the_share_of_the_draws_of_k_attempts(attempts, k):
    draws = list(itertools.combinations(attempts, k))
    any_of, all_of = [any(draw) for draw in draws], [all(draw) for draw in draws]
    results = (
        pass_at_k(len(attempts), sum(attempts), k),
        pass_hat_k(len(attempts), sum(attempts), k),
    )
    if k > len(attempts):
        assert results == (None, None)
    else:
        assert results[0] == pytest.approx(sum(any_of) / len(draws))
        assert results[1] == pytest.approx(sum(all_of) / len(draws))


@given(st.lists(st.lists(st.booleans(), min_size=3, max_size=5), min_size=1, max_size=6))
def test_figures_are_means_over_tasks(tasks):
    rows = [
        scored(float(value), task=f"t{number}", attempt=attempt)
        for number, task in enumerate(tasks)
        for attempt, value in enumerate(task)
    ]
    figures = {figure.name: figure for figure in pass_figures(rows, ks=[1, 3])}
    for k in (1, 3):
        best = [pass_at_k(len(task), sum(task), k) for task in tasks]
        every = [pass_hat_k(len(task), sum(task), k) for task in tasks]
        assert figures[f"pass@{k}"].value == pytest.approx(sum(best) / len(tasks))
        assert figures[f"pass^{k}"].value == pytest.approx(sum(every) / len(tasks))
        assert figures[f"pass^{k}"].value <= figures[f"pass@{k}"].value + 1e-12


def test_too_few_attempts_are_undefined_and_say_so():
    rows = [
        scored(1.0, task="a", attempt=0),
        scored(1.0, task="a", attempt=1),
        scored(0.0, task="b"),
    ]
    result, two = pass_figures(rows, ks=[1, 2])[:2]
    assert result.value == 0.5
    assert two.value is None
    assert two.reason == "1 of 2 tasks have fewer than 2 scored attempts"
    (part,) = pass_figures(rows, ks=[2], partial=True)[:1]
    assert (part.value, part.reason) == (1.0, "without 1 task that has too few attempts")


def test_what_broke_is_no_attempt():
    broken = Score("success", None, "the server failed", infrastructure=True)
    rows = [scored(1.0, task="a"), Scored("x", "a", 1, broken)]
    figure = pass_figures(rows)[0]
    assert (figure.value, figure.count, figure.unscored, figure.infrastructure) == (1.0, 1, 1, 1)
    (nothing, _) = pass_figures(rows[1:])
    assert nothing.value is None
    assert "the server failed" in nothing.reason


@pytest.mark.parametrize(
    ("most", "names"),
    [
        (1, ["1"]),
        (3, ["1", "2", "3"]),
        (8, ["1", "2", "3", "4", "8"]),
        (10, ["1", "2", "3", "4", "8", "10"]),
    ],
)
def test_ks_that_are_taken(most, names):
    rows = [scored(1.0, task="a", attempt=number) for number in range(most)]
    results = [figure.name for figure in pass_figures(rows)]
    assert results == [f"pass@{name}" for name in names] + [f"pass^{name}" for name in names]


def test_a_success_is_a_reward_within_a_millionth_of_one():
    assert is_success(1 - 1e-6)
    assert is_success(True)
    assert not is_success(0.99999)
    assert not is_success(1.1)


def airline():
    return [json.loads(line) for line in AIRLINE.read_text().splitlines()]


@shared
def test_the_published_table_of_tau_bench():
    rows = [
        scored(run["reward"], task=str(run["task_id"]), attempt=run["trial"]) for run in airline()
    ]
    results = {figure.name: figure.value for figure in pass_figures(rows)}
    assert results == pytest.approx(PUBLISHED, abs=5e-5)
    (mean,) = mean_figures(rows)
    assert (mean.value, mean.count, mean.tasks) == (0.42, 200, 50)
