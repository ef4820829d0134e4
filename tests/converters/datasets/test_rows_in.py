"""How records are cut into rows, prefix rows left out, and calls and tools read in any shape."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from adp.converters.datasets.expected import expected_calls
from adp.converters.datasets.families.prefixes import longest
from adp.converters.datasets.families.steps import StepGroup
from adp.converters.datasets.recipe import DatasetRecipe
from adp.converters.datasets.rows_in import rows_in
from adp.converters.datasets.tool_texts import described, documented, numbered
from adp.converters.kit.source_object import SourceObject
from adp_schema.errors import RecordError
from adp_schema.losses import Losses


def recipe(**more: object) -> DatasetRecipe:
    return DatasetRecipe.model_validate(
        {"name": "own", "title": "t", "rows": "described", "reader": "messages", **more}
    )


def cut(record: object, **more: object) -> tuple[list[tuple[str, object]], object]:
    made = rows_in(recipe(**more), json.dumps(record).encode(), Losses())
    rows = [(row.key, json.loads(bytes(row.raw))) for row in made.rows]
    return rows, None if made.around is None else made.around.rest()


def test_rows_that_are_every_value():
    assert cut({"a": {"x": 1}, "b": {"x": 2}}, rows_at="*")[0] == [("a", {"x": 1}), ("b", {"x": 2})]


def test_rows_that_are_every_value_of_each():
    rows, around = cut({"a": [{"x": 1}, {"x": 2}], "n": {"sum": 3}}, rows_at="*.*")
    assert rows == [("a/0", {"x": 1}), ("a/1", {"x": 2}), ("n/sum", 3)]
    assert around is None


def test_what_is_around_the_rows_is_kept():
    rows, around = cut({"name": "n", "rows": [{"x": 1}], "more": {"y": 2}}, rows_at="rows")
    assert rows == [("0", {"x": 1})]
    assert {key: json.loads(bytes(value)) for key, value in around.items()} == {
        "name": "n", "more": {"y": 2}
    }  # fmt: skip


def test_lists_side_by_side():
    rows, around = cut({"q": ["a", "b"], "k": [1], "z": 0}, rows_of={"ask": "q", "key": "k"})
    assert rows == [("0", {"ask": "a", "key": 1}), ("1", {"ask": "b"})]
    assert json.loads(bytes(around["z"])) == 0


def test_rows_that_are_not_there():
    with pytest.raises(RecordError, match="no rows"):
        cut({"a": 1}, rows_at="rows")


def test_a_recipe_says_one_place_of_rows():
    with pytest.raises(ValueError, match="rows_at, rows_of and split"):
        recipe(rows_at="*", split="react_prompts")


def runs_of(rows: list[list[int]]) -> list[tuple[list[int], int]]:
    """The turns of each run, and how many rows it begins with."""
    sources = [SourceObject(json.dumps({"turns": row, "n": n}).encode(), f"$[{n}]", Losses())
               for n, row in enumerate(rows)]  # fmt: skip
    group = StepGroup(None, sources, [None] * len(sources))
    return [
        (json.loads(bytes(run.rows[0].values["turns"])), len(run.prefixes))
        for run in longest(group, "turns")
    ]


def test_rows_that_others_begin_with_are_left_out():
    rows = [[1], [1, 2, 3], [1, 2], [1, 4], [5]]
    assert runs_of(rows) == [([1, 2, 3], 2), ([1, 4], 0), ([5], 0)]


def test_equal_rows_are_runs_of_their_own():
    assert runs_of([[1, 2], [1, 2]]) == [([1, 2], 0), ([1, 2], 0)]


@given(st.lists(st.lists(st.integers(0, 2), max_size=4), max_size=8))
def test_the_longest_rows_are_kept_and_no_row_is_lost(rows):
    kept = [row for row in rows if not any(it[: len(row)] == row != it and row for it in rows)]
    runs = runs_of(rows)
    assert [row for row, _ in runs] == kept
    assert len(runs) + sum(number for _, number in runs) == len(rows)


CALLS = [
    ([{"Action": "f", "Action_Input": '{"a": 1}'}], [{"name": "f", "arguments": {"a": 1}}]),
    ({"type": "function_call", "name": "f", "arguments": "{}"}, [{"name": "f", "arguments": {}}]),
    (
        {"type": "function_call_batch", "calls": [{"name": "f"}, {"name": "g"}]},
        [{"name": "f", "arguments": {}}, {"name": "g", "arguments": {}}],
    ),
    (["f(a, b)"], [{"name": "f", "arguments": {"x": "a", "arg1": "b"}}]),
    ([{"f": {"a": [1, ""]}}], [{"f": {"a": [1, ""]}}]),
    ([{"f": {"a": 1, "b": [2]}}], [{"name": "f", "arguments": {"a": 1, "b": [2]}}]),
    (
        [{"task": "f", "arguments": [{"name": "a", "value": 1}]}],
        [{"name": "f", "arguments": {"a": 1}}],
    ),
    (
        [{"task": "f g", "arguments": ["a.wav"]}],
        [{"name": "f g", "arguments": {"arguments": ["a.wav"]}}],
    ),
    (["PDF&URLTool"], [{"name": "PDF&URLTool", "arguments": {}}]),
    ({"type": "message", "content": "Which one?"}, None),
    ([], None),
    (7, None),
]


@pytest.mark.parametrize(("value", "calls"), CALLS, ids=str)
def test_expected_calls_in_any_shape(value, calls):
    made = expected_calls(value, {"f": ("x",)})
    if made is not None and value == ["f(a, b)"]:
        assert json.loads(made)[0]["name"] == "f"
        assert list(json.loads(made)[0]["arguments"].values()) == ["a", "b"]
    else:
        assert (None if made is None else json.loads(made)) == calls


def test_tools_in_numbered_texts():
    text = (
        '1. Name: My Tool\nDescription: It does\nmuch.\nParameters: {"a": {"type": "string"}}\n'
        "2. Name: b\nDescription: d\nParameters: none\n"
    )
    assert numbered(text) == [
        {
            "name": "My Tool",
            "description": "It does\nmuch.",
            "parameters": {"a": {"type": "string"}},
        },
        {"name": "b", "description": "d", "parameters": {}},
    ]


def test_tools_in_texts_by_name():
    text = (
        'Boats.\nParameters: {"place": "Required. string. Where.", "n": "integer."}\nOutput: a list'
    )
    (tool,) = described({"boats": text, "components": "", "n": 3})
    assert tool["description"] == "Boats."
    assert tool["parameters"]["required"] == ["place"]
    assert tool["parameters"]["properties"]["n"]["type"] == "integer"
    assert documented(f"boats: {text}\n") == [tool]


def test_numbered_texts_take_linear_time():
    assert numbered("1. Name: a\nDescription: " + "b\n" * 200_000) == []
    assert numbered("1. Name: a\n" * 100_000) == []


def test_a_split_of_the_package(tmp_path):
    record = Raw(json.dumps({"t": "Question: a?\nAnswer: b\nQuestion: c?\nAnswer: d\n"}).encode())
    made = rows_in(recipe(split="react_prompts"), bytes(record), Losses())
    keys = [row.key for row in made.rows]
    assert keys == ["t_0", "t_1"]
