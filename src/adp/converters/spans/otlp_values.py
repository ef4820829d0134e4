"""Spans of OpenTelemetry, with attributes as plain JSON: of pairs, objects, trees or columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Raw

from adp.converters.kit.source_object import SourceObject
from adp.converters.reading import BRACE, BRACKET, NULL, QUOTE
from adp.converters.spans.blocks import plain, unwrapped
from adp.converters.spans.other_spans import as_otlp, is_other_span
from adp.converters.spans.tree import TraceSpan, take_id, take_times
from adp_schema import jsontext
from adp_schema.losses import Losses

IDS = {
    "span": ("spanId", "span_id", "context.span_id"),
    "trace": ("traceId", "trace_id", "context.trace_id"),
    "parent": ("parentSpanId", "parent_span_id", "parent_id", "parentId"),
}
_STARTS = ("startTimeUnixNano", "start_time_unix_nano", "start_time_ns", "start_time", "startTime",
           "start_timestamp")  # fmt: skip
_ENDS = tuple(key.replace("start", "end") for key in _STARTS)
LOG_TIMES = ("timeUnixNano", "time_unix_nano", "observedTimeUnixNano")
"""Keys of the time of a record of a log."""
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


def plain_attributes(source: SourceObject, key: str) -> Raw:
    """Take a resource or a scope, with plain attributes."""
    raw = source.take(key)
    inner = SourceObject(raw, f"{source.path}.{key}", source.losses)
    if not inner:
        return raw if raw is not None else Raw(b"null")
    take_attributes(inner, source.losses)
    return plain(inner.rest())


def is_span(values: Mapping[str, Raw]) -> bool:
    """Whether an object is a span, by its ids and its name."""
    keys = set(values)
    context = b"".join(bytes(values[key]) for key in ("context", "spanContext") if key in values)
    inside = b'"trace_id"' in context or b'"traceId"' in context or "context.trace_id" in keys
    known = ({"trace_id", "traceId"}, {"span_id", "spanId"}, {"name", "span_name"})
    return inside or all(names & keys for names in known) or is_other_span(values)


def take_ids(source: SourceObject) -> dict[str, str]:
    """The ids of a span, of its trace and of its parent, as far as it has them.

    That of the span is taken; it is the id of its row.
    """
    context = source.child("context") or source.child("spanContext")
    ids: dict[str, str] = {}
    for what, keys in IDS.items():
        for place in (source, context):
            name = next((place.word(key) for key in keys if place.word(key)), "")
            if name and what not in ids:
                ids[what] = take_id(place, *keys) if what == "span" else name
    return ids


def open_span(source: SourceObject, shared: dict[str, Raw]) -> TraceSpan:
    """A span of OTLP, or of an exporter that writes spans singly.

    Args:
        source: the span.
        shared: resource and scope that it stands under.
    """
    as_otlp(source)
    attributes = take_attributes(source, source.losses)
    shared = dict(shared)
    for key in ("resource", "scope", "instrumentationScope", "instrumentationLibrary"):
        if source.first(key) == BRACE:
            shared[key] = plain_attributes(source, key)
    for key in ("events", "links"):
        if listed := source.objects(key):
            for event in listed:
                take_attributes(event, source.losses)
            source.values[key] = plain([event.rest() for event in listed])
    ids = take_ids(source)
    parent = ids.get("parent") or attributes.word("virtual_parent.genai") or None
    times = take_times(source, _STARTS, _ENDS)
    name = source.word("name") or source.word("span_name")
    if "openinference.span.kind" not in attributes and source.word("span_kind").isupper():
        attributes.values["openinference.span.kind"] = source.values.pop("span_kind")
    return TraceSpan(source, attributes, ids.get("span", ""), ids.get("trace", ""), parent, name,
                     **times, shared=shared)  # fmt: skip
