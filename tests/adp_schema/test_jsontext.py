"""JSON as text: nothing but white space may change."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adp_schema import jsontext

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def test_relayout_keeps_tokens():
    text = b'{"a": 1e5, "b": 12345678901234567890, "a": [1.0, -0.0, {}], "c": "\\u00e9\\/"}'
    laid_out = jsontext.relayout(text, 2)
    assert jsontext.relayout(laid_out, 0) == text


@pytest.mark.parametrize(
    ("text", "lost"),
    [
        (b'{"a":1,"b":2}', []),
        (b'{"a": 1, "b": 2}', []),
        (b'{ "a" :1}', []),
        (b"{}", []),
        (b'{"a":1,"b":2,"a":3}', ["a"]),
        (b'{"a": 1, "a": 2, "a": 3}', ["a", "a"]),
        (b'{"a": {"b": 1, "b": 2}, "c": 100000000000000000000000}', []),
    ],
)
def test_lost_keys(text, lost):
    assert jsontext.lost_keys(text, jsontext.decode_object(text)) == lost


@given(VALUES, st.sampled_from([None, 1, 3]), st.sampled_from([(",", ":"), (", ", ": ")]))
def test_no_key_is_lost_from_ordinary_objects(value, indent, separators):
    text = json.dumps({"k": value, "l": 1}, indent=indent, separators=separators).encode()
    assert jsontext.lost_keys(text, jsontext.decode_object(text)) == []


@given(VALUES)
def test_escape_non_ascii_is_what_json_dumps_writes(value):
    plain = json.dumps(value, ensure_ascii=False)
    try:
        plain.encode()
    except UnicodeEncodeError:
        return
    assert jsontext.escape_non_ascii(plain) == json.dumps(value)


SURROGATE_TEXT = st.text(
    st.characters(categories=["Cs", "L", "P"], include_characters='\\"u0'), max_size=12
)


@given(SURROGATE_TEXT)
def test_lone_surrogates_come_back(text):
    token = json.dumps(text)
    expected = json.loads(token)
    marked = json.loads(jsontext.sanitise(token.encode()))
    marked.encode()
    if jsontext.has_mark(marked):
        clean, saved = jsontext.mend_text(marked)
        clean.encode()
        assert jsontext.unescape(saved) == expected
        assert jsontext.replace_surrogates(expected) == clean
    else:
        assert marked == expected


def test_numbers_that_are_not_json_come_back():
    text = '{"a": NaN, "b": [Infinity, -Infinity], "c": "NaN \\ud800"}'
    marked = jsontext.sanitise(text.encode()).decode()
    assert jsontext.is_valid(marked)
    clean, saved = jsontext.mend_json(marked)
    assert saved == text
    assert json.loads(clean) == {"a": None, "b": [None, None], "c": "NaN \ufffd"}


def test_a_record_that_uses_the_marks_is_refused():
    with pytest.raises(ValueError, match=r"U\+10F7FF"):
        jsontext.sanitise('{"a": "\U0010f800"}'.encode())


def test_relayout_of_what_is_not_strict_json():
    assert jsontext.relayout(b'{"a":NaN,"b":"\\ud83d"}', 0) == b'{"a": NaN, "b": "\\ud83d"}'


def test_depth():
    assert jsontext.depth(b'{"a": [[1]], "b": "[[[["}') == 3


def test_string_keeps_lone_surrogates():
    assert msgspec.json.encode(jsontext.string("a\ud83d")) == b'"a\\ud83d"'
    assert jsontext.string("a") == "a"


@pytest.mark.parametrize("indent", [None, 1, 2, 8, 120])
@pytest.mark.parametrize("again", [False, True])
def test_keys_that_occur_twice_are_found_in_any_layout(indent, again):
    source = {"a": 1, "key": {"b": [1, {"c": 2}], "d": {}}, "last": "x"}
    text = json.dumps(source, indent=indent)
    if again:
        text = text.replace(
            '"last": ', '"a": 2, "last": ' if indent is None else '"a": 2,\n"last": '
        )
    data = text.encode()
    assert jsontext.lost_keys(data, jsontext.decode_object(data)) == (["a"] if again else [])
    inner = jsontext.decode_object(data)["key"]
    assert jsontext.lost_keys(inner, jsontext.decode_object(inner)) == []
