"""Rules and presets against plain readings, and what a rule says of each trajectory."""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter, defaultdict
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from adp.curation.apply import apply
from adp.curation.ops.filter.toucan import ERRORS
from adp_schema.errors import QueryError, RecipeError
from tests.curation.ops.acted import SPACING, agent, call, result, runs, user, write

default_settings = settings(
    max_examples=5,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
several = st.lists(runs, min_size=6, max_size=14)


def reasons(folder, described, **options) -> dict[int, str]:
    """Place of a run that goes -> reason."""
    shutil.rmtree(folder, ignore_errors=True)
    outcome = apply("filter", write(folder, described), workers=1, **options)
    results = {row["seq"] // SPACING: row["reason"] for row in outcome.dropped.to_dicts()}
    assert len(results) == outcome.dropped.height
    for row in outcome.dropped.to_dicts():
        assert isinstance(json.loads(row["evidence"]), dict)
    assert outcome.summary["kept"] == len(described) - len(results)
    assert outcome.summary["reasons"] == dict(Counter(results.values()))
    return results


def agents(run: dict[str, Any]) -> list[dict[str, Any]]:
    return [step for step in run["steps"] if step["source"] == "agent"]


# ---- plain rules -------------------------------------------------------------------------------


@default_settings
@given(described=several)
def test_sql_tells_false_from_null(tmp_path, described):
    entry = reasons(tmp_path / "s", described, sql="reward > 0")
    for place, run in enumerate(described):
        reward = run.get("reward")
        wanted = "the condition is null" if reward is None else "the condition is not met"
        assert entry.get(place) == (None if reward is not None and reward > 0 else wanted)


@default_settings
@given(described=several, unknown=st.sampled_from(["keep", "drop"]))
def test_limits(tmp_path, described, unknown):
    entry = reasons(
        tmp_path / "s", described, min={"reward": 0}, max={"reward": 0.5}, unknown=unknown
    )
    for place, run in enumerate(described):
        reward = run.get("reward")
        if reward is None:
            wanted = "reward is unknown" if unknown == "drop" else None
        else:
            wanted = "reward is below the limit" if reward < 0 else None
            wanted = "reward is above the limit" if reward > 0.5 else wanted
        assert entry.get(place) == wanted


@default_settings
@given(described=several, unknown=st.sampled_from(["keep", "drop"]))
def test_success(tmp_path, described, unknown):
    entry = reasons(tmp_path / "s", described, preset="success", unknown=unknown)
    unsure = "success is unknown" if unknown == "drop" else None
    wanted = {True: None, False: "the task was not solved", None: unsure}
    for place, run in enumerate(described):
        assert entry.get(place) == wanted[run.get("success")]


@default_settings
@given(described=several, fewest=st.none() | st.integers(0, 2))
def test_actor(tmp_path, described, fewest):
    options = {} if fewest is None else {"min_steps": fewest}
    entry = reasons(tmp_path / "s", described, preset="actor", actor="expert", **options)
    for place, run in enumerate(described):
        made = sum(step.get("actor") == "expert" for step in agents(run))
        stays = made >= fewest if fewest is not None else made == len(agents(run)) > 0
        assert (place not in entry) == stays
        if not stays:
            assert (entry[place] == "no step of the actor") == (made == 0)


@default_settings
@given(described=several, most=st.integers(1, 2))
def test_the_cap_counts_what_other_rules_leave(tmp_path, described, most):
    entry = reasons(
        tmp_path / "s", described, sql="reward IS NULL OR reward >= 0", per_task_cap=most
    )
    left = [place for place, run in enumerate(described) if run.get("reward", 0) >= 0]
    tasks = defaultdict(list)
    for place in left:
        if "task_id" in described[place]:
            tasks[described[place]["task_id"]].append(place)
    for members in tasks.values():

        def rank(place):
            reward = described[place].get("reward")
            rows = sum(
                1
                + len(s.get("calls", ()))
                + len(s.get("seen", ()))
                + sum(len(c["results"]) for c in s.get("calls", ()))
                for s in described[place]["steps"]
            )
            rows += len(described[place].get("early", ()))
            return (reward is None, -(reward or 0), rows, place)

        members.sort(key=rank)
        for index, place in enumerate(members):
            assert (place in entry) == (index >= most)
            assert entry.get(place) in (None, "over the cap of its task")


def test_the_order_of_a_cap_can_be_chosen(tmp_path):
    described = [{"steps": [user("x" * size)], "task_id": "t"} for size in (3, 1, 2, 1)]
    assert sorted(reasons(tmp_path / "a", described, per_task_cap=1, order=["size"])) == [0, 2, 3]
    assert sorted(reasons(tmp_path / "b", described, per_task_cap=2, order=["size desc"])) == [1, 3]


def test_a_trajectory_without_a_task_is_not_capped(tmp_path):
    described = [{"steps": [agent("x")]}] * 3
    assert not reasons(tmp_path / "s", described, per_task_cap=1)


def test_evidence_shows_the_figures_of_the_condition(tmp_path):
    store = write(tmp_path / "s", [{"steps": [user("hi")], "reward": 0.25}])
    row = apply("filter", store, sql="reward > 0.5 AND rows < 3", workers=1).dropped.row(
        0, named=True
    )
    assert json.loads(row["evidence"]) == {
        "sql": "reward > 0.5 AND rows < 3", "reward": 0.25, "rows": 1,
    }  # fmt: skip


# ---- SAGE --------------------------------------------------------------------------------------


def sage(run: dict[str, Any], rules: dict[str, Any]) -> bool:
    """SAGE's conditions; what is unknown does not pass."""
    names = {
        item["name"] for step in run["steps"] for item in step.get("calls", ())
        if item["name"] is not None and item.get("requestor") != "user"
    }  # fmt: skip
    reward, steps = run.get("reward"), len(agents(run))
    if reward is None or reward < rules["min_reward"]:
        return False
    if rules["require_success"] and not run.get("success"):
        return False
    if steps < rules["min_steps"] or (
        rules["max_steps"] is not None and steps > rules["max_steps"]
    ):
        return False
    if len(names - {"finish", "error"}) < rules["min_tool_usage"]:
        return False
    return not names & set(rules["exclude_actions"])


CODE = {
    "min_reward": 0.0, "require_success": True, "min_steps": 1, "max_steps": None,
    "min_tool_usage": 1, "exclude_actions": (),
}  # fmt: skip
DOC = {**CODE, "min_reward": 0.5, "min_steps": 0, "min_tool_usage": 0}


FINISHED = {
    "steps": [user(), agent("x", call("finish", "{}"), call("a", "{}"))],
    "success": True,
    "reward": 1.0,
}


@default_settings
@given(
    described=several,
    preset=st.sampled_from(["sage", "sage_doc"]),
    given_=st.fixed_dictionaries(
        {},
        optional={
            "min_reward": st.sampled_from([-2.0, 0.4]), "require_success": st.just(False),
            "min_steps": st.integers(0, 3), "max_steps": st.integers(0, 4),
            "min_tool_usage": st.integers(0, 2), "exclude_actions": st.just(("b",)),
        },
    ),
)  # fmt: skip
@example(described=[], preset="sage", given_={"min_tool_usage": 2})
@example(described=[], preset="sage", given_={"exclude_actions": ("finish",)})
@example(described=[], preset="sage_doc", given_={})
def test_sage(tmp_path, described, preset, given_):
    described = [*described, FINISHED]
    rules = {**(CODE if preset == "sage" else DOC), **given_}
    entry = reasons(tmp_path / "s", described, preset=preset, **given_)
    assert [place not in entry for place in range(len(described))] == [
        sage(run, rules) for run in described
    ]


# ---- Toucan ------------------------------------------------------------------------------------


def toucan(run: dict[str, Any], later: bool) -> str | None:
    """The six rules over the messages of a run, in order."""
    messages: list[tuple[str, str, bool]] = []
    for step in run["steps"]:
        calls = [item for item in step.get("calls", ()) if item.get("requestor") != "user"]
        messages.append((step["source"], step["text"] or "", bool(calls)))
        answers = [row for item in step.get("calls", ()) for row in item["results"]]
        messages += [
            ("tool", row["text"] or "", False) for row in [*answers, *step.get("seen", ())]
        ]
    if not any(who == "system" for who, *_ in messages):
        return "no system prompt"
    if not any(called for *_, called in messages):
        return "no tool call"
    multi = sum(who == "user" for who, *_ in messages) > 1 and later
    turns, good, there = 0, False, False
    for who, text, _ in messages:
        turns += who == "user"
        if who == "tool" and (turns >= 2 or not multi):
            there = True
            good |= bool(text) and not any(re.search(item, text, re.I) for item in ERRORS)
    if there and not good:
        return "no good result"
    texts = [text for who, text, _ in messages if who == "agent"]
    if any("[error" in text.lower() for text in texts):
        return "an error in the agent's text"
    if messages[-1][0] == "agent" and not messages[-1][1].strip():
        return "the last message is empty"
    return "a run of exclamation marks" if any("!" * 12 in text for text in texts) else None


def prompted(run: dict[str, Any]) -> dict[str, Any]:
    steps = [{"source": "system", "kind": "message", "text": "you are"}, *run["steps"]]
    return {**run, "steps": [*steps, agent("x", call("a", "{}"))]}


PLANTED = [
    {"steps": [user(), agent("x", call("a", "{}", result("fine"))), agent("done")]},
    {"steps": [agent("[Error] no")]},
    {"steps": [agent("wow" + "!" * 12)]},
    {"steps": [agent("wow" + "!" * 11)]},
    {"steps": [user(), agent("x", call("a", "{}", result("Not Found"))), user(), agent("")]},
    {"steps": [user(), agent("x", call("a", "{}", result("good"))), user(seen=[result("failed")]),
               agent("done")]},
    {"steps": [user(), agent("x", call("a", "{}", result("good"))), user(),
               agent("x", call("a", "{}", result("it failed")))]},
]  # fmt: skip


@default_settings
@given(described=several, later=st.booleans())
def test_toucan(tmp_path, described, later):
    described = [*described, *map(prompted, described), *PLANTED, *map(prompted, PLANTED)]
    described.append({"steps": [*prompted(PLANTED[0])["steps"], agent(" ")]})
    entry = reasons(tmp_path / "s", described, preset="toucan", later_turns=later)
    wanted = {place: toucan(run, later) for place, run in enumerate(described)}
    assert entry == {place: why for place, why in wanted.items() if why}
    kinds = {"no system prompt", "no tool call", "an error in the agent's text",
             "a run of exclamation marks", "the last message is empty"}  # fmt: skip
    assert kinds - {"no tool call"} <= set(wanted.values())


# ---- ET-Agent ----------------------------------------------------------------------------------

ANSWERED = "<think>a</think><python>c</python><result>d</result>\n<answer>\\boxed{1}</answer>"
IN_STEPS = [
    user(),
    agent("<think>a</think> <search>q</search>", seen=[result("r")]),
    agent("<think>b</think> <python>c</python>", seen=[result("<result>d</result>")]),
    agent("<answer>\\boxed{1}</answer>"),
]
APART = [
    user(),
    agent(None, call("web_search", '{"query": "q"}', result("r")), reasoning="a"),
    agent(None, {**call("python", None, result("d")), "kind": "code", "arguments_raw": "1"}),
    agent("It is \\boxed{1}", reasoning="b"),
]


@pytest.mark.parametrize("preset", ["et_agent_v1", "et_agent_v2"])
@pytest.mark.parametrize("steps", [[user(), agent(ANSWERED)], IN_STEPS, APART])
def test_valid_trajectories_of_every_form(tmp_path, preset, steps):
    assert not reasons(tmp_path / "s", [{"steps": steps}], preset=preset)


@pytest.mark.parametrize(
    ("steps", "wrong"),
    [
        ([user(), agent("plain")], "think tags are missing or do not match"),
        ([], "think tags are missing or do not match"),
        (IN_STEPS[:-1], "there is not exactly one answer"),
        ([user(), {**IN_STEPS[1], "seen": []}, IN_STEPS[3]], "a tool call without its result"),
        ([*APART[:3], agent("It is 1", reasoning="b")], "the answer has no box"),
        ([{**APART[1], "calls": [call("search", '{"q": "x"}')]}, APART[3]],
         "a tool call without its result"),
    ],
)  # fmt: skip
def test_what_is_wrong(tmp_path, steps, wrong):
    assert reasons(tmp_path / "s", [{"steps": steps}], preset="et_agent_v1") == {0: wrong}


def test_a_repair_writes_the_steps_that_changed(tmp_path):
    steps = [
        user(),
        agent("a <python>c</python>", seen=[result("d")]),
        agent("b\n\\boxed{1}"),
    ]
    store = write(tmp_path / "s", [{"steps": steps}, {"steps": [user(), agent(ANSWERED)]},
                                   {"steps": [user(), agent("nothing")]}])  # fmt: skip
    outcome = apply("filter", store, preset="et_agent_v2", repair=True, workers=1)
    assert outcome.dropped["seq"].to_list() == [2 * SPACING]
    assert outcome.edits.to_dicts() == [
        {"seq": 0, "step": 1, "text": "<think>a</think> <python>c</python>"},
        {"seq": 0, "step": 2, "text": "<think>b</think>\n<answer>\\boxed{1}</answer>"},
    ]
    (event,) = outcome.events.to_dicts()
    assert (event["verdict"], event["reason"]) == (
        "repaired",
        "think tags are missing or do not match",
    )
    assert json.loads(event["evidence"]) == {"preset": "et_agent_v2", "steps": [1, 2]}


def test_without_repair_nothing_is_edited(tmp_path):
    store = write(tmp_path / "s", [{"steps": [user(), agent("a\n<answer>\\boxed{1}</answer>")]}])
    outcome = apply("filter", store, preset="et_agent_v1", workers=1)
    assert outcome.edits is None
    assert outcome.dropped.height == 1


# ---- wrong options -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "at least one of sql, min, max, preset, per_task_cap"),
        ({"preset": "success", "repair": True}, "the preset success does not take repair"),
        ({"sql": "true", "min_reward": 1}, "filter without a preset does not take min_reward"),
        ({"preset": "toucan", "min_steps": 1}, "it takes later_turns"),
        ({"sql": "true", "order": ["reward"]}, "give it a cap"),
        ({"per_task_cap": 1, "order": ["reward up"]}, "is no order"),
        ({"min": {"reward": 2}, "max": {"reward": 1}}, "no reward is at least 2"),
        ({"min": {"nope": 2}}, "needs the column nope"),
        ({"min": {"agent_model": 2}}, "the column agent_model holds none"),
        ({"per_task_cap": 0}, "per_task_cap"),
    ],
)
def test_wrong_options_are_told(tmp_path, options, message):
    with pytest.raises(RecipeError, match=re.escape(message)):
        apply("filter", write(tmp_path / "s", [{"steps": []}]), workers=1, **options)


@pytest.mark.parametrize("sql", ["", "true) OR (true", "reward >", "nope = 1", "1; DROP TABLE x"])
def test_a_wrong_condition_is_told(tmp_path, sql):
    with pytest.raises(QueryError):
        apply("filter", write(tmp_path / "s", [{"steps": []}]), workers=1, sql=sql)


def test_an_empty_pool(tmp_path):
    store = write(tmp_path / "s", [])
    for options in ({"sql": "true"}, {"preset": "toucan"}, {"preset": "sage"},
                    {"preset": "et_agent_v1", "repair": True}, {"per_task_cap": 1}):  # fmt: skip
        outcome = apply("filter", store, workers=1, **options)
        assert outcome.dropped.height == 0
        assert outcome.dropped.schema == {
            "seq": pl.Int64,
            "reason": pl.String,
            "evidence": pl.String,
        }
