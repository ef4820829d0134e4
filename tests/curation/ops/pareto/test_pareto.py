"""Group-wise Pareto sampling over stores, against plain Python over the same runs."""

from __future__ import annotations

import json
import math
import random
import statistics

import polars as pl
import pytest

from adp.curation.apply import apply
from adp.curation.ops.pareto import NO_CONTRAST, NOT_CHOSEN, OP, Objective, Pareto
from adp_schema.errors import QueryError, RecipeError
from tests.curation.ops.pareto.test_fronts import slow_choose, slow_fronts
from tests.curation.small_stores import run, write_runs

REWARDS = [0.0, 1.0, 0.5, 0.75, None]


def described(count, rollouts, seed=3):
    """Runs of many tasks, in a mixed order."""
    draw = random.Random(seed)
    runs = []
    for number in range(count * rollouts):
        task = None if draw.random() < 0.05 else f"t{draw.randrange(count)}"
        runs.append(
            run(
                f"r{number}", calls=draw.randrange(4), text=f"do {number}",
                task_id=task, reward=draw.choice(REWARDS), success=draw.choice([True, False, None]),
                dataset=draw.choice(["math", "qa"]),
            )
        )  # fmt: skip
    return runs


def plain(runs):
    """Task -> (places, calls, correctness), by first rollout."""
    results = {}
    for place, result in enumerate(runs):
        columns = result["columns"]
        task = columns["task_id"]
        key = (columns["dataset"], task) if task is not None else place
        right = columns["reward"]
        if right is None and columns["success"] is not None:
            right = float(columns["success"])
        results.setdefault(key, []).append((place, result["calls"], right))
    return results


def variance(values):
    known = [value for value in values if value is not None]
    return float(statistics.pvariance(known)) if known else 0.0


@pytest.fixture(scope="module")
def runs():
    return described(40, 6)


@pytest.fixture(scope="module")
def store(runs, tmp_path_factory):
    return write_runs(tmp_path_factory.mktemp("pareto") / "s", runs, shards=3)


@pytest.mark.parametrize("count", [1, 12, 30, 1000])
@pytest.mark.parametrize("contrast", ["qa", "math", "none"])
def test_the_groups_of_the_definition_stay(runs, store, count, contrast):
    outcome = apply("pareto", store, count=count, contrast=contrast)
    groups = list(plain(runs).values())
    scores = [
        (variance([row[1] for row in group]), variance([row[2] for row in group]))
        for group in groups
    ]
    chosen, cut = slow_choose(scores, count)
    dropped = dict(zip(outcome.dropped["seq"], outcome.dropped["reason"], strict=True))
    evidence = dict(zip(outcome.dropped["seq"], outcome.dropped["evidence"], strict=True))
    columns = {row["seq"]: row for row in outcome.columns.to_dicts()}
    front_of = {p: n for n, front in enumerate(slow_fronts(scores)) for p in front}
    for place, group in enumerate(groups):
        right = [row[2] for row in group]
        known = [value for value in right if value is not None]
        good = {
            "math": 0 in right and 1 in right,
            "qa": any(v >= 0.75 for v in known) and any(v < 0.75 for v in known),
            "none": True,
        }[contrast]
        reason = NOT_CHOSEN if place not in chosen else None if good else NO_CONTRAST
        for rollout, _, _ in group:
            seq = rollout * 10
            assert dropped.get(seq) == reason
            column = columns[seq]
            assert column["group_size"] == len(group)
            assert column["pareto_front"] == front_of[place]
            assert column["pareto_distance"] == cut.get(place)
            assert (
                column["group_variance_tool_calls"],
                column["group_variance_correctness"],
            ) == pytest.approx(scores[place])
            assert column["group_mean_tool_calls"] == pytest.approx(
                statistics.mean(row[1] for row in group)
            )
            assert column["group_mean_correctness"] == (
                pytest.approx(statistics.mean(known)) if known else None
            )
            if reason:
                assert json.loads(evidence[seq])["front"] == front_of[place]
    assert outcome.summary["kept_rollouts"] + len(dropped) == len(runs)
    assert outcome.summary["groups"] == len(groups)


def test_success_counts_before_reward(runs, store):
    outcome = apply("pareto", store, k=[1, 3])
    columns = {row["seq"]: row for row in outcome.columns.to_dicts()}
    for group in plain(runs).values():
        solved = []
        for place, _, right in group:
            messages = runs[place]["columns"]["success"]
            solved.append(
                messages if messages is not None else None if right is None else right >= 0.75
            )
        known = [value for value in solved if value is not None]
        row = columns[group[0][0] * 10]
        assert (row["group_scored"], row["group_solved"]) == (len(known), sum(known))
        assert row["group_success_variance"] == pytest.approx(variance(map(float, known)))
        assert row["group_pass_at_1"] == (pytest.approx(sum(known) / len(known)) if known else None)
        assert (row["group_pass_at_3"] is None) == (len(known) < 3)


@pytest.mark.slow
def test_shards_order_and_workers_change_nothing(runs, store, tmp_path):
    shuffled = list(runs)
    random.Random(1).shuffle(shuffled)
    results = []
    for folder, rows, shards in (("one", runs, 1), ("two", shuffled, 4)):
        other = write_runs(tmp_path / folder, rows, shards)
        outcome = apply("pareto", other, count=20, workers=2)
        names = other.scan("trajectories").select("seq", "source_id").collect()
        rows = outcome.columns.join(names, on="seq").sort("source_id")
        results.append(rows.drop("seq", "source_id"))
    same = apply("pareto", store, count=20)
    assert results[0]["pareto_front"].to_list() == results[1]["pareto_front"].to_list()
    assert results[0].equals(
        same.columns.join(
            store.scan("trajectories").select("seq", "source_id").collect(), on="seq"
        ).sort("source_id").drop("seq", "source_id")
    )  # fmt: skip


def test_math_where_tells_the_rules_apart(tmp_path):
    runs = [
        run(f"{name}{number}", dataset=name, task_id="t", reward=reward, calls=number)
        for name in ("math", "qa")
        for number, reward in enumerate([1.0, 0.5])
    ]
    store = write_runs(tmp_path / "s", runs)
    outcome = apply("pareto", store, math_where="dataset = 'math'")
    assert outcome.dropped["seq"].to_list() == [0, 10]
    assert set(outcome.dropped["reason"]) == {NO_CONTRAST}
    with pytest.raises(QueryError):
        apply("pareto", store, math_where="dataset = ")
    with pytest.raises(RecipeError, match="needs contrast: qa"):
        apply("pareto", store, math_where="true", contrast="math")


def test_other_objectives_and_groups(tmp_path):
    runs = [run(f"r{n}", agent_model=f"m{n // 3}", reward=n / 9, text="x" * n) for n in range(9)]
    store = write_runs(tmp_path / "s", runs)
    outcome = apply(
        "pareto", store, by="agent_model", count=1, contrast="none",
        objectives=[{"column": "size", "of": "max", "smaller": True}],
    )  # fmt: skip
    assert outcome.dropped["seq"].to_list() == [30, 40, 50, 60, 70, 80]
    assert outcome.columns["group_max_size"].n_unique() == 3
    column = apply("pareto", store, by="agent_model", correctness="reward", tool_calls="size")
    assert (column.columns["group_mean_tool_calls"] > 0).all()


def test_what_has_no_group_is_a_group_of_its_own(tmp_path):
    models = [None, "m", None, "m"]
    runs = [run(f"r{n}", agent_model=model, reward=1.0) for n, model in enumerate(models)]
    outcome = apply("pareto", write_runs(tmp_path / "s", runs), by="agent_model", contrast="none")
    assert outcome.columns["group_size"].to_list() == [1, 2, 1, 2]
    assert outcome.summary["single"] == 2


def test_calls_of_the_user_do_not_count(tmp_path):
    runs = [run("a", calls=3, reward=1.0), run("b", calls=3, requestor="user"), run("c")]
    outcome = apply("pareto", write_runs(tmp_path / "s", runs), contrast="none")
    assert outcome.columns["group_size"].to_list() == [3, 3, 3]  # their first words are the same
    assert outcome.columns["group_mean_tool_calls"].to_list() == [1.0, 1.0, 1.0]


def test_all_columns_are_described(store):
    for options in ({}, {"k": [1, 2, 8], "objectives": [{"column": "rows", "of": "mean"}]}):
        checked = Pareto.model_validate(options)
        outcome = apply("pareto", store, **options)
        assert set(outcome.columns.columns) == {"seq", *OP.columns(checked)}


IMPOSSIBLE = {
    "needs the column nope": {"correctness": "nope"},
    "needs the column alas": {"objectives": [{"column": "alas"}]},
    "needs numbers, and dataset is none": {"correctness": "dataset"},
    "the same; leave one out": {"objectives": [{"column": "rows"}] * 2},
    "count: input should be greater": {"count": 0},
}


@pytest.mark.parametrize("sentence", IMPOSSIBLE)
def test_what_cannot_be_is_one_sentence(store, sentence):
    with pytest.raises(RecipeError, match=sentence) as caught:
        apply("pareto", store, **IMPOSSIBLE[sentence])
    assert "\n" not in str(caught.value)


def test_nobody_knows_what_is_right(tmp_path):
    store = write_runs(tmp_path / "s", [run("a", calls=1), run("b")])
    with pytest.raises(RecipeError, match="neither a reward nor a success"):
        apply("pareto", store)
    outcome = apply("pareto", store, contrast="none")
    assert outcome.dropped.is_empty()
    assert outcome.columns["group_pass_at_1"].to_list() == [None, None]


def test_strange_rewards_and_no_runs(tmp_path):
    runs = [run(str(n), reward=r, task_id="t") for n, r in enumerate([math.nan, math.inf, 1.0])]
    outcome = apply("pareto", write_runs(tmp_path / "s", runs), contrast="none")
    assert outcome.columns["group_scored"].to_list() == [1, 1, 1]
    nothing = apply("pareto", write_runs(tmp_path / "e", []))
    assert nothing.columns is None


def test_evidence_is_json_without_infinity(store):
    outcome = apply("pareto", store, count=1)
    messages = [
        json.loads(text, parse_constant=pytest.fail) for text in outcome.dropped["evidence"]
    ]
    assert any(row.get("distance") == "infinite" for row in messages)
    assert outcome.dropped.schema == {"seq": pl.Int64, "reason": pl.String, "evidence": pl.String}


def test_objectives_have_names_of_their_own():
    assert Objective(column="rows", of="min").column_name == "group_min_rows"


@pytest.mark.parametrize(("counts", "count"), [({"math": 5}, 9), ({"math": 0, "qa": 30}, 1)])
def test_groups_compete_within_their_source(runs, store, counts, count):
    outcome = apply("pareto", store, within="dataset", counts=counts, count=count, contrast="none")
    wanted = set()
    for source in ("math", "qa"):
        groups = [
            group
            for group in plain(runs).values()
            if runs[group[0][0]]["columns"]["dataset"] == source
        ]
        scores = [
            (variance([row[1] for row in group]), variance([row[2] for row in group]))
            for group in groups
        ]
        chosen, _ = slow_choose(scores, counts.get(source, count))
        wanted |= {rollout * 10 for place in chosen for rollout, _, _ in groups[place]}
    assert {row * 10 for row in range(len(runs))} - set(outcome.dropped["seq"]) == wanted


def test_rollouts_without_a_source_compete_with_each_other(tmp_path):
    runs = [
        run(f"r{n}", calls=n % 3, task_id=f"t{n // 3}", reward=1.0, dataset=None) for n in range(6)
    ]
    store = write_runs(tmp_path / "s", runs)
    outcome = apply("pareto", store, within="split", count=1, contrast="none")
    assert outcome.summary["kept"] == 1
    with pytest.raises(RecipeError, match="has a count for 'x', and no group has that as split"):
        apply("pareto", store, within="split", counts={"x": 1}, contrast="none")
    with pytest.raises(RecipeError, match="counts are by the values of within"):
        apply("pareto", store, counts={"x": 1})
