"""Chains: the argument of a call is what an earlier result says."""

import json
from itertools import pairwise

import pytest

from adp_schema.errors import AdpError
from tests.rollouts.generators.made import SHOP, calls_of, main_lines, make

EDGES = {
    ("find_customer", "list_orders"), ("list_orders", "get_order"), ("get_order", "get_product"),
    ("get_product", "get_supplier"), ("get_supplier", "plan_delivery"),
    ("get_order", "plan_delivery"),
}  # fmt: skip


def test_arguments_come_from_results(tmp_path):
    report = make(tmp_path / "made", "chains", SHOP, max_length=4, count=60)
    assert report.notes == ["the graph of tools has 6 edges and 15 paths"]
    seen_edges, lengths = set(), set()
    for run in main_lines(tmp_path / "made"):
        calls = calls_of(run)
        lengths.add(len(calls))
        for (source, _, result), (name, arguments, _) in pairwise(calls):
            seen_edges.add((source, name))
            assert any(str(value) in result.text for value in arguments.values())
        goal = run.task.instruction
        for _, arguments, _ in calls[1:]:
            linked = [value for value in arguments.values() if str(value) not in goal]
            assert linked or any(isinstance(value, int) for value in arguments.values())
    assert lengths == {2, 3, 4}
    assert seen_edges == EDGES


def test_goals_and_queries(tmp_path):
    for form, asked in (("goal", 1), ("turns", 2)):
        make(tmp_path / form, "chains", SHOP, form=form, max_length=2, count=10)
        for run in main_lines(tmp_path / form):
            users = [step for step in run.steps if step.source == "user"]
            assert len(users) == asked
            queries = json.loads(run.extra)["generator"]["queries"]
            assert [query["query"] for query in json.loads(run.task.turns or "[]")] == (
                queries if form == "turns" else []
            )
            assert users[0].text == (queries[0] if form == "turns" else run.task.instruction)
            assert [step.source for step in run.steps][-1] == "agent"
            assert run.terminated


def test_edges_of_a_file(tmp_path):
    (tmp_path / "tools.yaml").write_text(
        "tools:\n"
        "- {name: weather, parameters: {type: object, properties: {location: {type: string}},"
        " required: [location]}}\n"
        "- {name: calculator, parameters: {type: object, properties: {expression: {type: string}},"
        " required: [expression]}}\n"
    )
    (tmp_path / "edges.yaml").write_text(
        "edges:\n- {from: weather, field: temperature, to: calculator, argument: expression,"
        " as: '{value} * 9 / 5 + 32'}\n"
    )
    env = f"configured:file={tmp_path}/tools.yaml"
    make(tmp_path / "made", "chains", env, edges=tmp_path / "edges.yaml", count=6)
    for run in main_lines(tmp_path / "made"):
        (_, _, weather), (_, arguments, result) = calls_of(run)
        celsius = json.loads(weather.text)["temperature"]
        assert arguments == {"expression": f"{celsius} * 9 / 5 + 32"}
        assert float(result.text) == pytest.approx(celsius * 9 / 5 + 32)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("edges: []", "no list 'edges'"),
        ("edges: [{from: a}]", "edges.0.to"),
        ("edges: [{from: find_customer, to: none, argument: x}]", "no tool 'none'"),
        ("edges: [{from: find_customer, to: get_order, argument: x}]", "no parameter 'x'"),
    ],
)
def test_a_file_of_edges_that_is_none(tmp_path, text, words):
    (tmp_path / "edges.yaml").write_text(text)
    with pytest.raises(AdpError, match=words):
        make(tmp_path / "made", "chains", SHOP, edges=tmp_path / "edges.yaml")
