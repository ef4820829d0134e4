"""Attributes of OpenTelemetry as plain JSON: lists of pairs, objects, nested objects, columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Raw

from adp.converters.kit.source_object import SourceObject
from adp.converters.kit.span_blocks import plain, unwrapped
from adp.converters.reading import BRACE, BRACKET, NULL, QUOTE
from adp_schema import jsontext
from adp_schema.losses import Losses

_SCALARS = {
    "stringValue": b'"', "boolValue": b"tf", "doubleValue": b'"-0123456789',
    "intValue": b'"-0123456789', "string_value": b'"', "bool_value": b"tf",
    "double_value": b'"-0123456789', "int_value": b'"-0123456789',
}  # fmt: skip


def value_of(raw: Raw) -> Raw | None:
    """The plain JSON value of an OTLP value; None when it is none, or of bytes."""
    if jsontext.first_byte(raw) != BRACE:
        return None
    values = jsontext.decode_object(raw)
    if len(values) != 1:
        return Raw(b"null") if not values else None
    ((kind, value),) = values.items()
    if kind in _SCALARS and jsontext.first_byte(value) in _SCALARS[kind]:
        digits = jsontext.decode_value(value) if kind.startswith("int") else None
        if isinstance(digits, str):
            return jsontext.raw(digits) if digits.lstrip("-").isdecimal() and jsontext.is_valid(
                digits) else None  # fmt: skip
        return value
    if kind in ("arrayValue", "array_value"):
        items = _items(value)
        out = [value_of(item) for item in items or []]
        return None if items is None or None in out else plain(out)
    if kind in ("kvlistValue", "kvlist_value"):
        items = _items(value)
        attributes: dict[str, Raw] = {}
        return plain(attributes) if items is not None and _pairs(items, attributes) else None
    return None


def _items(raw: Raw) -> list[Raw] | None:
    """The values of a list of OTLP, when there is nothing else in it."""
    values = jsontext.decode_object(raw) if jsontext.first_byte(raw) == BRACE else None
    if values is None or set(values) - {"values"}:
        return None
    listed = values.get("values", Raw(b"[]"))
    return jsontext.decode_array(listed) if jsontext.first_byte(listed) == BRACKET else None


def _pairs(items: list[Raw], attributes: dict[str, Raw]) -> bool:
    """Add attributes by their keys; False when a pair is none, or is there already."""
    for item in items:
        values = jsontext.decode_object(item) if jsontext.first_byte(item) == BRACE else {}
        if set(values) != {"key", "value"} or jsontext.first_byte(values["key"]) != QUOTE:
            return False
        key, value = jsontext.decode_value(values["key"]), value_of(values["value"])
        if value is None or key in attributes:
            return False
        attributes[key] = value
    return True


def take_attributes(source: SourceObject, losses: Losses) -> SourceObject:
    """Take the attributes of a span: a list of pairs, an object, nested objects, or columns."""
    attributes = SourceObject(None, f"{source.path}.attributes", losses)
    raw = unwrapped(source.values.get("attributes"))
    if raw is not None and jsontext.first_byte(raw) == BRACKET:
        odd = []
        for item in jsontext.decode_array(raw):
            pair: dict[str, Raw] = {}
            if _pairs([item], pair) and not set(pair) & set(attributes.values):
                attributes.values.update(pair)
            else:
                odd.append(item)
        if odd:
            attributes.values["attributes"] = plain(odd)
    elif raw is not None and jsontext.first_byte(raw) == BRACE:
        attributes.values = dict(_flat(SourceObject(raw, attributes.path, losses), ""))
    for key in [key for key in source.values if key.startswith("attributes.")]:
        name = key.removeprefix("attributes.")
        if jsontext.first_byte(source.values[key]) == NULL:
            source.drop(key)  # a data frame has every column in every row
        elif name not in attributes.values:
            attributes.values[name] = source.values.pop(key)
    taken = raw is None or jsontext.first_byte(raw) in (BRACE, BRACKET)
    source.adopt("attributes" if taken else "columns", attributes)
    return attributes


_TREES = frozenset(
    {"llm", "openinference", "gen_ai", "input", "output", "tool", "session", "llm.token_count",
     "openinference.span", "gen_ai.usage", "llm.token_count.prompt_details", "llm.cost", "user",
     "llm.token_count.completion_details", "graph", "graph.node"}
)  # fmt: skip
"""Names whose values Phoenix nests in objects."""


def _flat(source: SourceObject, prefix: str) -> Iterator[tuple[str, Raw]]:
    """Attributes with their full names, of the nested form that Phoenix stores them in."""
    for key, raw in source.values.items():
        name = f"{prefix}{key}"
        if name in _TREES and jsontext.first_byte(raw) == BRACE:
            yield from _flat(SourceObject(raw, source.path, source.losses), f"{name}.")
        else:
            yield name, raw


def attribute_list(attributes: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Attributes as OTLP writes them, a list of pairs.

    Args:
        attributes: plain values by their names; `Raw` is a string.
    """
    return [{"key": key, "value": _written(value)} for key, value in attributes.items()]


def _written(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, list):
        return {"arrayValue": {"values": [_written(item) for item in value]}}
    if isinstance(value, dict):
        return {"kvlistValue": {"values": attribute_list(value)}}
    return {"stringValue": value}
