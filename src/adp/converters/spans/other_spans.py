"""Spans as Jaeger exports them, and as rows of the Collector's exporter for ClickHouse.

Their keys become those of OTLP. What has no such key stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec import Raw

from adp.converters.kit.source_object import SourceObject
from adp.converters.reading import BRACE
from adp.converters.spans.tree import nanoseconds
from adp_schema import jsontext

_CLICKHOUSE = {"TraceId": "traceId", "SpanId": "spanId", "ParentSpanId": "parentSpanId",
               "SpanName": "name", "SpanAttributes": "attributes"}  # fmt: skip
_JAEGER = {"traceID": "traceId", "spanID": "spanId", "operationName": "name"}
_FRACTION = re.compile(r"([^.]+)\.([0-9]{1,9})([^.]*)", re.ASCII)
_COUNTS = (".usage.", ".token_count.")
"""In the names of attributes that are numbers of tokens."""
START, END = "startTimeUnixNano", "endTimeUnixNano"


def is_other_span(values: Mapping[str, Raw]) -> bool:
    """Whether an object is a span in one of these forms."""
    keys = set(values)
    jaeger = keys >= {*_JAEGER, "tags"} and "traceId" not in keys
    return jaeger or (keys >= set(_CLICKHOUSE) and "traceId" not in keys)


def as_otlp(source: SourceObject) -> None:
    """Rename the keys of a span in one of these forms; others stay as they are."""
    if not is_other_span(source.values):
        return
    if "traceID" in source:
        _rename(source, _JAEGER)
        _from_jaeger(source)
        return
    _rename(source, _CLICKHOUSE)
    if source.first("ResourceAttributes") == BRACE:
        resource = jsontext.text_of({"attributes": source.take("ResourceAttributes")})
        source.values["resource"] = jsontext.raw(resource)
    _set_times(source, _exact(source), source.integer_at("Duration"))
    attributes = source.peek("attributes")
    for name in attributes.values:  # in a row all values are texts
        text = attributes.word(name)
        if any(word in name for word in _COUNTS) and re.fullmatch("0|[1-9][0-9]{0,17}", text):
            attributes.values[name] = jsontext.raw(text)
    if attributes:
        source.values["attributes"] = jsontext.raw(jsontext.text_of(attributes.values))


def _exact(source: SourceObject) -> int | None:
    """The time of a row in nanoseconds, with all nine digits of its fraction."""
    match = _FRACTION.fullmatch(source.word("Timestamp"))
    if match is None:
        return nanoseconds(source.values.get("Timestamp"))
    whole = nanoseconds(jsontext.raw(jsontext.text_of(match[1] + match[3])))
    return None if whole is None else whole + int(match[2].ljust(9, "0"))


def _rename(source: SourceObject, names: Mapping[str, str]) -> None:
    for old, new in names.items():
        if (earlier := source.values.get(new)) is not None:
            source.values[f"{new}#2"] = earlier
        source.values[new] = source.values.pop(old)


def _from_jaeger(source: SourceObject) -> None:
    """Tags are attributes, times are microseconds, and the parent is a reference."""
    attributes: dict[str, Raw] = {}
    odd = []
    for number, raw in enumerate(source.items("tags")):
        tag = SourceObject(raw, f"{source.path}.tags[{number}]", source.losses)
        key, value = tag.word("key"), tag.values.get("value")
        plain = set(tag.values) <= {"key", "type", "value"}
        if value is None or not key or key in attributes or not plain or jsontext.has_mark(key):
            odd.append(jsontext.raw_line(raw))
        else:
            attributes[key] = value
            source.losses.add(f"{tag.path}.type", "types of tags are those of their values")
    if odd:
        source.values["tags"] = jsontext.raw(jsontext.text_of(odd))
    source.values["attributes"] = jsontext.raw(jsontext.text_of(attributes))
    for reference in source.copy().objects("references"):
        if reference.word("refType") == "CHILD_OF" and reference.word("spanID"):
            source.values["parentSpanId"] = reference.values["spanID"]
            break
    micros, duration = source.integer_at("startTime"), source.integer_at("duration")
    start = None if micros is None else micros * 1000
    _set_times(source, start, None if duration is None else duration * 1000)


def _set_times(source: SourceObject, start: int | None, duration: int | None) -> None:
    if start is None or not 0 < start < 1 << 63:
        return
    source.values[START] = jsontext.raw(f'"{start}"')
    if duration is not None and 0 <= duration < (1 << 63) - start:
        source.values[END] = jsontext.raw(f'"{start + duration}"')
