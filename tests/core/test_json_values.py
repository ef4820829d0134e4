"""JSON texts of others: what cannot be read is nothing, never an error."""

import pytest

from adp.core.json_values import json_list, json_object, json_or_none


@pytest.mark.parametrize("text", [None, "", "{", "NaN?", "[" * 100_000, 3])
def test_what_is_no_json_is_nothing(text):
    assert json_or_none(text) is None
    assert json_object(text) == {}
    assert json_list(text) == []


def test_a_value_is_given_as_it_is():
    assert json_or_none("[1, null]") == json_list("[1, null]") == [1, None]
    assert json_or_none('{"a": 1}') == json_object('{"a": 1}') == {"a": 1}
    assert json_object("[]") == {}
    assert json_list("{}") == []
