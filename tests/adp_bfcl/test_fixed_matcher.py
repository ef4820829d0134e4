"""Where the fixed rules differ from the official ones, and where they must not."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adp_bfcl.fixed_matcher import match_fixed, normal, same, unmatched
from adp_bfcl.judge import judge_answer
from adp_bfcl.matcher import match
from tests.adp_bfcl.samples import FUNCTION

TYPES = {
    "s": {"type": "string"},
    "i": {"type": "integer"},
    "f": {"type": "float"},
    "l": {"type": "array", "items": {"type": "string"}},
    "n": {"type": "array", "items": {"type": "array", "items": {"type": "string"}}},
    "fl": {"type": "array", "items": {"type": "float"}},
    "d": {"type": "dict"},
    "b": {"type": "boolean"},
}
F = {"name": "f", "parameters": {"type": "dict", "properties": TYPES, "required": []}}

DIFFERENT = [
    # parameter, value, allowed, official, fixed
    ("s", "1/2", ["12"], True, False),
    ("s", "-5", ["5"], True, False),
    ("s", "3.5", ["35"], True, False),
    ("s", "1 2", ["12"], True, False),
    ("i", 5.0, [5], False, True),
    ("f", 0.1 + 0.2, [0.3], False, True),
    ("i", None, [5, ""], False, True),
    ("l", [], [["a"], ""], True, False),
    ("n", [["New York"]], [[["new york"]]], False, True),
    ("d", {"k": True}, [{"k": [1]}], True, False),
    ("d", {"k": {"z": "A"}}, [{"k": [{"z": "a"}]}], False, True),
    ("d", {"k": ["A b"]}, [{"k": [["a b"]]}], False, True),
    ("fl", [1, 2.5], [[1.0, 2.5]], False, True),
]
ALIKE = [
    ("s", "New-York, NY", ["new york ny"], True),
    ("s", "April 1, 2024", ["April 1 2024"], True),
    ("s", "2024/04/01", ["2024-04-01"], True),
    ("s", "1,000", ["1000"], True),
    ("s", "a:b", ["ab"], False),
    ("i", True, [1], False),
    ("i", "5", [5], False),
    ("f", 5, [5.0], True),
    ("b", 1, [True], False),
    ("l", ["B", "a"], [["a", "b"]], False),
    ("d", {"k": 1, "x": 2}, [{"k": [1]}], False),
    ("d", {}, [{"k": [1, ""]}], True),
]


def both(parameter, value, allowed):
    arguments = [F], [{"f": {parameter: value}}], [{"f": {parameter: allowed}}], "simple_python"
    return match(*arguments).valid, match_fixed(*arguments).valid


@pytest.mark.parametrize(("parameter", "value", "allowed", "official", "fixed"), DIFFERENT)
def test_different(parameter, value, allowed, official, fixed):
    assert both(parameter, value, allowed) == (official, fixed)


@pytest.mark.parametrize(("parameter", "value", "allowed", "valid"), ALIKE)
def test_alike(parameter, value, allowed, valid):
    assert both(parameter, value, allowed) == (valid, valid)


def test_calls_at_once_are_matched_whatever_their_order():
    truth = [{"f": {"i": [1, 2]}}, {"f": {"i": [1]}}]
    verdicts = []
    for order in ((1, 2), (2, 1)):
        calls = [{"f": {"i": number}} for number in order]
        verdicts += [rule([F], calls, truth, "parallel").valid for rule in (match, match_fixed)]
    assert verdicts == [False, True, True, True]


@given(st.integers(1, 5).flatmap(
    lambda n: st.lists(st.lists(st.booleans(), min_size=n, max_size=n), min_size=n, max_size=n)
))  # fmt: skip
def test_matching_is_that_of_trying_everything(fits):
    size = len(fits)
    possible = any(
        all(fits[row][column] for row, column in enumerate(order))
        for order in itertools.permutations(range(size))
    )
    assert (unmatched(fits) is None) == possible


def test_a_malformed_call_is_no_abstention():
    broken = [{"maths_add": '{"a": 1'}]
    for category, answer, official, fixed, state in [
        ("irrelevance", broken, True, False, "malformed"),
        ("irrelevance", "I cannot do that.", True, True, "abstained"),
        ("irrelevance", [], True, True, "abstained"),
        ("irrelevance", [{"maths_add": "[1]"}], True, False, "malformed"),
        ("irrelevance", [{"maths_add": "{}"}], False, False, "called"),
        ("live_relevance", broken, False, False, "malformed"),
        ("live_relevance", [{"other": "{}"}], True, True, "called"),
    ]:
        results = [
            judge_answer(answer, [FUNCTION], None, category, rules=rules)
            for rules in ("official", "fixed")
        ]
        assert [result.valid for result in results] == [official, fixed], (category, answer)
        assert {result.relevance for result in results} == {state}


@given(st.text(), st.text())
def test_equal_after_normal_is_equal_officially(value, other):
    from adp_bfcl.matcher import standard

    if value.isascii() and other.isascii() and normal(value) == normal(other):
        dates = any(letter.isdigit() for letter in value)
        assert standard(value) == standard(other) or dates


@given(st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
))  # fmt: skip
def test_a_value_is_what_it_is(value):
    def wrapped(inner):
        if isinstance(inner, dict):
            return {key: [wrapped(result)] for key, result in inner.items()}
        return [wrapped(item) for item in inner] if isinstance(inner, list) else inner

    assert same(value, wrapped(value))
