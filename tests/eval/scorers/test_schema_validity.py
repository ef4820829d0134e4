"""Calls against the tools on offer, with jsonschema itself as the oracle."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from adp.eval.scorers.tool_schemas import schemas_of
from tests.eval.scorers.runs import call, figures, reasons, run, scorer, tools, turn, values

NUMBER, WORD = {"type": "integer"}, {"type": "string"}
ADD = tools(add={"a": NUMBER, "b": NUMBER}, say={"word": {"enum": ["yes", "no"]}})

SCHEMA = st.recursive(
    st.one_of(
        st.sampled_from(["string", "integer", "number", "boolean", "null"]).map(
            lambda kind: {"type": kind}
        ),
        st.just({}),
        st.just({"enum": [1, "a", None]}),
        st.just({"type": ["string", "null"]}),
        st.just({"type": "integer", "minimum": 1}),
    ),
    lambda inner: st.one_of(
        st.builds(lambda item: {"type": "array", "items": item}, inner),
        st.builds(lambda item, two: {"anyOf": [item, two]}, inner, inner),
        st.builds(
            lambda item: {
                "type": "object",
                "properties": {"k": item},
                "required": ["k"],
                "additionalProperties": False,
            },
            inner,
        ),
    ),
    max_leaves=4,
)
VALUE = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(-1, 2), st.sampled_from(["a", ""]), st.just(1.5)
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=2), st.dictionaries(st.sampled_from("kx"), inner, max_size=2)
    ),
    max_leaves=4,
)


@given(
    st.dictionaries(st.sampled_from("ab"), SCHEMA), st.dictionaries(st.sampled_from("abc"), VALUE)
)
def test_what_json_schema_says_is_what_we_say(properties, arguments):
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    offered = json.dumps([{"type": "function", "function": {"name": "f", "parameters": schema}}])
    right = Draft202012Validator(schema).is_valid(arguments)
    item = run(turn(call("f", arguments)), tools=offered)
    assert values(scorer("schema_validity:extras=false").score(item))["schema_valid"] == right
    known = set(arguments) <= set(properties)
    assert values(scorer("schema_validity").score(item))["schema_valid"] == (right and known)


@pytest.mark.parametrize(
    ("made", "kind"),
    [
        (call("add", {"a": 1, "b": 2}), None),
        (call("add", {"a": 1, "b": 2.0}), None),
        (call("add", "{"), "not_json"),
        (call("add", "[1, 2]"), "not_json"),
        (call("add", '{"a": NaN, "b": 1}'), "not_json"),
        (call("sub", {}), "unknown_tool"),
        (call("add", {"a": 1}), "missing"),
        (call("add", {"a": 1, "b": "2"}), "type"),
        (call("add", {"a": 1, "b": True}), "type"),
        (call("add", {"a": 1, "b": 2, "c": 3}), "extra"),
        (call("say", {"word": "maybe"}), "enum"),
    ],
)
def test_each_thing_that_is_wrong_with_a_call(made, kind):
    (score, *_) = scorer("schema_validity").score(run(turn(made), tools=ADD))
    assert score.value == float(kind is None)
    wrong = {name for name, count in score.evidence.items() if count == 1 and name != "calls"}
    assert wrong == ({"good"} if kind is None else {kind})


@pytest.mark.parametrize(
    ("parameters", "arguments", "value"),
    [
        # Names of types as Gorilla and BFCL write them, at any depth.
        ({"type": "dict", "properties": {"x": {"type": "float"}}}, {"x": 1}, 1),
        ({"type": "dict", "properties": {"x": {"type": "float"}}}, {"x": "1"}, 0),
        ({"type": "dict", "properties": {"x": {"type": "any"}}}, {"x": [1]}, 1),
        ({"type": "dict", "properties": {"x": {"type": ["any", "string"]}}}, {"x": [1]}, 1),
        (
            {"type": "dict", "properties": {"x": {"type": "tuple", "items": {"type": "int"}}}},
            {"x": ["1"]},
            0,
        ),
        # M3's bare map of parameters.
        ({"x": {"type": "integer"}}, {"x": 1}, 1),
        ({"x": {"type": "integer"}}, {"x": "1"}, 0),
        ({"x": {"type": "integer"}}, {"y": 1}, 0),
        # What allows others, or is no schema, allows everything.
        ({"type": "object", "properties": {}, "additionalProperties": True}, {"y": 1}, 1),
        ({"type": "object", "properties": {}}, {"y": 1}, 0),
        ({"type": "object"}, {"y": 1}, 1),
        ({"type": "object", "properties": {"x": {"type": "wonder"}}}, {"x": 1}, 1),
        ({"type": "object", "properties": {"x": {"minimum": "low"}}}, {"x": 1}, 1),
        ({"type": "object", "properties": {"x": {"$ref": "http://a.b/c"}}}, {"x": 1}, 1),
        ({"type": "object", "properties": {"x": {"$ref": "#/nowhere"}}}, {"x": 1}, 1),
        ({"type": "object", "properties": {"x": {"$ref": "#"}}}, {"x": {"x": {}}}, 1),
        (
            {"type": "object", "properties": {"x": {"type": "string", "nullable": True}}},
            {"x": None},
            1,
        ),
        ({"type": "object", "properties": {"x": {"enum": []}}, "required": "x"}, {"x": 1}, 1),
        # A pattern that takes forever is not tried.
        (
            {"type": "object", "properties": {"x": {"type": "string", "pattern": "^(a+)+$"}}},
            {"x": "a" * 40 + "!"},
            1,
        ),
        (
            {"type": "object", "properties": {}, "patternProperties": {"^(a+)+$": {}}},
            {"aaa!": 1},
            1,
        ),
    ],
)
def test_schemas_as_data_sets_write_them(parameters, arguments, value):
    offered = json.dumps([{"name": "f", "parameters": parameters}])
    item = run(turn(call("f", arguments)), tools=offered)
    assert values(scorer("schema_validity").score(item))["schema_valid"] == value


def test_anthropic_and_mcp_styles():
    schema = {"type": "object", "properties": {"x": NUMBER}, "required": ["x"]}
    offered = json.dumps(
        [{"name": "f", "input_schema": schema}, {"name": "g", "inputSchema": schema}]
    )
    item = run(
        turn(call("f", {"x": "1"}), call("g", {"x": "1"}), call("g", {"x": 1})), tools=offered
    )
    assert values(scorer("schema_validity").score(item))["schema_valid"] == pytest.approx(1 / 3)
    assert set(schemas_of(offered)) == {"f", "g"}


def test_shares_of_all_calls_and_each_kind():
    result = run(turn(call("add", {"a": 1, "b": 2})), tools=ADD)
    two = run(turn(call("add", {"a": 1}), call("no", {}), call("add", "{")), tools=ADD)
    entry = figures(scorer("schema_validity"), result, two)
    assert entry["schema_valid"].value == 0.5
    assert entry["schema_valid:calls"].value == 0.25
    assert entry["invalid:missing"].value == entry["invalid:not_json"].value == 0.25
    assert entry["arguments_json"].value == pytest.approx((1 + 2 / 3) / 2)
    assert entry["tool_known:calls"].value == 0.75


def test_without_tools_only_json_can_be_checked():
    score = scorer("schema_validity").score(run(turn(call("f", "{"), call("f", {}))))
    assert values(score)["arguments_json"] == 0.5
    assert reasons(score)["schema_valid"] == "the tools on offer are not recorded"
    none = scorer("schema_validity").score(run(turn(text="hello"), tools=ADD))
    assert set(reasons(none).values()) == {"the agent made no call of a tool"}


def test_code_is_no_call_of_a_tool():
    item = run(turn(call("python", {}, kind="code"), call("add", {"a": 1, "b": 1})), tools=ADD)
    assert values(scorer("schema_validity").score(item))["schema_valid"] == 1.0
