"""Arguments drawn from schemas fit them, says jsonschema."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from adp.rollouts.generators.drafts import NoValueError
from adp.rollouts.generators.values import ArgumentValues
from adp_schema.errors import UsageError


def tool(properties, **more):
    parameters = {"type": "object", "properties": properties, **more}
    return {"type": "function", "function": {"name": "t", "parameters": parameters}}


NUMBERS = st.builds(
    lambda kind, low, width, step: {
        "type": kind, "minimum": low, "maximum": low + width,
        **({"multipleOf": step} if step else {}),
    },
    st.sampled_from(["integer", "number"]),
    st.integers(-50, 50),
    st.integers(10, 200),
    st.sampled_from([None, 1, 2, 5]),
)  # fmt: skip
TEXTS = st.one_of(
    st.builds(lambda a, b: {"type": "string", "minLength": a, "maxLength": a + b},
              st.integers(0, 20), st.integers(1, 20)),
    st.sampled_from([{"type": "string", "format": "date"}, {"type": "string", "format": "uuid"},
                     {"enum": ["a", 2, None]}, {"const": 7}, {"type": "boolean"},
                     {"type": ["null", "string"]},
                     {"anyOf": [{"type": "null"}, {"type": "integer"}]},
                     {"allOf": [{"type": "integer"}, {"minimum": 3, "maximum": 4}]},
                     {"$ref": "#/$defs/place"}, {"examples": ["x"]}, {}, True]),
)  # fmt: skip
SCHEMAS = st.recursive(
    st.one_of(NUMBERS, TEXTS),
    lambda inner: st.one_of(
        st.builds(lambda item, low: {"type": "array", "items": item, "minItems": low},
                  inner, st.integers(0, 3)),
        st.builds(lambda first, second: {"type": "object", "required": ["two"],
                                         "properties": {"one": first, "two": second}},
                  inner, inner),
    ),
    max_leaves=4,
)  # fmt: skip


@given(st.dictionaries(st.sampled_from(["city", "orderId", "q", "x"]), SCHEMAS), st.integers(0, 99))
def test_what_is_drawn_fits(properties, seed):
    asked = tool(
        properties, required=sorted(properties)[:2], additionalProperties=False,
        **{"$defs": {"place": {"type": "string", "minLength": 3}}},
    )  # fmt: skip
    arguments = ArgumentValues().draw(asked, Random(seed))
    Draft202012Validator(asked["function"]["parameters"]).validate(arguments)
    assert arguments == ArgumentValues().draw(asked, Random(seed))
    assert set(sorted(properties)[:2]) <= set(arguments)


def test_optional_arguments_come_and_go():
    asked = tool({"a": {"type": "integer"}, "b": {"type": "integer"}}, required=["a"])
    drawn = [ArgumentValues().draw(asked, Random(seed)) for seed in range(40)]
    assert 5 < sum("b" in arguments for arguments in drawn) < 35


def test_values_of_the_user():
    values = ArgumentValues({"*": {"a": ["x"]}, "t": {"b": ["y"]}})
    arguments = values.draw(tool({"a": {}, "b": {}}, required=["a", "b"]), Random(0))
    assert arguments == {"a": "x", "b": "y"}


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "pattern": "^[A-Z]{3}-[0-9]{4}$"},
        {"type": "integer", "minimum": 5, "maximum": 4},
        {"not": {}},
        {"type": "array", "items": {"const": 1}, "minItems": 2, "uniqueItems": True},
        {"type": "string", "minLength": 10**9},
        {"type": "array", "minItems": 10**9},
    ],
)
def test_what_nothing_fits_is_said(schema):
    with pytest.raises(NoValueError):
        ArgumentValues().draw(tool({"x": schema}, required=["x"]), Random(0))


@pytest.mark.parametrize("schema", [{"type": "strnig"}, {"$ref": "#/$defs/none"}])
def test_a_schema_that_is_none_is_a_fault_of_the_user(schema):
    with pytest.raises(UsageError):
        ArgumentValues().draw(tool({"x": schema}, required=["x"]), Random(0))


def test_a_schema_that_refers_to_itself_ends():
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}}
    asked = tool({"x": {"$ref": "#/$defs/node"}}, required=["x"], **{"$defs": {"node": node}})
    assert "x" in ArgumentValues().draw(asked, Random(1))
