"""Calls against expected calls, against enumeration and scipy."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adp.converters.run import convert
from adp.eval.scorer import Item
from adp.eval.scorers.matching import assign, bipartite, greedy
from adp.rollouts.task_references import Expected, expected_calls
from adp.stores.tasks import TaskIndex
from adp_schema.model import Task
from adp_schema.store import Store
from tests.eval.scorers.runs import call, figures, reasons, run, scorer, tools, turn, values

M3 = Path(__file__).parents[3].parent / "shared/data/m3/bird-latest"

EDGES = st.lists(st.lists(st.booleans(), min_size=4, max_size=4), max_size=5)


@given(EDGES)
def test_bipartite_pairs_as_many_as_can_be(edges):
    pairs = bipartite(edges, range(4), lambda row, column: row[column])
    assert all(edges[i][j] for i, j in pairs)
    assert len({i for i, _ in pairs}) == len({j for _, j in pairs}) == len(pairs)
    most = max(
        (
            sum(edges[i][j] for i, j in zip(rows, columns, strict=True))
            for size in range(min(len(edges), 4) + 1)
            for rows in itertools.combinations(range(len(edges)), size)
            for columns in itertools.permutations(range(4), size)
        ),
        default=0,
    )
    assert len(pairs) == most
    assert len(greedy(edges, range(4), lambda row, column: row[column])) <= most


@given(st.integers(1, 5), st.integers(1, 5), st.data())
def test_assign_is_scipys(rows, columns, data):
    optimize = pytest.importorskip("scipy.optimize")
    row = st.lists(st.integers(0, 5), min_size=columns, max_size=columns)
    weights = data.draw(st.lists(row, min_size=rows, max_size=rows))
    pairs = assign(weights)
    assert len({i for i, _ in pairs}) == len({j for _, j in pairs}) == len(pairs)
    chosen = optimize.linear_sum_assignment(weights, maximize=True)
    best = sum(weights[i][j] for i, j in zip(*chosen, strict=True))
    assert sum(weights[i][j] for i, j in pairs) == best


def test_assign_of_very_many_takes_the_largest_first():
    weights = [[float((i + j) % 7 == 0) for j in range(70)] for i in range(70)]
    assert len(assign(weights)) == 70


NAMES = st.lists(st.sampled_from("fgh"), max_size=5)


@given(NAMES, NAMES)
def test_names_are_compared_as_multisets(made, wanted):
    item = run(
        turn(*(call(name) for name in made)),
        task={"expected_calls": json.dumps([{"name": name} for name in wanted])},
    )
    result = values(scorer("tool_f1").score(item))
    common = (Counter(made) & Counter(wanted)).total()
    if made:
        assert result["tool_name_precision"] == pytest.approx(common / len(made))
    if wanted:
        assert result["tool_name_recall"] == pytest.approx(common / len(wanted))
    if made or wanted:
        assert result["tool_name_f1"] == pytest.approx(2 * common / (len(made) + len(wanted)))
        assert result["tool_f1"] == result["tool_name_f1"]
    else:
        assert result["tool_f1"] == result["tool_name_precision"] == 1.0


def test_arguments_count_for_calls():
    wanted = [
        {"name": "f", "arguments": {"a": 1, "b": "x"}},
        {"name": "f", "arguments": '{"a": 2}'},
        {"type": "function", "function": {"name": "g", "arguments": "{}"}},
    ]
    item = run(
        turn(call("f", {"a": 2}), call("f", {"b": "x", "a": 1.0})),
        turn(call("g", {"c": 1}), call("h")),
        task={"expected_calls": json.dumps(wanted)},
    )
    result = scorer("tool_f1").score(item)
    assert values(result) == pytest.approx(
        {
            "tool_name_precision": 3 / 4,
            "tool_name_recall": 1.0,
            "tool_name_f1": 6 / 7,
            "tool_precision": 2 / 4,
            "tool_recall": 2 / 3,
            "tool_f1": 4 / 7,
            "argument_accuracy": 1.0,
        }
    )
    evidence = next(score.evidence for score in result if score.metric == "tool_f1")
    assert [entry["name"] for entry in evidence["unexpected"]] == ["g", "h"]
    assert evidence["missing"] == [{"name": "g", "arguments": "{}"}]
    together = figures(scorer("tool_f1"), item, item)
    assert together["tool_recall:calls"].value == pytest.approx(4 / 6)


@pytest.mark.parametrize(
    ("mode", "given_arguments", "value"),
    [
        ("exact", {"a": 1}, 0.0),
        ("subset", {"a": 1}, 1.0),
        ("superset", {"a": 1}, 0.0),
        ("superset", {"a": 1, "b": 2, "c": 3}, 1.0),
        ("subset", {"a": 1, "b": 2, "c": 3}, 0.0),
        ("exact", {"a": True, "b": 2}, 0.0),
        ("ignore", {}, 1.0),
        ("exact", "{", 0.0),
        ("ignore", "{", 1.0),
    ],
)
def test_modes_of_arguments(mode, given_arguments, value):
    item = run(
        turn(call("f", given_arguments)),
        task={"expected_calls": '[{"name": "f", "arguments": {"a": 1, "b": 2}}]'},
    )
    assert values(scorer(f"tool_f1:arguments={mode}").score(item))["tool_f1"] == value


@pytest.mark.parametrize(
    ("given_arguments", "value"),
    [
        ({"a": 1}, 1.0),
        ({"a": 2, "b": "x"}, 1.0),
        ({"a": 3}, 0.0),
        ({"b": "x"}, 0.0),
        ({"a": 1, "c": 1}, 0.0),
    ],
)
def test_bfcls_lists_of_allowed_values(given_arguments, value):
    item = run(
        turn(call("f", given_arguments)),
        task={"expected_calls": '[{"f": {"a": [1, 2], "b": ["x", ""]}}]'},
    )
    assert values(scorer("tool_f1").score(item))["tool_f1"] == value


def test_what_has_no_denominator_is_unscored():
    item = run(turn(text="done"), task={"expected_calls": '["f"]'})
    score = scorer("tool_f1").score(item)
    assert values(score)["tool_recall"] == 0.0
    assert reasons(score)["tool_precision"] == "the agent made no call"
    assert reasons(score)["argument_accuracy"] == "no expected call has arguments"
    other = scorer("tool_f1").score(run(turn(call("f")), task={"expected_calls": "[]"}))
    assert values(other)["tool_precision"] == 0.0
    assert reasons(other)["tool_recall"] == "no call is expected"
    none = scorer("tool_f1").score(run(turn(call("f"))))
    assert set(reasons(none).values()) == {"the task does not say which calls are expected"}


@pytest.mark.parametrize(
    ("columns", "names"),
    [
        ({"expected_calls": '[[{"name": "f"}], [{"name": "g", "args": null}]]'}, ["f", "g"]),
        ({"expected_calls": '{"name": "f"}'}, ["f"]),
        (
            {"gold_trajectory": '[{"role": "a", "tool_calls": [{"function": {"name": "f"}}]}]'},
            ["f"],
        ),
        (
            {"gold_trajectory": '[[{"input": "?"}, {"output": {"name": "f"}}, {"response": 1}]]'},
            ["f"],
        ),
        ({"gold_trajectory": '{"messages": [{"role": "user"}]}'}, []),
        ({"expected_calls": '[{"arguments": {}}]'}, None),
        ({"expected_calls": "7"}, None),
        ({}, None),
    ],
)
def test_shapes_of_expected_calls(columns, names):
    result = expected_calls(Task(**columns))
    assert (None if result is None else [item.name for item in result]) == names


def test_expected_calls_may_have_unknown_arguments():
    assert expected_calls(Task(expected_calls='["f"]')) == [Expected("f")]
    item = run(turn(call("f", {"a": 1})), task={"expected_calls": '["f"]'})
    assert values(scorer("tool_f1").score(item))["tool_f1"] == 1.0


@pytest.mark.skipif(not M3.exists(), reason="the reference data are not here")
def test_the_gold_runs_of_m3_are_what_they_expect(tmp_path):
    convert([str(M3)], tmp_path / "store")
    store = Store.open(str(tmp_path / "store"))
    tasks = TaskIndex(store)
    seen = 0
    for trajectory in store.trajectories():
        item = Item(trajectory, tasks.of(trajectory))
        result = values(scorer("tool_f1").score(item))
        match = values(scorer("trajectory_match:reference=expected_calls").score(item))
        assert result["tool_f1"] == match["trajectory_match"] == 1.0
        seen += 1
    assert seen > 5


def test_calls_of_an_expert_count_unless_only_the_agent_is_asked_for():
    item = run(
        turn(call("g", {"q": "x"}, {"is_error": True, "text": "no"}), actor="agent"),
        turn(call("f", {"q": "x"}, {"is_error": False, "text": "yes"}), actor="expert"),
        task={"expected_calls": '[{"name": "f", "arguments": {"q": "x"}}]'},
        tools=tools(f={"q": {"type": "string"}}),
    )
    counted = {
        (name, actor): values(scorer(name, actor=actor).score(item))
        for name in ("tool_f1", "execution", "schema_validity")
        for actor in ("all", "agent")
    }
    assert counted["tool_f1", "all"]["tool_recall"] == 1
    assert counted["tool_f1", "agent"]["tool_recall"] == 0
    assert counted["execution", "all"]["execution_success"] == 0.5
    assert counted["execution", "agent"]["execution_success"] == 0
    assert counted["schema_validity", "all"]["tool_known"] == 0.5
    assert counted["schema_validity", "agent"]["tool_known"] == 0
    assert values(scorer("tool_f1").score(item)) == counted["tool_f1", "all"]
