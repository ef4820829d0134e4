"""Outcomes, and tau-bench's published table through a store."""

from __future__ import annotations

import gzip
import json

import pytest

from adp.eval.scorer import Item, Scored
from adp_schema.model import Trajectory
from adp_schema.store import Store
from tests.eval.metrics.test_passes import AIRLINE, PUBLISHED, airline, shared
from tests.eval.scorers.runs import figures, reasons, run, scorer, values


@shared
def test_the_published_table_of_tau_bench_through_a_store(tmp_path):
    with Store.grow(tmp_path / "store") as store:
        for record in airline():
            name = f"{record['task_id']}/{record['trial']}"
            store.append(
                Trajectory(
                    trajectory_id=f"airline/{name}",
                    source_id=name,
                    dataset="airline",
                    task_id=str(record["task_id"]),
                    attempt=record["trial"],
                    reward=record["reward"],
                )
            )
    outcome = scorer("outcome")
    listed = [
        Scored(run.trajectory_id, run.task_id, run.attempt, score)
        for run in Store.open(str(tmp_path / "store")).trajectories()
        for score in outcome.score(Item(run))
    ]
    results = {figure.name: figure for figure in outcome.figures(listed)}
    table = {name: results[name].value for name in PUBLISHED}
    assert table == pytest.approx(PUBLISHED, abs=5e-5)
    # Wilson's equation at 0.42 with 50 tasks: Student's 2.0096 and the clustered error 0.0522.
    assert (results["success"].low, results["success"].high) == pytest.approx(
        (0.3208, 0.5262), abs=1e-4
    )
    assert results["pass@1"].low == pytest.approx(results["success"].low)
    assert (results["success"].count, results["success"].tasks) == (200, 50)


@shared
def test_the_full_runs_of_tau_bench_agree_with_the_reduced_ones():
    full = json.loads(
        gzip.decompress((AIRLINE.parent / "gpt-4o-airline.sample16.json.gz").read_bytes())
    )
    rewards = {(record["task_id"], record["trial"]): record["reward"] for record in airline()}
    outcome = scorer("outcome")
    for record in full:
        result = values(outcome.score(run(reward=record["reward"])))
        assert result["success"] == rewards[record["task_id"], record["trial"]]
    assert len(full) == 16


def test_success_comes_from_the_run_and_else_from_the_reward():
    cases = {"auto": [1.0, 1.0, 0.0, None], "success": [1.0, None, None, None]}
    cases["reward"] = [0.0, 1.0, 0.0, None]
    runs = [
        run(success=True, reward=0.5),
        run(reward=1.0 - 1e-7),
        run(reward=0.99),
        run(reward=float("nan")),
    ]
    for source, wanted in cases.items():
        outcome = scorer(f"outcome:success={source}")
        assert [values(outcome.score(item))["success"] for item in runs] == wanted


def test_ends_and_errors():
    outcome = scorer("outcome")
    good = run(success=True, terminated=True, truncated=False, stop_reason="answer")
    cut = run(success=False, terminated=False, truncated=True, error_type="context_length")
    other = run(success=False, terminated=False, truncated=False, error_type="refused")
    unknown = run()
    result = figures(outcome, good, cut, other, unknown)
    assert result["success"].value == pytest.approx(1 / 3)
    assert result["truncated"].value == pytest.approx(1 / 3)
    assert result["error"].value == pytest.approx(2 / 3)
    assert result["error"].unscored == 1
    assert result["error:context_length"].value == pytest.approx(1 / 3)
    assert result["error:refused"].value == pytest.approx(1 / 3)
    assert reasons(outcome.score(unknown))["error"] == "the source does not say how the run ended"


def test_named_rewards():
    item = run(rewards='{"format": 0.5, "length": null, "why": "no"}')
    score = scorer("outcome").score(item)
    assert values(score)["reward.format"] == 0.5
    assert reasons(score)["reward.length"] == "there is no reward.length"
    assert figures(scorer("outcome"), item)["reward.format"].value == 0.5


def test_what_is_left_out_with_too_few_attempts():
    outcome = scorer("outcome:k=[2],partial=true")
    listed = [
        Scored(f"{task}/{attempt}", task, attempt, score)
        for task, wins in {"a": [True, False], "b": [True]}.items()
        for attempt, won in enumerate(wins)
        for score in outcome.score(run(success=won))
    ]
    results = {figure.name: figure.value for figure in outcome.figures(listed)}
    assert (results["pass@2"], results["pass^2"]) == (1.0, 0.0)
    strict = scorer("outcome:k=[2]").figures(listed)
    assert {figure.name: figure.value for figure in strict}["pass@2"] is None
