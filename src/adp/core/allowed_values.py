"""What a field of options takes, in words: from its JSON schema."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

_SAYS_WHAT_IS_ALLOWED = (
    *("_type", "_parsing", "_from_float", "literal_error", "_than", "_equal"),
    "finite_number",
)
"""Ends of the kinds of faults for which the words are a full answer."""

_TYPES = {
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "string": "a text",
    "null": "null",
    "array": "a list, such as [a, b]",
    "object": "names with values, such as {a: 1}",
}
_SHOWN = 60
"""Characters of a wrong value that are shown."""


def wrong_value(fault: ErrorDetails, options: type[BaseModel]) -> str | None:
    """``initial must be a whole number, 1 or more, not 'two'``.

    Args:
        fault: what validation says.
        options: the options.

    Returns:
        The words; None where the schema of the field does not say what was wrong.
    """
    if len(fault["loc"]) != 1 or not fault["type"].endswith(_SAYS_WHAT_IS_ALLOWED):
        return None
    (name,) = fault["loc"]
    words = allowed(options.model_json_schema().get("properties", {}).get(name, {}))
    if words is None:
        return None
    given = fault.get("input")
    plain = given is None or isinstance(given, bool)
    shown = json.dumps(given) if plain else repr(given)
    shown = shown if len(shown) <= _SHOWN else f"{shown[: _SHOWN - 3]}..."
    return f"{name} must be {words}, not {shown}"


def allowed(schema: Mapping[str, Any]) -> str | None:
    """What a JSON schema allows, in words; None where it is more than a plain value."""
    if "anyOf" in schema:
        # null comes first, so that nobody takes it for a bound.
        parts = sorted(schema["anyOf"], key=lambda part: part.get("type") != "null")
        words = [allowed(part) for part in parts]
        return None if None in words else " or ".join(map(str, words))
    if "enum" in schema:
        *first, last = map(str, schema["enum"])
        return f"{', '.join(first)} or {last}" if first else last
    if "const" in schema:
        return str(schema["const"])
    kind = _TYPES.get(schema.get("type", ""))
    return None if kind is None else kind + _bounds(schema)


def _bounds(schema: Mapping[str, Any]) -> str:
    low, high = schema.get("minimum"), schema.get("maximum")
    above, below = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    if low is not None and high is not None:
        return f" from {low:g} to {high:g}"
    words = [
        f"{low:g} or more" if low is not None else "",
        f"more than {above:g}" if above is not None else "",
        f"{high:g} or less" if high is not None else "",
        f"less than {below:g}" if below is not None else "",
    ]
    return "".join(f", {text}" for text in words if text)
