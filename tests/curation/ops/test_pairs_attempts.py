"""Pairs of attempts at one task, against all pairs tried one by one."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adp.curation.apply import apply
from adp.curation.ops.pairs.attempts import Attempt, opposite, ranked
from adp.curation.ops.pairs.pair_candidates import value_of
from adp.curation.ops.pairs.rounds import Rounds
from tests.curation.ops.pair_checks import events_of, reasons_of, rows_of, store_of

SCORES = st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0])
ASK: dict[str, Any] = {"source": "user", "kind": "message", "text": "why?"}


def attempt(turns: int, **columns: Any) -> dict[str, Any]:
    """A run with so many turns, each answered by the user."""
    steps = [ASK]
    for number in range(turns):
        steps += [{"text": f"t{number}"}, {**ASK, "text": f"u{number}"}]
    return {"task_id": "t", "steps": steps, **columns}


def made(scores: list[float]) -> list[Attempt]:
    return [Attempt(n, f"r{n}", "t", score, Rounds((0,), "")) for n, score in enumerate(scores)]


def widest_first(scores: list[float]) -> list[tuple[int, int]]:
    """All pairs of a better and a worse one, the widest gap first, then by place."""
    every = [
        (i, j) for i, j in itertools.permutations(range(len(scores)), 2) if scores[i] > scores[j]
    ]
    return sorted(every, key=lambda two: (scores[two[1]] - scores[two[0]], *two))


@given(st.lists(SCORES, max_size=9), st.sampled_from([0.0, 0.1, 0.25, 0.5, 1.0]))
def test_ranked_is_all_pairs(scores, gap):
    results = [(a.seq, b.seq) for a, b in ranked(made(scores), gap)]
    assert results == [two for two in widest_first(scores) if scores[two[0]] - scores[two[1]] > gap]


@given(st.lists(SCORES, max_size=9), st.sampled_from([0.0, 0.1, 0.25, 0.5, 1.0]))
def test_opposite_is_the_widest_that_are_left(scores, gap):
    used: set[int] = set()
    wanted = []
    for better, worse in widest_first(scores):
        if scores[better] - scores[worse] >= gap and not used & {better, worse}:
            wanted.append(scores[better] - scores[worse])
            used |= {better, worse}
    result = list(opposite(made(scores), gap))
    assert [a.score - b.score for a, b in result] == wanted
    members = [item.seq for two in result for item in two]
    assert len(set(members)) == len(members)
    assert members == [item.seq for two in opposite(made(scores)[::-1], gap) for item in two]


@pytest.mark.parametrize(
    ("reward", "success", "value"),
    [(0.3, True, 0.3), (None, True, 1.0), (None, False, 0.0), (None, None, None), (0.0, True, 0.0)],
)
def test_the_value_of_a_run(reward, success, value):
    assert value_of(reward, success) == value


def test_lengths_are_controlled(tmp_path):
    store = store_of(tmp_path / "s", attempt(2, reward=1.0), attempt(20, reward=0.0))
    (pair,) = rows_of(apply("pairs", store, rule="attempts"))
    assert (pair["chosen_id"], pair["rejected_id"]) == ("d/r0", "d/r1")
    assert (pair["chosen_from"], pair["chosen_to"]) == (1, 4)
    # Two turns and five more: the seventh turn of the agent is step 13.
    assert (pair["rejected_from"], pair["rejected_to"]) == (1, 14)
    assert json.loads(pair["extra"]) == {"cut_turns": 13, "same_prompt": True}
    (whole,) = rows_of(apply("pairs", store, rule="attempts", extra_rounds=None))
    assert whole["rejected_to"] == 40
    (none,) = rows_of(apply("pairs", store, rule="attempts", extra_rounds=0))
    assert none["rejected_to"] == 4


def test_both_ends_are_turns_of_the_agent(tmp_path):
    runs = [attempt(n, reward=float(n % 2)) for n in (3, 4, 5, 6)]
    store = store_of(tmp_path / "s", *runs)
    steps = {
        (row["trajectory_id"], row["step"]): row["source"]
        for row in store.scan("steps").collect().to_dicts()
    }
    pairs = rows_of(apply("pairs", store, rule="attempts"))
    assert len(pairs) == 2
    for pair in pairs:
        for side in ("chosen", "rejected"):
            ends = (pair[f"{side}_from"], pair[f"{side}_to"] - 1)
            assert [steps[pair[f"{side}_id"], end] for end in ends] == ["agent", "agent"]


def test_success_where_not_all_have_a_reward(tmp_path):
    store = store_of(
        tmp_path / "s",
        attempt(1, success=True),
        attempt(1, success=False, reward=5.0),
        attempt(1, reward=9.0),
        attempt(1, success=None),
    )
    outcome = apply("pairs", store, rule="attempts")
    (pair,) = rows_of(outcome)
    assert (pair["chosen_id"], pair["rejected_id"], pair["margin"]) == ("d/r0", "d/r1", 1.0)
    assert reasons_of(outcome) == {2000: "it has no score", 3000: "it has no score"}


def test_every_run_is_explained(tmp_path):
    store = store_of(
        tmp_path / "s",
        attempt(1, reward=1.0),
        attempt(1, reward=1.0),
        attempt(1, reward=1.0),
        attempt(1, reward=0.0),
        attempt(1, reward=None),
        attempt(0, reward=0.5),
        attempt(1, reward=0.5, task_id="alone"),
        {"task_id": None, "reward": 1.0, "steps": [{"text": "no question"}]},
        attempt(1, reward=0.5, task_id="narrow"),
        attempt(1, reward=0.45, task_id="narrow"),
    )
    outcome = apply("pairs", store, rule="attempts")
    assert len(rows_of(outcome)) == 1
    used = "the attempts far enough from it are in other pairs"
    assert reasons_of(outcome) == {
        1000: used,
        2000: used,
        4000: "it has no score",
        5000: "it has no turn of the agent",
        6000: "no other scored attempt at its task",
        7000: "its task is not known",
        8000: "the gap to the other attempts is too small",
        9000: "the gap to the other attempts is too small",
    }
    assert {row["seq"] for row in events_of(outcome)} == {n * 1000 for n in range(10)}
    assert outcome.summary["paired"] == 2


def test_the_cap_keeps_the_widest(tmp_path):
    rewards = [0.0, 0.1, 0.3, 0.6, 0.8, 1.0]
    store = store_of(tmp_path / "s", *[attempt(1, reward=reward) for reward in rewards])
    outcome = apply("pairs", store, rule="attempts", max_per_task=2)
    assert sorted(row["margin"] for row in rows_of(outcome)) == pytest.approx([0.7, 1.0])
    assert set(reasons_of(outcome).values()) == {"its task has the most pairs already"}
    every = apply("pairs", store, rule="ranked")
    assert len(rows_of(every)) == 14  # 0.1 - 0.0 is not more than 0.1
    few = apply("pairs", store, rule="ranked", max_per_task=3)
    assert sorted(row["margin"] for row in rows_of(few)) == pytest.approx([0.8, 0.9, 1.0])


def test_a_column_as_score(tmp_path):
    runs = [attempt(1, reward=1.0, attempt=n) for n in (3, 1)]
    store = store_of(tmp_path / "s", *runs)
    (pair,) = rows_of(apply("pairs", store, rule="ranked", score="attempt"))
    assert (pair["chosen_score"], pair["rejected_score"]) == (3.0, 1.0)
    assert rows_of(apply("pairs", store, rule="ranked")) == []
    flags = [attempt(1, success=flag) for flag in (False, True, None)]
    (pair,) = rows_of(
        apply("pairs", store_of(tmp_path / "t", *flags), rule="ranked", score="success")
    )
    assert pair["chosen_id"] == "d/r1"


@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(SCORES | st.none(), st.sampled_from("ab")), max_size=6))
def test_any_runs(tmp_path_factory, runs):
    """Every run is told of, and the pairs are those of the definition."""
    folder = tmp_path_factory.mktemp("s")
    rows = [attempt(1, reward=score, task_id=task) for score, task in runs]
    store = store_of(folder / "one", *rows)
    for rule in ("attempts", "ranked"):
        first = apply("pairs", store, rule=rule, workers=1)
        groups: dict[str, list[float]] = {}
        for score, task in runs:
            if score is not None:
                groups.setdefault(task, []).append(score)
        gaps = [
            a - b
            for scores in groups.values()
            for a, b in itertools.permutations(scores, 2)
            if a - b > 0.1
        ]
        results = [row["margin"] for row in rows_of(first)]
        if rule == "ranked":
            assert sorted(results) == sorted(gaps)
        assert {row["seq"] for row in events_of(first)} == {n * 1000 for n in range(len(rows))}
