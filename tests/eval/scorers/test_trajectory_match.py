"""Trajectory match: the verdicts of agentevals, and where ours differs on purpose."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adp.eval.scorers.trajectory_match import MatchSettings, matches
from adp.rollouts.task_references import Expected
from adp_schema.model import Observation, Step, ToolCall
from tests.eval.scorers.runs import call, reasons, run, scorer, turn, values

ORACLE = (
    Path(__file__).parents[3].parent / "shared/data/eval/agentevals/trajectory_match_oracle.json"
)
shared = pytest.mark.skipif(not ORACLE.exists(), reason="the reference data are not here")


def steps_of(messages):
    """Messages in the OpenAI shape as steps, as a rollout records them."""
    steps = []
    for message in messages:
        if message["role"] == "tool":
            calls = {item.call_id for item in steps[-1].calls}
            assert message["tool_call_id"] in calls
            answered = len(steps[-1].observations)
            steps[-1].observations.append(Observation(call=answered, text=message["content"]))
            continue
        source = "agent" if message["role"] == "assistant" else message["role"]
        step = Step(source=source, kind="message", text=message["content"])
        for index, tool_call in enumerate(message.get("tool_calls") or []):
            function = tool_call["function"]
            step.calls.append(
                ToolCall(
                    call=index,
                    call_id=tool_call["id"],
                    name=function["name"],
                    arguments=function["arguments"],
                )
            )
        steps.append(step)
    return steps


@shared
def test_all_208_verdicts_of_agentevals():
    known = json.loads(ORACLE.read_text())
    task = {"gold_trajectory": json.dumps(known["reference"])}
    agreed = 0
    for verdict in known["verdicts"]:
        match = scorer(
            "trajectory_match:matching=agentevals",
            mode=verdict["mode"],
            arguments=verdict["args_mode"],
        )
        user, *others = steps_of(known["outputs"][verdict["case"]])
        (score,) = match.score(run(*others, request=user.text, task=task))
        assert score.value == float(verdict["score"]), verdict
        agreed += 1
    assert agreed == 208


NAMES = st.sampled_from("fg")
ARGUMENTS = st.dictionaries(st.sampled_from("ab"), st.integers(0, 1), max_size=2)
CALLS = st.lists(st.builds(Expected, NAMES, ARGUMENTS), max_size=4)
MODES = st.sampled_from(["exact", "ignore", "subset", "superset"])


def fit(value, other, mode):
    if value.name != other.name:
        return False
    return {
        "exact": value.arguments == other.arguments,
        "ignore": True,
        "subset": value.arguments.items() <= other.arguments.items(),
        "superset": value.arguments.items() >= other.arguments.items(),
    }[mode]


@given(CALLS, CALLS, MODES, st.sampled_from(["unordered", "subset", "superset"]))
def test_bipartite_is_right_when_any_pairing_is(first, second, arguments, mode):
    settings = MatchSettings(mode=mode, arguments=arguments)
    result = matches([("assistant", first)], [("assistant", second)], settings)
    short, long = (first, second) if mode != "superset" else (second, first)
    pairings = itertools.permutations(long, len(short)) if len(short) <= len(long) else []
    right = any(
        all(
            fit(*(pair if mode != "superset" else pair[::-1]), arguments)
            for pair in zip(short, pairing, strict=True)
        )
        for pairing in pairings
    )
    assert result == (right and (mode != "unordered" or len(first) == len(second)))


def agentevals(outputs, reference, mode, arguments):
    """What agentevals 0.0.9 does, written down once more."""

    def covers(outer, inner):
        taken = set()
        for wanted in inner:
            place = next(
                (
                    i
                    for i, result in enumerate(outer)
                    if i not in taken and fit(result, wanted, arguments)
                ),
                None,
            )
            if place is None:
                return False
            taken.add(place)
        return True

    up, down = covers(outputs, reference), covers(reference, outputs)
    return {"superset": up, "subset": down, "unordered": up and down}[mode]


@given(CALLS, CALLS, MODES, st.sampled_from(["unordered", "subset", "superset"]))
def test_matching_agentevals_is_as_greedy(first, second, arguments, mode):
    settings = MatchSettings(mode=mode, arguments=arguments, matching="agentevals")
    result = matches([("assistant", first)], [("assistant", second)], settings)
    assert result == agentevals(first, second, mode, arguments)


def expected(arguments):
    return {"name": "f", "arguments": arguments}


def test_where_the_two_ways_of_pairing_differ():
    # The first call fits both expected ones; greedily it takes the one that the second call needs.
    item = run(
        turn(call("f", {"a": 1, "b": 2})),
        turn(call("f", {"a": 1})),
        task={"expected_calls": json.dumps([expected({"a": 1}), expected({"a": 1, "b": 2})])},
    )
    ours = scorer("trajectory_match:mode=superset,arguments=superset")
    theirs = scorer("trajectory_match:mode=superset,arguments=superset,matching=agentevals")
    assert values(ours.score(item)) == {"trajectory_match": 1.0}
    assert values(theirs.score(item)) == {"trajectory_match": 0.0}


@pytest.mark.parametrize(
    ("override", "value"),
    [("ignore", 1.0), (["user.id"], 1.0), (["user.id", "n"], 0.0), ("exact", 0.0), (["x.y"], 1.0)],
)
def test_overrides_of_single_tools(override, value):
    item = run(
        turn(call("f", {"user": {"id": 7, "at": 1}, "n": 1})),
        task={
            "expected_calls": '[{"name": "f", "arguments": {"user": {"id": 7, "at": 2}, "n": 2}}]'
        },
    )
    match = scorer("trajectory_match", overrides={"f": override})
    assert values(match.score(item)) == {"trajectory_match": value}


def test_true_is_not_one_except_for_agentevals():
    item = run(
        turn(call("f", {"a": True})),
        task={"expected_calls": '[{"name": "f", "arguments": {"a": 1}}]'},
    )
    assert values(scorer("trajectory_match").score(item)) == {"trajectory_match": 0.0}
    theirs = scorer("trajectory_match:matching=agentevals")
    assert values(theirs.score(item)) == {"trajectory_match": 1.0}


def test_strict_over_expected_calls_minds_their_order():
    calls = '[{"name": "f"}, {"name": "g"}]'
    right = run(turn(call("f")), turn(call("g")), turn(text="done"), task={"expected_calls": calls})
    wrong = run(turn(call("g")), turn(call("f")), task={"expected_calls": calls})
    assert values(scorer("trajectory_match").score(right)) == {"trajectory_match": 1.0}
    assert values(scorer("trajectory_match").score(wrong)) == {"trajectory_match": 0.0}
    assert values(scorer("trajectory_match:mode=unordered").score(wrong)) == {"trajectory_match": 1}


def test_arguments_that_are_no_json_match_nothing():
    item = run(turn(call("f", "{")), task={"expected_calls": '[{"name": "f"}]'})
    assert values(scorer("trajectory_match").score(item)) == {"trajectory_match": 0.0}


def test_without_a_reference_it_is_unscored():
    for item in (run(), run(task={"gold_trajectory": "{"}), run(task={"expected_calls": "[7]"})):
        score = scorer("trajectory_match").score(item)
        assert reasons(score) == {"trajectory_match": "the task has no right run to compare with"}
