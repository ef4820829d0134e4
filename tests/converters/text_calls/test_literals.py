"""Calls in function notation: literals only, compared with the parser of Python."""

from __future__ import annotations

import ast
import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adp.converters.text_calls.literals import (
    call_at,
    calls_in,
    literal_at,
    split,
)
from adp.converters.text_calls.write_literals import write_arguments, write_literal
from adp_schema import jsontext

LEAVES = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
VALUES = st.recursive(
    LEAVES | TEXTS,
    lambda parts: st.lists(parts, max_size=3) | st.dictionaries(TEXTS, parts, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("text", "name", "arguments"),
    [
        ("f()", "f", {}),
        ("f(a=1, b='x')", "f", {"a": 1, "b": "x"}),
        ('a.b_c("x", -2.5, k=[1, (2,), {"y": None}])', "a.b_c",
         {"arg0": "x", "arg1": -2.5, "k": [1, [2], {"y": None}]}),
        ("f(a=true, b=False, c=null,)", "f", {"a": True, "b": False, "c": None}),
        ("f(a='it\\'s', b=\"q\\\"\", c='''two\nlines \" ' ''')", "f",
         {"a": "it's", "b": 'q"', "c": "two\nlines \" ' "}),
        ("f(a=r'\\d+', b='\\d\\n', c='a' \"b\")", "f", {"a": "\\d+", "b": "\\d\n", "c": "ab"}),
        ("f(a='\\u00e9\\x41\\U0001F600', b='\\ud83d\\ude00')", "f", {"a": "éA😀", "b": "😀"}),
        ("f( a = 1 ,\n b = {} )", "f", {"a": 1, "b": {}}),
        ("f(a=0x1F, b=1_000, c=.5, d=5., e=+3, f=1e5)", "f",
         {"a": 31, "b": 1000, "c": 0.5, "d": 5.0, "e": 3, "f": 1e5}),
        ("f(a=(1), b=(), c={1, 2}, d={1: 2, 'x': 3})", "f",
         {"a": 1, "b": [], "c": [1, 2], "d": {"1": 2, "x": 3}}),
        ("f(from-date='x', $filter=1)", "f", None),
        ("f(from-date='x')", "f", {"from-date": "x"}),
    ],
)  # fmt: skip
def test_what_a_call_says(text: str, name: str, arguments: dict[str, object] | None) -> None:
    call = call_at(text)
    if arguments is None:
        assert call is None
        return
    assert call is not None
    assert (call.name, json.loads(call.json()), call.span) == (name, arguments, (0, len(text)))
    for argument in call.arguments:
        piece = literal_at(text[slice(*argument.span)])
        assert piece == (argument.value, argument.span[1] - argument.span[0])


@pytest.mark.parametrize(
    "text",
    [
        "f(x)", "f(a=x)", "f(g())", "f(a=g(1))", "f(1+2)", "f(a=1, 2)", "f(a=1, a=2)", "f(*[1])",
        "f(**{})", "f(b'x')", "f(f'x')", "f(1", "f('x", "f(a=", "f(,)", "f(1,,2)", "f (1)", "f",
        "1f()", ".f()", "f.()", "f([1)", "f({1: 2, 3})", "f({[1]: 2})", "f(007)", "f(1.2.3)",
        "f(3pm)", "f(inf)", "f(nan)", "f(a==1)", "f('\\ud800')", "f(1e999)", "lambda: 0",
        "__import__('os').system('x')()" , "f(" + "[" * 5000 + "]" * 5000 + ")",
    ],
)  # fmt: skip
def test_what_is_no_call(text: str) -> None:
    assert calls_in(text) == ()


def test_names_of_places_and_spelling_of_numbers() -> None:
    call = call_at("f(1.50, 'x', y=10000000000000000000000)")
    assert call is not None
    assert call.json() == '{"arg0": 1.50, "arg1": "x", "y": 10000000000000000000000}'
    assert call.json(["a"]) == '{"a": 1.50, "arg1": "x", "y": 10000000000000000000000}'


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("f(a=1)\ng(b='x')", ["f", "g"]),
        (" [f(a=1), g.h()] ", ["f", "g.h"]),
        ("[ f(a=1),\n g(), ]", []),
        ("f(); g()", ["f", "g"]),
        ("f(),g()", ["f", "g"]),
        ("f() g()", []),
        ("f()\nand g()", []),
        ("[f(), g()] x", []),
        ("[f()", []),
        ("f()]", []),
        ("", []),
        ("[]", []),
        ("I call f(1)", []),
    ],
)
def test_texts_of_calls(text: str, names: list[str]) -> None:
    assert [call.name for call in calls_in(text)] == names


def test_names_with_spaces() -> None:
    text = '[Market Trends API(kind="x"), Get-Item.v2/all(id=1)]'
    calls = calls_in(text, spaced=True)
    assert [call.name for call in calls] == ["Market Trends API", "Get-Item.v2/all"]
    assert [text[slice(*call.span)] for call in calls] == text[1:-1].split(", ")


def test_bounds() -> None:
    text = "say f(1) g(2)"
    call = call_at(text, 4)
    assert call is not None
    assert call.span == (4, 8)
    assert call_at(text, 4, end=7) is None
    assert [item.name for item in calls_in(text, 9)] == ["g"]
    assert [item.name for item in calls_in(text, 4, end=8)] == ["f"]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("a; b", ["a", " b"]),
        ("f(a; b); 'x;y'; [1; {2; 3}]", ["f(a; b)", " 'x;y'", " [1; {2; 3}]"]),
        ("it's; so", ["it's", " so"]),
        ("a); b(;", ["a)", " b(;"]),
        ("", [""]),
        (";", ["", ""]),
        ("'''a;'b''';c", ["'''a;'b'''", "c"]),
    ],
)
def test_split(text: str, parts: list[str]) -> None:
    assert [text[slice(*span)] for span in split(text, ";")] == parts


@given(st.text("f(),='\"[]{}1a \n\\;:", max_size=30))
def test_any_text_is_split_without_gaps(text: str) -> None:
    spans = split(text, ";,")
    assert spans[0][0] == 0
    assert spans[-1][1] == len(text)
    assert all(left[1] + 1 == right[0] for left, right in itertools.pairwise(spans))
    call = call_at(f"f({text})")
    assert call is None or jsontext.is_valid(call.json())


@given(VALUES)
def test_python_and_json_literals_are_read(value: object) -> None:
    for text in (repr(value), json.dumps(value), json.dumps(value, ensure_ascii=False, indent=1)):
        result = literal_at(text)
        assert result is not None
        assert result[1] == len(text)
        if "\\/" not in text:
            assert json.loads(result[0]) == value


@given(st.dictionaries(st.from_regex(r"[a-z_]\w{0,5}", fullmatch=True), VALUES, max_size=3))
def test_what_is_written_says_the_same(arguments: dict[str, object]) -> None:
    written = write_arguments(json.dumps(arguments))
    assert written is not None
    call = call_at(f"f({written})")
    assert call is not None
    assert json.loads(call.json()) == arguments
    literal = write_literal(json.dumps(arguments))
    assert literal is not None
    assert ast.literal_eval(literal) == arguments


def test_arguments_that_have_no_such_notation() -> None:
    assert write_arguments('{"a b": 1}') is None
    assert write_arguments("[1]") is None
    assert write_arguments('{"a": NaN}') is None
    assert write_arguments("{") is None
    assert write_arguments('{"arg0": "x", "arg1": 1.50}') == '"x", 1.50'
    assert write_arguments('{"arg1": 1, "arg0": 2}') == "arg1=1, arg0=2"


@pytest.mark.parametrize(
    "piece", ["f(", "f('", 'f("', "f([", "f(a=[1,", "f({'a':", "'''", "f(r'\\", "x;"]
)
def test_hostile_texts_end_soon(piece: str) -> None:
    text = piece * (1_000_000 // len(piece))
    calls_in(text)
    calls_in(text, spaced=True)
    call_at(f"f({text}")
    assert split(text, ";")[-1][1] == len(text)
