"""YAML that holds what JSON can hold."""

from __future__ import annotations

import json

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from adp.core.json_yaml import parse_json_yaml
from adp_schema.errors import UsageError

TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Zl", "Zp"]))
NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


def read(text, largest=1000, deepest=20):
    return parse_json_yaml(text, "a.yaml", "file", largest=largest, deepest=deepest)


@given(VALUES)
def test_what_json_holds_comes_back_from_json_and_from_yaml(value):
    assert read(json.dumps(value, ensure_ascii=False)) == value
    assert read(yaml.safe_dump(value, allow_unicode=True)) == value


def test_values_are_those_of_json():
    listed = "a: [no, 2024-01-31, 1_000, 0x1F, 010, 1.5, -3, 1e3, true, ~, '5']\n"
    text = f"{listed}200: x\nno: &n {{b: 1}}\nc: *n\n"
    assert read(text) == {
        "a": ["no", "2024-01-31", "1_000", "0x1F", "010", 1.5, -3, 1000.0, True, None, "5"],
        "200": "x",
        "no": {"b": 1},
        "c": {"b": 1},
    }


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("a: 1\na: 2", "line 2: the key 'a' is given twice"),
        ("? [1]\n: 2", "line 1: a key is no text"),
        ("a: &a {b: 1}\nc:\n  <<: *a", "line 3: merge keys"),
        ("a: !!set {b}", "line 1: the tag"),
        ("a: *b", "line 1: .*undefined alias|no value has the name &b"),
        ("--- 1\n--- 2", "more than one document"),
        ("- &a [*a]", "holds itself"),
        ("[" * 30 + "]" * 30, "more than 20 deep"),
        ("a: &a [[[[[[[[[1]]]]]]]]]\nb: [[[[[[[[[[*a]]]]]]]]]]", "more than 20 deep"),
        ("- &a [1, 1, 1, 1, 1, 1, 1, 1, 1]\n- &b [*a, *a, *a, *a, *a, *a, *a, *a, *a]\n"
         "- &c [*b, *b, *b, *b, *b, *b, *b, *b, *b]\n- [*c, *c]", "more than 1,000 values"),
        ("a: " + "9" * 5000, "cannot be read"),
        ("a: [", "not valid YAML at line"),
    ],
)  # fmt: skip
def test_what_it_cannot_hold_is_one_sentence_with_the_line(text, part):
    with pytest.raises(UsageError, match=part):
        read(text)
