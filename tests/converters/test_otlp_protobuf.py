"""Protobuf files of OpenTelemetry: each way to delimit them, every kind of field, and damage."""

from __future__ import annotations

import base64
import json
import random
import struct
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import adp
from adp.converters.files.otlp_protobuf import delimiter, messages

EXAMPLES = Path(__file__).parent / "readers" / "examples" / "otlp"


def varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def field(number: int, value: bytes | str | int | float, wire: int | None = None) -> bytes:
    """A field of a message, by the rules of the wire format."""
    if isinstance(value, float):
        return varint(number << 3 | 1) + struct.pack("<d", value)
    if isinstance(value, int):
        if wire is None:
            return varint(number << 3) + varint(value % (1 << 64))
        return varint(number << 3 | wire) + value.to_bytes(8 if wire == 1 else 4, "little")
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def pair(key: str, value: bytes) -> bytes:
    return field(1, key) + field(2, value)


VALUES = {
    "text": (field(1, "räum"), {"stringValue": "räum"}),
    "empty": (field(1, ""), {"stringValue": ""}),
    "flag": (field(2, 1), {"boolValue": True}),
    "number": (field(3, -7), {"intValue": "-7"}),
    "float": (field(4, 0.25), {"doubleValue": 0.25}),
    "nan": (field(4, float("nan")), {"doubleValue": "nan"}),
    "list": (
        field(5, field(1, field(1, "a")) + field(1, b"")),
        {"arrayValue": {"values": [{"stringValue": "a"}, {}]}},
    ),
    "object": (
        field(6, field(1, pair("k", field(3, 1)))),
        {"kvlistValue": {"values": [{"key": "k", "value": {"intValue": "1"}}]}},
    ),
    "bytes": (field(7, b"\xff\x00"), {"bytesValue": "/wA="}),
    "of a newer protocol": (field(8, 3), {"field 8": ["3"]}),
}
TRACE, SPAN = bytes(range(16)), bytes(range(8))


def span(name: str = "chat") -> bytes:
    attributes = b"".join(field(9, pair(key, data)) for key, (data, _) in VALUES.items())
    return (
        field(1, TRACE) + field(2, SPAN) + field(5, name) + field(6, 3)
        + field(7, 1790000000000000000, 1) + field(8, 1790000000000000001, 1) + attributes
        + field(15, field(2, "late") + field(3, 2)) + field(16, 257, 5) + field(99, "new")
    )  # fmt: skip


def request(item: bytes = b"", resource: str = "service.name") -> bytes:
    scope = field(1, field(1, "made by hand")) + field(2, item or span())
    holder = field(1, field(1, pair(resource, field(1, "x")))) if resource else b""
    return field(1, holder + field(2, scope))


EXPECTED: dict[str, Any] = {
    "traceId": TRACE.hex(), "spanId": SPAN.hex(), "name": "chat", "kind": 3,
    "startTimeUnixNano": "1790000000000000000", "endTimeUnixNano": "1790000000000000001",
    "attributes": [{"key": key, "value": value} for key, (_, value) in VALUES.items()],
    "status": {"message": "late", "code": 2}, "flags": 257, "field 99": ["new"],
}  # fmt: skip


def fixed(*data: bytes) -> bytes:
    return b"".join(len(item).to_bytes(4, "big") + item for item in data)


FILES = {
    "none": request() + request(),
    "varint": b"".join(varint(len(request())) + request() for _ in range(2)),
    "fixed": fixed(request(), request(resource="")),
    "zstd": fixed(*[pa.compress(request(), codec="zstd", asbytes=True)] * 2),
}


def spans_of(data: bytes) -> list[dict[str, Any]]:
    out = []
    for _, text, error in messages(data):
        assert error == ""
        for resource in json.loads(text)["resourceSpans"]:
            out += [item for scope in resource["scopeSpans"] for item in scope["spans"]]
    return out


@pytest.mark.parametrize("way", FILES)
def test_every_way_to_delimit(way):
    assert delimiter(FILES[way]) == ("fixed" if way == "zstd" else way)
    assert spans_of(FILES[way]) == [EXPECTED, EXPECTED]


def test_json_that_the_collector_compressed():
    data = fixed(pa.compress(b'{"resourceSpans": []}', codec="zstd", asbytes=True))
    assert [text for _, text, _ in messages(data)] == [b'{"resourceSpans": []}']


def test_logs():
    record = (
        field(1, 1, 1) + field(5, field(1, "body")) + field(9, TRACE) + field(12, "gen_ai.choice")
    )
    ((_, text, error),) = messages(request(record))
    (resource,) = json.loads(text)["resourceLogs"]
    assert error == ""
    assert resource["scopeLogs"][0]["logRecords"] == [
        {"timeUnixNano": "1", "traceId": TRACE.hex(), "eventName": "gen_ai.choice",
         "body": {"stringValue": "body"}}
    ]  # fmt: skip


def test_metrics_are_named():
    metric = field(1, "requests") + field(2, "how many") + field(7, b"")
    ((_, _, error),) = messages(request(metric))
    assert error == "the message holds neither spans nor logs of OpenTelemetry"


@pytest.mark.parametrize(
    "data", [b"\n" * 99, b"{}", b"\n\n\n{}", b"\x00" * 99, b"# Title\n\ntext", bytes(range(99))]
)
def test_other_files_are_left_alone(data):
    assert delimiter(data) is None


def test_a_file_that_ends_early():
    answers = [error for _, _, error in messages(FILES["fixed"][:-1])]
    assert answers == ["", "the file ends inside this message"]


def test_damage_is_a_sentence():
    rng = random.Random(5)
    for data in FILES.values():
        for _ in range(300):
            broken = bytearray(data)
            for _ in range(rng.randint(1, 4)):
                broken[rng.randrange(len(broken))] = rng.randrange(256)
            for _, text, error in messages(bytes(broken[: rng.randint(9, len(broken))])):
                assert bool(error) != bool(text)


def test_a_file_becomes_the_rows_of_its_json(tmp_path):
    """The example of the reader, written by the rules of the wire format."""
    text = (EXAMPLES / "conversation.jsonl").read_bytes()
    path = tmp_path / "spans.binpb"
    path.write_bytes(fixed(*(encoded(json.loads(line)) for line in text.splitlines() if line)))
    stores = []
    for source in (path, EXAMPLES / "conversation.jsonl"):
        store = str(tmp_path / source.suffix[1:])
        assert adp.convert([str(source)], store).manifest.counts.used == 1
        sql = "SELECT * EXCLUDE (seq, trajectory_id, extra) FROM {} ORDER BY ALL"
        stores.append([adp.query(store, sql.format(name)).to_pylist()
                       for name in ("steps", "tool_calls", "observations")])  # fmt: skip
    assert stores[0] == stores[1]


def _value(value: dict[str, Any]) -> bytes:
    ((kind, inner),) = value.items()
    if kind == "arrayValue":
        return field(5, b"".join(field(1, _value(item)) for item in inner["values"]))
    if kind == "kvlistValue":
        return field(6, _pairs(1, inner["values"]))
    return field({"stringValue": 1, "boolValue": 2, "intValue": 3, "doubleValue": 4}[kind],
                 int(inner) if kind == "intValue" else inner)  # fmt: skip


def _pairs(number: int, items: list[dict[str, Any]]) -> bytes:
    return b"".join(field(number, pair(item["key"], _value(item["value"]))) for item in items)


def _span(item: dict[str, Any]) -> bytes:
    events = [
        field(11, field(1, int(it["timeUnixNano"]), 1) + field(2, it["name"])
              + _pairs(3, it["attributes"]))
        for it in item.get("events", [])
    ]  # fmt: skip
    status = item.get("status", {})
    return (
        field(1, bytes.fromhex(item["traceId"])) + field(2, bytes.fromhex(item["spanId"]))
        + field(4, bytes.fromhex(item.get("parentSpanId", ""))) + field(5, item["name"])
        + field(6, item["kind"]) + field(7, int(item["startTimeUnixNano"]), 1)
        + field(8, int(item["endTimeUnixNano"]), 1) + _pairs(9, item["attributes"])
        + b"".join(events)
        + field(15, field(2, status.get("message", "")) + field(3, status.get("code", 0)))
    )  # fmt: skip


def encoded(document: dict[str, Any]) -> bytes:
    out = b""
    for resource in document["resourceSpans"]:
        scopes = b""
        for scope in resource["scopeSpans"]:
            names = field(1, scope["scope"]["name"]) + field(2, scope["scope"].get("version", ""))
            spans = b"".join(field(2, _span(item)) for item in scope["spans"])
            scopes += field(2, field(1, names) + spans)
        attributes = _pairs(1, resource["resource"]["attributes"])
        out += field(1, field(1, attributes) + scopes)
    return out


def test_the_library_of_opentelemetry_reads_the_same():
    """An oracle, where it is installed: opentelemetry-proto."""
    trace = pytest.importorskip("opentelemetry.proto.trace.v1.trace_pb2")
    from google.protobuf.json_format import MessageToDict

    def hexed(value: Any) -> Any:
        if isinstance(value, list):
            return [hexed(item) for item in value]
        if not isinstance(value, dict):
            return value
        ids = ("traceId", "spanId", "parentSpanId")
        return {
            key: base64.b64decode(item).hex() if key in ids else hexed(item)
            for key, item in value.items()
        }

    for line in (EXAMPLES / "conversation.jsonl").read_bytes().splitlines():
        data = encoded(json.loads(line))
        message = trace.TracesData.FromString(data)
        theirs = hexed(MessageToDict(message, use_integers_for_enums=True))
        ((_, text, _),) = messages(data)
        ours = json.loads(text)
        for item in (span for it in ours["resourceSpans"] for s in it["scopeSpans"]
                     for span in s["spans"]):  # fmt: skip
            _without_defaults(item)
        assert ours == theirs


def _without_defaults(item: dict[str, Any]) -> None:
    """The library leaves out what is empty or zero."""
    if not item["parentSpanId"]:
        del item["parentSpanId"]
    item["status"] = {key: value for key, value in item["status"].items() if value}
