"""Pairs of turns at which attempts part, against every prefix of every attempt."""

from __future__ import annotations

from statistics import fmean
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adp.curation.apply import apply
from adp.curation.ops.pairs.branches import Walk, forks
from tests.curation.ops.pair_checks import events_of, reasons_of, rows_of, store_of

ASK: dict[str, Any] = {"source": "user", "kind": "message", "text": "why?"}


def walks(rows: list[tuple[float | None, list[tuple[int, int, bool]]]]) -> list[Walk]:
    return [
        Walk(seq, f"r{seq}", value, *([step[n] for step in steps] for n in range(3)))
        for seq, (value, steps) in enumerate(rows)
    ]


def naive(paths: list[Walk]) -> set[tuple[int, frozenset[int], frozenset[int], float]]:
    """Forks by the definition: for every prefix, who goes on from it and how."""
    result = set()
    for path in paths:
        for step in range(len(path.acts)):
            state = [(path.acts[n], path.seen[n]) for n in range(step)]
            here = [
                item
                for item in paths
                if len(item.acts) > step
                and [(item.acts[n], item.seen[n]) for n in range(step)] == state
            ]
            for other in here:
                if other.acts[step] == path.acts[step]:
                    continue
                ours = [item for item in here if item.acts[step] == path.acts[step]]
                theirs = [item for item in here if item.acts[step] == other.acts[step]]
                values = [
                    [item.value for item in group if item.value is not None]
                    for group in (ours, theirs)
                ]
                if not (ours[0].next_hash[step] and theirs[0].next_hash[step] and all(values)):
                    continue
                gap = fmean(values[0]) - fmean(values[1])
                sides = (frozenset(item.seq for item in group) for group in (ours, theirs))
                if gap >= 0:
                    result.add((step, *sides, gap))
    return result


# The source of a step is a part of what is hashed, so one hash is of one source.
_step = st.builds(lambda act, seen: (act, seen, act < 3), st.integers(0, 3), st.integers(0, 1))
_walk = st.tuples(st.sampled_from([None, 0.0, 0.5, 1.0]), st.lists(_step, max_size=4))


@given(st.lists(_walk, max_size=6))
def test_forks_by_the_definition(rows):
    paths = walks(rows)
    wanted = naive(paths)
    results = {
        (
            fork.step,
            frozenset(path.seq for path in fork.better.paths),
            frozenset(path.seq for path in fork.worse.paths),
            fork.gap,
        )
        for fork in forks(paths)
    }
    assert {result for result in results if result[3] > 0} == {
        item for item in wanted if item[3] > 0
    }
    ties = {frozenset([item[1], item[2]]) for item in wanted if item[3] == 0}
    assert {frozenset([result[1], result[2]]) for result in results if result[3] == 0} == ties


def act(name: str, result: str | None = None, **more: Any) -> dict[str, Any]:
    step: dict[str, Any] = {"calls": [{"name": name, "arguments": '{"a": 1}'}], **more}
    if result is not None:
        step["observations"] = [{"text": result}]
    return step


def run(*steps: dict[str, Any], **columns: Any) -> dict[str, Any]:
    return {"task_id": "t", "steps": [ASK, *steps], **columns}


def test_the_value_of_a_turn_is_the_mean_of_what_follows(tmp_path):
    store = store_of(
        tmp_path / "s",
        run(act("look", "x"), act("good"), reward=1.0),
        run(act("look", "x"), act("good"), act("more"), reward=0.5),
        run(act("look", "x"), act("bad"), reward=0.0),
        run(act("look", "y"), act("worse"), reward=0.0),
        run(act("guess"), success=False),
    )
    outcome = apply("pairs", store, rule="branches", min_gap=0.3)
    pairs = {row["context_up_to"]: row for row in rows_of(outcome)}
    assert sorted(pairs) == [1, 2]
    second = pairs[2]
    assert (second["chosen_id"], second["rejected_id"]) == ("d/r0", "d/r2")
    assert (second["chosen_score"], second["rejected_score"]) == (0.75, 0.0)
    assert (second["level"], second["chosen_to"]) == ("step", 3)
    first = pairs[1]
    assert first["chosen_score"] == pytest.approx((1 + 0.5 + 0 + 0) / 4)
    assert (first["chosen_id"], first["rejected_id"]) == ("d/r0", "d/r4")
    assert {row["seq"] for row in events_of(outcome)} == {0, 1000, 2000, 3000, 4000}
    assert reasons_of(outcome)[1000] == "its task has the most pairs already"


def test_what_is_compared(tmp_path):
    """A thought or a word beside a call parts nobody, unless every word counts."""
    store = store_of(
        tmp_path / "s",
        run(act("look", "x", reasoning="one", text="hm"), act("good"), reward=1.0),
        run(act("look", "x", reasoning="two"), act("bad"), reward=0.0),
    )
    (pair,) = rows_of(apply("pairs", store, rule="branches"))
    assert pair["context_up_to"] == 2
    (pair,) = rows_of(apply("pairs", store, rule="branches", compare="all"))
    assert pair["context_up_to"] == 1


def test_every_run_is_explained(tmp_path):
    other = {**ASK, "text": "another question"}
    store = store_of(
        tmp_path / "s",
        run(act("a"), reward=1.0),
        run(act("b"), reward=0.9),
        run(act("a"), reward=None),
        {"task_id": "t", "steps": [other, act("c")], "reward": 0.0},
        run(act("a"), task_id="alone", reward=1.0),
        {"task_id": None, "reward": 1.0, "steps": [{"text": "no question"}]},
        {"task_id": "t", "reward": 1.0},
    )
    outcome = apply("pairs", store, rule="branches")
    assert rows_of(outcome) == []
    fork = "no turn of the agent parts it from another scored attempt in the same state"
    assert reasons_of(outcome) == {
        0: "the gap of the values is too small",
        1000: "the gap of the values is too small",
        2000: "it has no score",
        3000: fork,
        4000: "no other attempt at its task",
        5000: "its task is not known",
        6000: fork,
    }
    assert outcome.summary["forks"] == 1


def test_the_cap_keeps_the_widest(tmp_path):
    runs = [run(act(f"tool{n}"), reward=n / 4) for n in range(5)]
    store = store_of(tmp_path / "s", *runs)
    outcome = apply("pairs", store, rule="branches", max_per_task=3)
    assert [row["margin"] for row in sorted(rows_of(outcome), key=lambda row: -row["margin"])] == [
        1.0, 0.75, 0.75,
    ]  # fmt: skip
    (result,) = rows_of(apply("pairs", store, rule="branches", min_gap=1.0))
    assert (result["chosen_id"], result["rejected_id"]) == ("d/r4", "d/r0")
