"""M3's figures, of its own runs and of rollouts, against a slow reference over the raw files."""

from __future__ import annotations

import json
import statistics
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import adp
from adp.eval.scorer import Item, Scored
from adp.eval.scorers.m3 import KIND, M3Scorer, M3ScorerSettings
from adp.rollouts.collecting.limits import Limits
from adp.rollouts.turns import Turn
from adp_schema.model import Observation, Step, ToolCall, Trajectory
from adp_schema.store import Store
from tests.rollouts.collecting.worlds import acts, look, play

RUNS = Path(__file__).parents[3].parent / "shared" / "data" / "m3" / "bird-dev-old"
shared = pytest.mark.skipif(not RUNS.exists(), reason="the reference data are not here")


def scored(runs, **settings):
    """All rows of the scorer, and its figures by name."""
    scorer = KIND.make(M3ScorerSettings(**settings))
    rows = [
        Scored(run.trajectory_id, run.task_id, run.attempt, score)
        for run in runs
        for score in scorer.score(Item(run, run.task))
    ]
    return rows, {figure.name: figure for figure in scorer.figures(rows)}


def values(run, **settings):
    rows, _ = scored([run], **settings)
    return {row.score.metric: row.score.value for row in rows}


# ---- the shared runs -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return adp.convert([str(RUNS)], str(tmp_path_factory.mktemp("m3") / "s"))


def runs_of(store: Store):
    scan = store.scan("trajectories").select("trajectory_id", "branch_kind").collect()
    for name, kind in scan.iter_rows():
        if kind is None:
            yield store.get(name)


def raw_runs(agent=None):
    """Steps and metadata of each run, as the files have them."""
    for path in sorted(RUNS.rglob("trajectory_*.json")):
        if agent in (None, path.parts[-3]):
            number = path.stem.removeprefix("trajectory_")
            meta = json.loads((path.parent / "metadata" / f"metadata_{number}.json").read_text())
            yield list(json.loads(path.read_text())["interactions"].values()), meta


VALID = ("SUCCESS_API_CALL", "SUCCESS_RETRIEVAL_CALL", "ANSWER_MATCH", "ANSWER_NO_MATCH")


def slow(agent, valid):
    """A12 as it is written, over the raw files."""
    every = list(raw_runs(agent))
    out = {"run_length": statistics.fmean(len(steps) for steps, _ in every)}
    for name, key in (("completion", "success"), ("truncation", "truncated"),
                      ("termination", "terminated")):  # fmt: skip
        out[name] = statistics.fmean(meta[key] for _, meta in every)
    profile = Counter()
    for steps, _ in every:
        for step in steps:
            head = step["metadata"]["observation"].split(":")[0]
            if "error" in head.lower():
                profile[f"errors:prefix:{head}"] += 1
    out |= profile
    for ending, some in (
        ("", every),
        (":successful", [item for item in every if item[1]["success"]]),
    ):
        for kind in ("API", "RETRIEVE", "FINAL", "OTHER"):
            counts = [
                sum((step["metadata"]["action"] or "OTHER") == kind for step in steps)
                for steps, _ in some
            ]
            out[f"actions_{kind.lower()}{ending}"] = statistics.fmean(counts)
            out[f"actions_{kind.lower()}:std{ending}"] = statistics.pstdev(counts)
        in_order = []
        for steps, _ in some:
            kinds = [step["metadata"]["action"] for step in steps]
            calls = [kind for kind in kinds if kind in ("API", "RETRIEVE")]
            in_order.append(set(calls) == {"API", "RETRIEVE"} and calls == sorted(calls))
        out[f"scenario_followed{ending}"] = statistics.fmean(in_order)
        lengths = []
        for steps, _ in some:
            good = [any(name in step["reward"] for name in valid) for step in steps]
            marks = "".join("v" if item else "x" for item in good)
            lengths += [len(part) for part in marks.split("v")[:-1] if part]
        out[f"recovered{ending}"] = len(lengths)
        if lengths:
            out[f"steps_to_recover{ending}"] = statistics.fmean(lengths)
            out[f"steps_to_recover:std{ending}"] = statistics.pstdev(lengths)
    trackers = [meta["expert_assistance"]["tracker"] for _, meta in every]
    helped = [tracker.index(1) for tracker in trackers if 1 in tracker]
    out["first_help"] = statistics.fmean(helped)
    out["helps"] = statistics.fmean(map(sum, trackers))
    stretches = []
    for tracker in trackers:
        ends = [-1, *(n for n, result in enumerate([*tracker, 1]) if result)]
        stretches += [right - left - 1 for left, right in pairwise(ends) if right - left > 1]
    if stretches:
        out["unaided_stretch"] = statistics.fmean(stretches)
    return out


@shared
@pytest.mark.parametrize("agent", ["sft_expert", "dpo_agent_informed_assist", None])
@pytest.mark.parametrize("m3_recovery", [False, True])
def test_the_shared_runs_give_m3_s_figures(store, agent, m3_recovery):
    runs = [run for run in runs_of(store) if agent is None or run.dataset == agent]
    rows, figures = scored(runs, m3_recovery=m3_recovery)
    wanted = slow(agent, VALID if m3_recovery else (*VALID, "SUCCESS_TOOL_CALL"))
    assert len(runs) == len(list(raw_runs(agent))) >= 9
    counted = [row.score for row in rows if row.score.metric == "recoveries"]
    assert sum(score.value for score in counted) == wanted.pop("recovered")
    wanted.pop("recovered:successful")
    for name, value in wanted.items():
        assert figures[name].value == pytest.approx(value), name
    names = {name for name in figures if name.startswith("errors:prefix:")}
    assert names == {name for name in wanted if name.startswith("errors:prefix:")}
    for name in set(figures) - set(wanted):
        if "stretch" not in name and "steps_to" not in name:
            assert name.startswith(("errors", "unaided", "recover")), name
    if agent != "sft_expert":
        assert figures["recoveries"].value > 0
        assert figures["errors:prefix:ToolCallError"].value > 0
        assert figures["errors:prefix:ToolCallError"].value == (
            figures["errors:type:ToolCallError"].value
        )
    # The mean stands with an interval that is clustered by task: task 15 has two runs.
    assert figures["run_length"].tasks == len({run.task_id for run in runs})


@shared
def test_the_interval_of_a_figure_holds_it(store):
    _, figures = scored(list(runs_of(store)))
    for figure in figures.values():
        if figure.low is not None:
            assert figure.low <= figure.value <= figure.high


# ---- rollouts ------------------------------------------------------------------------------


def test_a_rollout_has_the_same_figures():
    run = play([look("a"), look("x"), look("x"), look("x"), Turn(text="?")] * 2)
    result = values(run)
    # a: good, bad, bad and stuck; e: b; instead of an answer e: c; a: good, bad, bad; e: the answer
    assert acts(run) == [
        *("a:look a", "a:look x", "a:look x", "e:look b", "e:look c"),
        *("a:look a", "a:look x", "a:look x", "e:=d"),
    ]
    assert (result["run_length"], result["first_help"], result["helps"]) == (9, 3, 3)
    assert (result["unaided_steps"], result["unaided_stretches"], result["errors"]) == (6, 2, 4)
    assert (result["completion"], result["termination"], result["truncation"]) == (1, 1, 0)
    assert (result["recoveries"], result["recovery_steps"]) == (2, 4)
    assert (result["actions_api"], result["actions_final"]) == (8, 1)
    assert result["scenario_followed"] is None


def test_what_is_not_known_is_not_scored():
    alone = Trajectory(trajectory_id="a", steps=[_step([])])
    result, _ = scored([alone])
    reasons = {row.score.metric: row.score.reason for row in result if row.score.value is None}
    assert set(reasons) == {
        *("completion", "truncation", "termination", "scenario_followed"),
        *("first_help", "helps", "unaided_steps", "unaided_stretches"),
    }
    assert all(reasons.values())
    broken = play([look("a")]).model_copy(update={"error_type": "infrastructure"})
    rows, figures = scored([broken, alone])
    assert all(row.score.infrastructure for row in rows if row.trajectory_id != "a")
    assert figures["run_length"].count == figures["run_length"].infrastructure == 1
    branch = play([look("x")] * 2, limits=Limits(max_turns=1)).branches[0]
    assert set(values(branch).values()) == {None}
    assert set(values(Trajectory(trajectory_id="n")).values()) == {None}


def test_what_was_copied_is_no_action():
    steps = [_step([False]), _step([True], is_copied_context=True), _step([True], synthetic=True)]
    result = values(Trajectory(trajectory_id="t", steps=steps))
    assert (result["run_length"], result["errors"]) == (1, 0)


def _step(errors, **columns):
    calls = [ToolCall(call=n, name="look", arguments="{}") for n in range(len(errors))]
    seen = [Observation(text="?", is_error=error) for error in errors]
    return Step(source="agent", kind="llm_turn", calls=calls, observations=seen, **columns)


@given(st.lists(st.sampled_from(["bad", "good", "stuck", "final", "none"]), max_size=8))
def test_recoveries_of_steps_with_and_without_labels(sorts):
    labels = {
        "bad": ["REWARD_BAD_TOOL_CALL"],
        "good": ["REWARD_SUCCESS_TOOL_CALL"],
        "stuck": ["REWARD_SUCCESS_TOOL_CALL", "REWARD_AGENT_STUCK"],
        "final": ["REWARD_FINAL_ANSWER_NO_MATCH"],
        "none": ["REWARD_NO_PENALTY"],
    }
    errors = {"bad": [True], "good": [False], "stuck": [False], "final": [], "none": [True]}
    marks = "".join("x" if sort in ("bad", "none") else "v" for sort in sorts)
    lengths = [len(part) for part in marks.split("v")[:-1] if part]
    for labelled in (True, False):
        steps = [_step(errors[sort], labels=labels[sort] if labelled else None) for sort in sorts]
        rows, _ = scored([Trajectory(trajectory_id="t", steps=steps)])
        results = {row.score.metric: row.score for row in rows}
        if sorts:
            assert results["recoveries"].evidence["lengths"] == lengths


@pytest.mark.parametrize(
    ("columns", "scenario"),
    [
        ({"extra": '{"scenario": "only_rag-rag_before_api"}'}, "only_rag-rag_before_api"),
        ({"source_id": "x/both_api_rag-api_before_rag/t_1"}, "both_api_rag-api_before_rag"),
        ({"source_id": "only_api", "policy_tool_availability": "only_rag"}, "only_rag"),
        ({"dataset": "both_api_rag-rag_before_api"}, "both_api_rag-rag_before_api"),
        ({"extra": "[1", "source_id": None}, None),
    ],
)
def test_where_the_scenario_stands(columns, scenario):
    run = Trajectory(trajectory_id="t", steps=[_step([False])], **columns)
    rows, _ = scored([run])
    (score,) = [row.score for row in rows if row.score.metric == "scenario_followed"]
    assert score.evidence.get("scenario") == scenario
    assert values(run, scenario="api_only")["scenario_followed"] == 1


@pytest.mark.parametrize(
    "extra", ["null", "[", '{"run_metadata": 1}', '{"run_metadata": {"expert_assistance": []}}',
              '{"run_metadata": {"expert_assistance": {"tracker": [0, true]}}}']
)  # fmt: skip
def test_odd_extras_are_no_trackers(extra):
    run = Trajectory(trajectory_id="t", steps=[_step([False], extra=extra)], extra=extra)
    assert values(run)["helps"] is None
    steps = [_step([False], actor="agent"), _step([False], actor="expert")]
    run = Trajectory(trajectory_id="t", steps=steps, extra=extra)
    assert (values(run)["helps"], values(run)["first_help"]) == (1, 1)


def test_the_names_of_metrics_are_those_it_scores():
    run = play([look("a")], limits=Limits(max_turns=2))
    assert tuple(values(run)) == M3Scorer.metrics


def test_counts_that_happen_to_be_0_or_1_are_no_shares():
    """Every run has one answer and no error: that is an amount, without Wilson's interval."""
    result = play([look("a"), Turn(text="c")], mode="none")
    names = [{"task_id": name, "trajectory_id": name} for name in "abcd"]
    runs = [result.model_copy(update=name | {"success": True}) for name in names]
    _, figures = scored(runs)
    final = figures["actions_final"]
    assert (final.value, final.low, final.high) == (1.0, None, None)
    assert final.reason == "no interval: the tasks do not differ"
    for name in ("actions_final", "errors", "run_length", "actions_final:successful", "helps"):
        assert figures[name].method != "wilson", name
    shares = {name for name, figure in figures.items() if not figure.amount}
    assert shares == {
        "completion", "truncation", "termination", "scenario_followed",
        "scenario_followed:successful",
    }  # fmt: skip
    assert figures["completion"].method == "wilson"
