"""Protobuf files of OpenTelemetry, as the JSON that the protocol defines for the same messages.

A file holds a message alone, or several, each after its length: as a varint (the specification) or
in four bytes (the Collector's file exporter, which may compress each of them). Fields that are not
in the table, of a newer protocol, are kept under ``field N``.

Decoded here and not by the package opentelemetry-proto: that drops the fields that it does not
know, and would bind the version of protobuf for everyone who reads a file of spans.
"""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Iterator
from typing import Any

VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5
_ZSTANDARD = b"\x28\xb5\x2f\xfd"
_MAX_DEPTH = 100

Schema = dict[int, tuple[str, str]]

_RESOURCE: Schema = {1: ("resource", "Resource"), 3: ("schemaUrl", "text")}
_SCOPE: Schema = {1: ("scope", "Scope"), 3: ("schemaUrl", "text")}
_DROPPED = "droppedAttributesCount"
_MESSAGES: dict[str, Schema] = {
    "TracesData": {1: ("resourceSpans", "ResourceSpans*")},
    "ResourceSpans": {**_RESOURCE, 2: ("scopeSpans", "ScopeSpans*"),
                      1000: ("instrumentationLibrarySpans", "LibrarySpans*")},
    "ScopeSpans": {**_SCOPE, 2: ("spans", "Span*")},
    "LibrarySpans": {1: ("instrumentationLibrary", "Scope"), 2: ("spans", "Span*"),
                     3: ("schemaUrl", "text")},
    "LogsData": {1: ("resourceLogs", "ResourceLogs*")},
    "ResourceLogs": {**_RESOURCE, 2: ("scopeLogs", "ScopeLogs*")},
    "ScopeLogs": {**_SCOPE, 2: ("logRecords", "LogRecord*")},
    "Resource": {1: ("attributes", "KeyValue*"), 2: (_DROPPED, "uint")},
    "Scope": {1: ("name", "text"), 2: ("version", "text"), 3: ("attributes", "KeyValue*"),
              4: (_DROPPED, "uint")},
    "KeyValue": {1: ("key", "text"), 2: ("value", "AnyValue")},
    "AnyValue": {1: ("stringValue", "text"), 2: ("boolValue", "bool"), 3: ("intValue", "int"),
                 4: ("doubleValue", "double"), 5: ("arrayValue", "ArrayValue"),
                 6: ("kvlistValue", "KeyValueList"), 7: ("bytesValue", "bytes")},
    "ArrayValue": {1: ("values", "AnyValue*")},
    "KeyValueList": {1: ("values", "KeyValue*")},
    "Span": {1: ("traceId", "id16"), 2: ("spanId", "id8"), 3: ("traceState", "text"),
             4: ("parentSpanId", "id8"), 5: ("name", "text"), 6: ("kind", "uint"),
             7: ("startTimeUnixNano", "fixed64"), 8: ("endTimeUnixNano", "fixed64"),
             9: ("attributes", "KeyValue*"), 10: (_DROPPED, "uint"), 11: ("events", "Event*"),
             12: ("droppedEventsCount", "uint"), 13: ("links", "Link*"),
             14: ("droppedLinksCount", "uint"), 15: ("status", "Status"), 16: ("flags", "fixed32")},
    "Event": {1: ("timeUnixNano", "fixed64"), 2: ("name", "text"), 3: ("attributes", "KeyValue*"),
              4: (_DROPPED, "uint")},
    "Link": {1: ("traceId", "id16"), 2: ("spanId", "id8"), 3: ("traceState", "text"),
             4: ("attributes", "KeyValue*"), 5: (_DROPPED, "uint"), 6: ("flags", "fixed32")},
    "Status": {2: ("message", "text"), 3: ("code", "uint")},
    "LogRecord": {1: ("timeUnixNano", "fixed64"), 2: ("severityNumber", "uint"),
                  3: ("severityText", "text"), 5: ("body", "AnyValue"),
                  6: ("attributes", "KeyValue*"), 7: (_DROPPED, "uint"), 8: ("flags", "fixed32"),
                  9: ("traceId", "id16"), 10: ("spanId", "id8"),
                  11: ("observedTimeUnixNano", "fixed64"), 12: ("eventName", "text")},
}  # fmt: skip
"""Number of a field -> its name and kind; a star follows the kind of what may repeat."""

_WIRE = {"int": VARINT, "uint": VARINT, "bool": VARINT, "fixed64": FIXED64, "double": FIXED64,
         "fixed32": FIXED32}  # fmt: skip


def delimiter(head: bytes) -> str | None:
    """How a file separates its messages: ``none``, ``varint`` or ``fixed``; None: no such file.

    Args:
        head: the beginning of the file; 64 KB are plenty.
    """
    if _is_request(head, 0):
        return "none"
    if len(head) > 8 and (head[4:8] == _ZSTANDARD or _is_request(head, 4)):
        return "fixed"
    try:
        return "varint" if _is_request(head, _varint(head, 0)[1]) else None
    except ValueError:
        return None


def messages(data: bytes) -> Iterator[tuple[int, bytes, str]]:
    """The messages of a file: where each begins, its JSON, and why there is none."""
    way = delimiter(data)
    at = 0
    while at < len(data):
        start, end = at, len(data)
        try:
            if way == "fixed":
                start = at + 4
                end = start + int.from_bytes(data[at:start], "big")
            elif way == "varint":
                size, start = _varint(data, at)
                end = start + size
            if end > len(data) or start > len(data):
                raise ValueError("the file ends inside this message")
            yield at, _as_json(data[start:end]), ""
        except (ValueError, struct.error) as error:
            yield at, b"", str(error)
            if end > len(data) or way == "none":
                return
        at = end


def _as_json(data: bytes) -> bytes:
    if data.startswith(_ZSTANDARD):
        import pyarrow as pa

        try:
            data = pa.CompressedInputStream(pa.BufferReader(data), "zstd").read()
        except (pa.ArrowException, OSError):
            raise ValueError("the compressed message is damaged") from None
        if data.lstrip()[:1] == b"{":
            return data
    for name in ("TracesData", "LogsData"):
        try:
            return json.dumps(_decode(data, name, 0), ensure_ascii=False).encode()
        except (ValueError, struct.error):
            continue
    raise ValueError("the message holds neither spans nor logs of OpenTelemetry")


def _decode(data: bytes, name: str, depth: int) -> dict[str, Any]:
    """A message, as the JSON mapping of OTLP has it.

    Raises:
        ValueError: it is no such message; struct.error says the same of a number that is cut.
    """
    if depth > _MAX_DEPTH:
        raise ValueError("nested too deep")
    schema = _MESSAGES[name]
    out: dict[str, Any] = {}
    whole: dict[str, tuple[str, bytes]] = {}
    for number, wire, value in _fields(data):
        key, kind = schema.get(number, (f"field {number}", ""))
        inner = kind.removesuffix("*")
        if kind and wire != _WIRE.get(inner, LENGTH):
            raise ValueError(f"the field {key} is of another type")
        if kind.endswith("*"):
            out.setdefault(key, []).append(_decode(value, inner, depth + 1))
        elif inner in _MESSAGES:  # a message in pieces is all of them together
            whole[key] = inner, whole.get(key, (inner, b""))[1] + value
        elif kind:
            out[key] = _scalar(kind, value)
        else:
            out.setdefault(key, []).append(
                _text(value) if wire == LENGTH else str(int.from_bytes(value, "little"))
            )
    return out | {key: _decode(value, inner, depth + 1) for key, (inner, value) in whole.items()}


def _scalar(kind: str, value: bytes) -> Any:
    if kind == "text":
        return _text(value)
    if kind in ("id8", "id16"):
        if len(value) not in (0, int(kind[2:])):
            raise ValueError("an id is of another length")
        return value.hex()
    if kind == "bytes":
        return base64.b64encode(value).decode("ascii")
    if kind == "double":
        (number,) = struct.unpack("<d", value)
        return number if number - number == 0 else str(number)
    signed = int.from_bytes(value, "little", signed=kind in ("int", "uint"))
    if kind == "bool":
        return bool(signed)
    return str(signed) if kind in ("int", "fixed64") else signed


def _text(value: bytes) -> str:
    return value.decode("utf-8", "backslashreplace")


def _fields(data: bytes) -> Iterator[tuple[int, int, bytes]]:
    """The fields of a message: number, type on the wire, and bytes; a number in eight of them."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        number, wire = tag >> 3, tag & 7
        if wire == VARINT:
            value, end = _varint(data, at)
            yield number, wire, value.to_bytes(8, "little")
        else:
            size = {FIXED64: 8, FIXED32: 4}.get(wire, 0)
            if wire == LENGTH:
                size, at = _varint(data, at)
            end = at + size
            if end > len(data) or not number or wire not in (FIXED64, FIXED32, LENGTH):
                raise ValueError("the message is damaged")
            yield number, wire, data[at:end]
        at = end


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(data) and shift < 70:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, at
    raise ValueError("the message is damaged")


# ---- recognising ---------------------------------------------------------------------------------


def _is_request(head: bytes, at: int) -> bool:
    """Whether a list of resources begins here: by its first attribute, or its first scope."""
    try:
        start, end = _enter(head, at, 0x0A)
        resource, scopes = start, start
        if head[start] == 0x0A:
            resource, scopes = _enter(head, start, 0x0A)
        if resource < scopes <= end and head[resource] == 0x0A:
            pair, after = _enter(head, resource, 0x0A)
            first, last = _enter(head, pair, 0x0A)
            name = head[first:last]
            return after <= scopes and 0 < len(name) == last - first and _text(name).isprintable()
        first, last = _enter(head, scopes, 0x12)
        return last <= end and head[first] in (0x0A, 0x12)
    except (ValueError, IndexError):
        return False


def _enter(data: bytes, at: int, tag: int) -> tuple[int, int]:
    """Where the contents of a field begin and end."""
    if data[at] != tag:
        raise ValueError("another field")
    size, start = _varint(data, at + 1)
    return start, start + size
