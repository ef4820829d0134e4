from __future__ import annotations

import json

import pytest

from adp.stores.checks.tool_schema import misfits, missing, read_tools, unknown

SCHEMA = {
    "type": "object",
    "properties": {"at": {"type": "string"}, "n": {"type": ["integer", "null"]}},
    "required": ["at"],
}
STYLES = {
    "openai": {"type": "function", "function": {"name": "look", "parameters": SCHEMA}},
    "flat": {"type": "function", "name": "look", "parameters": SCHEMA},
    "anthropic": {"name": "look", "input_schema": SCHEMA},
    "mcp": {"name": "look", "inputSchema": SCHEMA},
    "gemini": {"functionDeclarations": [{"name": "look", "parameters": SCHEMA}]},
}


@pytest.mark.parametrize("style", STYLES)
def test_every_style_says_the_same(style):
    tools = read_tools(json.dumps([STYLES[style]]))
    tool = tools.by_name["look"]
    assert missing(tool, {"n": 1}) == ["at"]
    assert unknown(tool, {"at": "", "on": 1}) == ["on"]
    assert misfits(tool, {"at": 1, "n": 1.5}) == [
        ("at", "string"),
        ("n", "integer or null"),
    ]
    assert misfits(tool, {"at": "x", "n": 3.0, "on": []}) == []


@pytest.mark.parametrize(
    ("kind", "fits", "others"),
    [
        ("string", ["a"], [1, None, True, [], {}]),
        ("str", ["a"], [1]),
        ("STRING", ["a"], [1]),
        ("integer", [1, 2.0, 10**30], ["1", 1.5, True]),
        ("number", [1, 1.5], ["1", True]),
        ("boolean", [True], [1, "true"]),
        ("array", [[]], [{}, "[]"]),
        ("object", [{}], [[], "{}"]),
        ("null", [None], [0]),
        ("List[str]", [1, "a", None], []),
        (None, [1, "a", None], []),
        (["string", "integer"], ["a", 1], [1.5]),
    ],
)
def test_types(kind, fits, others):
    schema = {"properties": {"x": {"type": kind}}, "required": ["x"]}
    tool = read_tools(json.dumps([{"name": "t", "parameters": schema}])).by_name["t"]
    assert [value for value in fits if misfits(tool, {"x": value})] == []
    assert [value for value in others if not misfits(tool, {"x": value})] == []


@pytest.mark.parametrize(
    "schema",
    [
        None,
        {},
        {"properties": []},
        {"properties": {"a": True}, "additionalProperties": True},
        {"properties": {"a": 7}, "anyOf": []},
        {"type": "object"},
    ],
)
def test_what_is_not_understood_allows_everything(schema):
    tool = read_tools(json.dumps([{"name": "t", "parameters": schema}])).by_name["t"]
    assert (missing(tool, {}), unknown(tool, {"b": 1}), misfits(tool, {"a": 1})) == ([], [], [])


@pytest.mark.parametrize("text", ["[", "NaN", "[" * 2000])
def test_no_json(text):
    assert read_tools(text) is None


def test_odd_lists():
    tools = read_tools('["look", {"type": "web_search_20250305"}, 7, {}, {"name": ""}, "look"]')
    assert sorted(tools.by_name) == ["look", "web_search_20250305"]
    assert (tools.nameless, tools.repeated) == (3, ("look",))
    assert read_tools("7").nameless == 1
    assert list(read_tools('{"name": "look"}').by_name) == ["look"]
