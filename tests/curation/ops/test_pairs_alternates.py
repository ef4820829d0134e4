"""Pairs of alternates, and M3's pairs: counted in the files of the runs, without the converter."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import adp
from adp.curation.apply import apply
from adp.curation.ops.pairs.alternates import Taken, by_actor, by_label, by_reward, m3_step
from adp.curation.ops.pairs.pair_candidates import PairSide
from adp_schema.errors import RecipeError
from tests.curation.ops.pair_checks import events_of, reasons_of, rows_of, same, store_of

TREES = Path(__file__).parents[2] / "converters" / "examples" / "trees.json"
RUNS = Path(__file__).parents[3].parent / "shared" / "data" / "m3" / "bird-dev-old"
shared = pytest.mark.skipif(not RUNS.exists(), reason="the reference data are not here")
NO_MATCH = "{REWARD_FINAL_ANSWER_NO_MATCH}"


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    out = str(tmp_path_factory.mktemp("runs") / "store")
    return adp.convert([str(RUNS)], out)


def turns() -> list[dict[str, Any]]:
    """All interactions with an alternate, from the files."""
    files = [json.loads(path.read_text()) for path in sorted(RUNS.rglob("trajectory_*.json"))]
    every = [turn for file in files for turn in file["interactions"].values()]
    return [turn for turn in every if turn["alternate_trace"]]


# ---- M3, steps -----------------------------------------------------------------------------


@shared
def test_one_pair_for_each_alternate_that_m3_admits(runs):
    outcome = apply("pairs", runs, rule="m3_step")
    pairs = rows_of(outcome)
    wanted: Counter[tuple[str, str]] = Counter()
    for turn in turns():
        other = turn["alternate_trace"][0]
        if turn["reward"] != NO_MATCH and turn["actor"] != other["actor"]:
            sides = (turn, other) if turn["actor"] == "expert" else (other, turn)
            wanted[sides[0]["output"]["content"], sides[1]["output"]["content"]] += 1
    assert sum(wanted.values()) == len(pairs) == 37
    steps = runs.scan("steps").select("trajectory_id", "step", "text", "actor").collect()
    output = {row[:2]: row[2:] for row in steps.iter_rows()}
    counts: Counter[tuple[str, str]] = Counter()
    for pair in pairs:
        chosen, actor = output[pair["chosen_id"], pair["chosen_from"]]
        rejected, other = output[pair["rejected_id"], pair["rejected_from"]]
        assert (actor, other) == ("expert", "agent")
        assert pair["chosen_from"] == pair["rejected_from"] == pair["context_up_to"]
        assert pair["context_id"] in (pair["chosen_id"], pair["rejected_id"])
        counts[chosen, rejected] += 1
    assert counts == wanted
    executed = sum(pair["context_id"] == pair["chosen_id"] for pair in pairs)
    assert executed == sum(turn["actor"] == "expert" for turn in turns()) == 13
    assert len(events_of(outcome)) == 37


@shared
def test_workers_make_no_difference(runs):
    for rule in ("m3_step", "branches", "format_corruption"):
        same(apply("pairs", runs, rule=rule, workers=1), apply("pairs", runs, rule=rule, workers=2))


def _taken(actor: str | None = None, labels: list[str] | None = None, reward: Any = None) -> Taken:
    return Taken(PairSide("x", 0, 1), actor, reward, labels or [])


@given(st.sampled_from(["agent", "expert", None, "x"]), st.sampled_from(["agent", "expert"]),
       st.lists(st.sampled_from([NO_MATCH[1:-1], "REWARD_AGENT_STUCK"]), unique=True))  # fmt: skip
def test_m3_step_as_written(actor, other, labels):
    """A11: not exactly NO_MATCH, actors differ, chosen is the expert's."""
    reward = "+".join(f"{{{label}}}" for label in labels)
    better, _ = m3_step(_taken(actor, labels), _taken(other))
    admitted = reward != NO_MATCH and actor != other and "expert" in (actor, other)
    assert (better is not None) == admitted
    if better is not None:
        assert (other if better else actor) == "expert"


def test_an_answer_that_does_not_match_is_not_paired(tmp_path):
    record = json.loads(TREES.read_text())
    turn = record["interactions"]["3"]
    turn["reward"] = NO_MATCH
    (tmp_path / "trees.json").write_text(json.dumps(record))
    store = adp.convert([str(tmp_path / "trees.json")], str(tmp_path / "s"))
    outcome = apply("pairs", store, rule="m3_step")
    (pair,) = rows_of(outcome)
    assert (pair["context_up_to"], pair["level"]) == (3, "step")
    scores = json.loads(pair["scores"])
    assert scores["rejected"]["labels"] == ["REWARD_BAD_TOOL_CALL", "REWARD_AGENT_STUCK"]
    assert list(reasons_of(outcome).values()) == ["the executed answer does not match"]


# ---- M3, runs ------------------------------------------------------------------------------


@shared
def test_no_pair_of_the_shared_runs_and_each_is_explained(runs):
    outcome = apply("pairs", runs, rule="m3_trajectory")
    assert rows_of(outcome) == []
    events = events_of(outcome)
    assert {row["seq"] for row in events} == set(
        runs.query("SELECT seq FROM trajectories").to_pydict()["seq"]
    )
    last: dict[int, dict[str, list[str]]] = {}
    for path in sorted(RUNS.rglob("trajectory_*.json")):
        number = path.stem.removeprefix("trajectory_")
        meta = json.loads((path.parent / "metadata" / f"metadata_{number}.json").read_text())
        turns = list(json.loads(path.read_text())["interactions"].values())
        sides = last.setdefault(meta["sample_id"], {"sft_expert": [], "dpo_agent": []})
        side = "sft_expert" if "sft_expert" in str(path) else "dpo_agent"
        sides[side].append(turns[-1]["reward"])
    wanted: Counter[str] = Counter()
    for sides in last.values():
        for chosen in sides["sft_expert"]:
            matches = chosen == "{REWARD_FINAL_ANSWER_MATCH}"
            wanted["rejected" if matches else "chosen"] += len(sides["dpo_agent"])
            assert set(sides["dpo_agent"]) == {"{REWARD_FINAL_ANSWER_MATCH}"}
    # Two runs of a side share the task 15, but not their tools.
    counts = Counter(row["reason"] for row in events)
    different = counts.pop("the two runs differ in system prompt, tools, policies or question", 0)
    assert sum(counts.values()) + different == 2 * sum(wanted.values())
    assert counts["the last reward of the chosen run is no match"] == 2 * wanted["chosen"] == 2
    assert outcome.lines[0] == (
        "no pairs by the rule m3_trajectory; the ledger says why of each candidate"
    )


def _m3_run(actor: str, labels: list[str], **more: Any) -> dict[str, Any]:
    prompt = {"source": "system", "kind": "message", "text": "be good"}
    ask = {"source": "user", "kind": "message", "text": "why?"}
    turn = {"actor": actor, "text": "so", "labels": labels}
    return {"task_id": "1", "steps": [prompt, ask, turn], **more}


MATCH = ["REWARD_FINAL_ANSWER_MATCH"]


@pytest.mark.parametrize(
    ("chosen", "rejected", "reason"),
    [
        (_m3_run("expert", MATCH), _m3_run("agent", ["REWARD_BAD_TOOL_CALL"]), None),
        (_m3_run("expert", MATCH), _m3_run("agent", [*MATCH, "REWARD_AGENT_STUCK"]), None),
        (_m3_run("expert", MATCH), _m3_run("agent", MATCH), "rejected run is a match"),
        (_m3_run("expert", [*MATCH, "X"]), _m3_run("agent", []), "chosen run is no match"),
        (_m3_run("expert", MATCH), _m3_run("agent", [], tools="[]"), "differ in system"),
        (_m3_run("expert", MATCH), _m3_run("agent", [], task_id="2"), "no run of its task"),
        (_m3_run("expert", MATCH), _m3_run("agent", [], task_id=None), "task is not known"),
        (_m3_run("expert", MATCH), {"task_id": "1"}, "neither side"),
    ],
)
def test_runs_of_two_agents(tmp_path, chosen, rejected, reason):
    outcome = apply("pairs", store_of(tmp_path / "s", chosen, rejected), rule="m3_trajectory")
    pairs = rows_of(outcome)
    if reason is None:
        (pair,) = pairs
        assert (pair["chosen_id"], pair["rejected_id"]) == ("d/r0", "d/r1")
        assert pair["chosen_mask"] == pair["rejected_mask"] == "mask_suboptimal_traces"
        assert (pair["context_up_to"], pair["chosen_from"], pair["chosen_to"]) == (2, 2, 3)
    else:
        assert pairs == []
        assert any(reason in why for why in reasons_of(outcome).values())
    assert {row["seq"] for row in events_of(outcome)} == {0, 1000}


@pytest.mark.parametrize("asks", ["why?", "How many?"])
def test_runs_of_two_data_sets(tmp_path, asks):
    """Two agents' runs at one task may be in two data sets; other data sets number tasks alike."""
    chosen, rejected = _m3_run("expert", MATCH), _m3_run("agent", [], dataset="e")
    asked = [step for step in rejected["steps"] if step.get("source") == "user"]
    same = asked[0]["text"] == asks
    asked[0]["text"] = asks
    outcome = apply("pairs", store_of(tmp_path / "s", chosen, rejected), rule="m3_trajectory")
    assert len(rows_of(outcome)) == same
    if not same:
        assert {tuple(row["evidence"]["differ"]) for row in events_of(outcome)} == {("question",)}


def test_sides_of_your_own(tmp_path):
    store = store_of(
        tmp_path / "s",
        _m3_run("agent", MATCH, agent_model="large"),
        _m3_run("agent", [], agent_model="small"),
        _m3_run("agent", [], agent_model="other"),
    )
    large, small = "agent_model = 'large'", "agent_model = 'small'"
    chosen = {"rule": "m3_trajectory", "chosen": large, "rejected": small}
    outcome = apply("pairs", store, mask_suboptimal_traces=False, **chosen)
    (pair,) = rows_of(outcome)
    assert (pair["chosen_id"], pair["chosen_mask"]) == ("d/r0", None)
    assert reasons_of(outcome) == {2000: "it belongs to neither side"}
    chosen["rejected"] = "true"
    outcome = apply("pairs", store, **chosen)
    assert reasons_of(outcome)[0] == "it belongs to both sides"


# ---- rules of your own ---------------------------------------------------------------------


def _alternates(tmp_path: Path):
    ask = {"source": "user", "kind": "message", "text": "why?"}
    steps = [ask, {"actor": "agent", "reward": 0.2, "labels": ["bad"], "text": "a"}]
    other = {"actor": "teacher", "reward": 0.5, "labels": ["good", "fine"], "text": "b"}
    branch = {"parent_step": 1, "branch_kind": "alternate"}
    run = {
        "steps": steps,
        "branches": [
            {**branch, "steps": [other]},
            {**branch, "steps": [{**other, "actor": None, "reward": None, "labels": None}]},
            {**branch, "steps": []},
            {**branch, "parent_step": 7, "steps": [other]},
            {**branch, "branch_kind": "revision", "steps": [other]},
        ],
    }
    return store_of(tmp_path / "s", run)


@pytest.mark.parametrize(
    ("options", "chosen", "missing"),
    [
        ({"actors": ["teacher", "agent"]}, "d/r0/b0", "an actor is not in the list"),
        ({"actors": ["agent", "teacher"]}, "d/r0", "an actor is not in the list"),
        ({"prefer": "reward"}, "d/r0/b0", "a side has no reward"),
        ({"prefer": "label", "labels": ["good", "fine", "bad"]}, "d/r0/b0", "a side has none of"),
        ({"prefer": "label", "labels": ["bad", "good"]}, "d/r0", "a side has none of the labels"),
    ],
)
def test_alternates_by_a_rule(tmp_path, options, chosen, missing):
    outcome = apply("pairs", _alternates(tmp_path), rule="alternates", **options)
    (pair,) = rows_of(outcome)
    assert pair["chosen_id"] == chosen
    reasons = sorted(row["reason"] for row in events_of(outcome) if row["verdict"] != "paired")
    assert len(reasons) == 3
    assert reasons[1:] == ["the alternate is empty", "the run has no such step"]
    assert reasons[0].startswith(missing)


def test_gaps_and_ties():
    assert by_reward(0.2)(_taken(reward=0.5), _taken(reward=0.25))[0] is False
    assert by_reward(0.3)(_taken(reward=0.5), _taken(reward=0.25))[0] is None
    assert by_reward(0.0)(_taken(reward=0.5), _taken(reward=0.5))[0] is None
    assert by_actor(("a", "b"))(_taken("a"), _taken("a"))[0] is None
    assert by_label(("a", "b"))(_taken(labels=["a", "b"]), _taken(labels=["a"]))[0] is True
    assert by_label(("a",))(_taken(labels=["a"]), _taken(labels=["a"]))[0] is None


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"rule": "best"}, "input should be"),
        ({}, "rule"),
        ({"rule": "m3_step", "min_gap": 1}, "m3_step does not take min_gap; it takes no options"),
        ({"rule": "ranked", "prefer": "reward"}, "it takes max_per_task, min_gap, score"),
        ({"rule": "alternates", "prefer": "label"}, "needs labels, the best one first"),
        ({"rule": "m3_trajectory", "chosen": "true"}, "give both chosen and rejected"),
        ({"rule": "ranked", "score": "beauty"}, "needs the column beauty"),
        ({"rule": "ranked", "score": "task"}, "the score of pairs must be numbers, and task is"),
        ({"rule": "format_corruption", "corruptions": []}, "corruptions"),
    ],
)
def test_wrong_options(tmp_path, options, sentence):
    store = store_of(tmp_path / "s", _m3_run("agent", []))
    with pytest.raises(RecipeError, match=sentence):
        apply("pairs", store, **options)


def test_two_stores_with_the_same_ids(tmp_path):
    first = _alternates(tmp_path / "a")
    second = _alternates(tmp_path / "b")
    outcome = apply("pairs", [first, second], rule="alternates", prefer="reward")
    chosen = [row["chosen_id"] for row in rows_of(outcome)]
    assert sorted(chosen) == ["d/r0/b0", "d/r0/b0#2"]
    assert {row["context_id"] for row in rows_of(outcome)} == {"d/r0", "d/r0#2"}
