"""Masks against a plain reading of the same runs."""

from __future__ import annotations

import json
import re
import shutil
from collections import defaultdict
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from adp.curation.apply import apply
from adp.curation.ops.mask import OP, Mask
from adp_schema.errors import QueryError, RecipeError
from adp_schema.store import Store
from tests.curation.ops.acted import SPACING, agent, call, result, runs, user, write
from tests.curation.pools import open_pool

POLICIES = ("errors", "history", "actor", "suboptimal", "copied_context", "repeated", "sql")
SQL = "steps.step < 2 AND pool.success"


def marks(folder: Path, guess: bool) -> dict[tuple[int, int], tuple[Any, ...]]:
    """The step columns of measure, which has an oracle of its own."""
    errors = "likely" if guess else "recorded"
    step_columns = apply(
        "measure", str(folder), only=["steps"], errors=errors, workers=1
    ).step_columns
    return {(seq // SPACING, step): tuple(rest) for seq, step, *rest in step_columns.iter_rows()}


def masked(run: dict[str, Any], number: int, flags: tuple[Any, ...]) -> set[str]:
    """Policies that mask a step of the agent."""
    step = run["steps"][number]
    later = [item for item in run["steps"][number + 1 :] if item["source"] == "agent"]
    labels = step.get("labels") or []
    tests = {
        "errors": bool(flags[0]) or flags[2],
        "history": bool(later),
        "actor": step.get("actor") != "expert",
        "suboptimal": any("REWARD_AGENT_STUCK" in label for label in labels),
        "copied_context": bool(step.get("is_copied_context")),
        "repeated": flags[1],
        "sql": number < 2 and bool(run.get("success")),
    }
    return {name for name, true in tests.items() if true}


def size(step: dict[str, Any]) -> int:
    texts = [step["text"], step.get("reasoning")]
    texts += [item.get("arguments") or item.get("arguments_raw") for item in step.get("calls", ())
              if item.get("requestor") != "user"]  # fmt: skip
    return sum(len(text.encode()) for text in texts if text)


@settings(
    max_examples=10,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    described=st.lists(runs, min_size=3, max_size=8),
    policy=st.lists(st.sampled_from(POLICIES), min_size=1, unique=True),
    weight=st.sampled_from([0.0, 0.25]),
    ours=st.sampled_from([0.0, 0.5, 2.0]),
    guess=st.booleans(),
)
@example(
    described=[{"steps": [agent("x", call("a", "{}", result("no", is_error=True)))] * 4}],
    policy=list(POLICIES), weight=0.25, ours=0.0, guess=False,
)  # fmt: skip
def test_masks_are_those_of_a_plain_reading(tmp_path, described, policy, weight, ours, guess):
    shutil.rmtree(tmp_path / "s", ignore_errors=True)
    write(tmp_path / "s", described)
    outcome = apply(
        "mask", str(tmp_path / "s"), policy=policy, weight=weight, weights={policy[0]: ours},
        sql=SQL if "sql" in policy else None, errors="likely" if guess else "recorded", workers=1,
    )  # fmt: skip
    flags = marks(tmp_path / "s", guess)
    weights, counts = {}, defaultdict(int)
    before = after = total = 0.0
    shares = {}
    for place, run in enumerate(described):
        own_total = own_after = 0.0
        for number, step in enumerate(run["steps"]):
            if step["source"] != "agent":
                continue
            hit = masked(run, number, flags[place, number]) & set(policy)
            for name in hit:
                counts[place, name] += 1
            if hit:
                weights[place, number] = min(ours if n == policy[0] else weight for n in hit)
            was = 0.0 if step.get("is_copied_context") else step.get("loss_weight", 1.0)
            own_total += size(step)
            before += size(step) * was
            own_after += size(step) * min(was, weights.get((place, number), was))
        total += own_total
        after += own_after
        shares[place] = own_after / own_total if own_total else None
    if outcome.weights is None:
        assert not any(step["source"] == "agent" for run in described for step in run["steps"])
        return
    values = {(seq // SPACING, step): value for seq, step, value in outcome.weights.iter_rows()}
    assert values == weights
    noted = {}
    for seq, evidence in outcome.events.select("seq", "evidence").iter_rows():
        figures = json.loads(evidence)
        noted[seq // SPACING, figures["policy"]] = figures["steps"]
    assert noted == dict(counts)
    assert set(outcome.events["verdict"]) <= {"masked"}
    assert outcome.summary["text_bytes"] == total
    assert outcome.summary["trained_bytes"] == pytest.approx(after, abs=0.001)
    assert outcome.summary["trained_bytes_before"] == pytest.approx(before, abs=0.001)
    for seq, share in outcome.columns.select("seq", "trained_share").iter_rows():
        assert share == pytest.approx(shares[seq // SPACING])


def test_weights_of_earlier_ops_count_in_what_stays_trained(tmp_path):
    store = write(tmp_path / "s", [{"steps": [user(), agent("a" * 10), agent("b" * 10)]}])
    with open_pool(tmp_path / "p", store) as pool:
        types = {"seq": pl.Int64, "step": pl.Int32, "loss_weight": pl.Float64}
        pool.weights = pl.DataFrame([(0, 1, 0.5)], schema=types, orient="row")
        outcome = OP.run(pool, Mask(policy=["actor"], weight=0.75, actors=["nobody"]))
    assert outcome.summary["trained_bytes_before"] == 15
    assert outcome.summary["trained_bytes"] == 12.5
    assert "62.5% of what the agent wrote stays trained, 75.0% before" in outcome.lines[1]


def test_step_columns_of_earlier_ops_can_be_asked(tmp_path):
    store = write(tmp_path / "s", [{"steps": [user(), agent("a"), agent("b")]}])
    with open_pool(tmp_path / "p", store) as pool:
        types = {"seq": pl.Int64, "step": pl.Int32, "doubt": pl.Float64}
        pool.steps = pl.DataFrame([(0, 2, 0.9)], schema=types, orient="row")
        outcome = OP.run(pool, Mask(policy=["sql"], sql="doubt > 0.5"))
    assert outcome.weights.to_dicts() == [{"seq": 0, "step": 2, "loss_weight": 0.0}]


def test_only_steps_of_the_agent_are_weighed(tmp_path):
    store = write(tmp_path / "s", [{"steps": [user(), agent("a"), user("b")]}])
    outcome = apply("mask", store, policy=["sql", "actor"], sql="true", workers=1)
    assert outcome.weights["step"].to_list() == [1]
    assert outcome.lines[-1] == "of 1 trajectories nothing stays trained"


def test_nothing_known_about_errors_is_told(tmp_path):
    steps = [user(), agent("x", call("a", "{}", result("Error: no"))), agent("done")]
    store = write(tmp_path / "s", [{"steps": steps}])
    outcome = apply("mask", store, policy=["errors"], workers=1)
    assert outcome.weights.height == 0
    assert "with errors: likely" in outcome.lines[-1]
    outcome = apply("mask", store, policy=["errors"], errors="likely", workers=1)
    assert outcome.weights["step"].to_list() == [1]


def test_an_empty_pool(tmp_path):
    outcome = apply("mask", write(tmp_path / "s", []), policy=["errors"], workers=1)
    assert outcome.weights is None


@pytest.mark.slow
@pytest.mark.parametrize("shards", [2, 3])
def test_the_outcome_does_not_depend_on_the_cut(tmp_path, monkeypatch, shards):
    described = [
        {"steps": [user(), *[agent("x" * n, call("a", "{}", result("Error: y")))] * 4]}
        for n in range(1, 12)
    ]
    options = {"policy": ["errors", "repeated", "history"], "errors": "likely", "workers": 1}
    whole = apply("mask", write(tmp_path / "a", described), **options)
    monkeypatch.setattr("adp.curation.partitions.PARTITION_BYTES", 2_000)
    cut = apply("mask", write(tmp_path / "b", described, shards), **options)
    assert whole.weights.equals(cut.weights)
    assert whole.events.equals(cut.events)
    assert whole.columns.equals(cut.columns)
    assert whole.summary == cut.summary


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"policy": ["sql"]}, "belong together"),
        ({"policy": ["errors"], "sql": "true"}, "belong together"),
        ({"policy": ["errors"], "weights": {"history": 1}}, "which policy does not list"),
        ({"policy": ["errors"], "weights": {"errors": -1}}, "below 0"),
        ({"policy": []}, "policy"),
        ({"policy": ["eros"]}, "policy"),
        ({"policy": ["errors"], "weight": -1}, "weight"),
    ],
)
def test_wrong_options_are_told(tmp_path, options, message):
    with pytest.raises(RecipeError, match=re.escape(message)):
        apply("mask", write(tmp_path / "s", [{"steps": []}]), workers=1, **options)


def test_a_column_of_two_views_must_be_named(tmp_path):
    store = write(tmp_path / "s", [{"steps": [agent("x")]}])
    with pytest.raises(QueryError, match=r"steps\.reward"):
        apply("mask", store, policy=["sql"], sql="reward > 0", workers=1)


DATA = Path(__file__).parents[4] / "shared" / "data"
M3 = DATA / "m3" / "bird-dev-old" / "dpo_agent_informed_assist"


@pytest.mark.skipif(not M3.exists(), reason="needs the shared samples of M3")
def test_m3_actor_and_suboptimal_are_those_of_the_labels(tmp_path):
    from adp.converters.run import ConvertOptions, convert

    convert([str(M3)], str(tmp_path / "s"), options=ConvertOptions(format="m3", workers=1))
    store = str(tmp_path / "s")
    with open_pool(tmp_path / "p", Store.open(store)) as pool:
        steps = pool.query(
            "SELECT seq, step, actor, labels FROM steps SEMI JOIN members USING (seq) "
            "WHERE source = 'agent'"
        ).to_dicts()
        actor = OP.run(pool, Mask(policy=["actor"])).weights
    wrong = (
        *("PARSING_ERROR", "BAD_TOOL_CALL", "ERROR_NO_CATEGORY", "AGENT_STUCK"),
        "FINAL_ANSWER_NO_MATCH",
    )
    assert set(actor.select("seq", "step").iter_rows()) == {
        (row["seq"], row["step"]) for row in steps if row["actor"] != "expert"
    }
    weights = apply("mask", store, policy=["suboptimal"], workers=1).weights
    assert weights.height > 0
    assert set(weights.select("seq", "step").iter_rows()) == {
        (row["seq"], row["step"])
        for row in steps
        if any(item in label for label in row["labels"] or () for item in wrong)
    }
