"""Records in a list of one object: pages of an API, and exports such as ``{"runs": [...]}``.

The list stands under a key that says no more than that records are there. What stands beside it,
such as the number of the page, is of no record.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import msgspec
from msgspec import Raw

from adp.converters.files.streams import InputStream
from adp.converters.files.unpacked import UnpackedStream
from adp.converters.frames import Frame
from adp.converters.reading import BRACE, BRACKET
from adp_schema import jsontext

BOM = b"\xef\xbb\xbf"
KEYS = ("data", "items", "records", "results", "rows", "entries", "traces", "spans", "runs",
        "observations", "sessions", "conversations", "trajectories", "samples", "examples",
        "episodes", "completions", "responses", "requests", "logs")  # fmt: skip
"""Keys of such lists."""


@dataclass(frozen=True)
class ListedRecords:
    """The records of one object.

    Attributes:
        key: where their list stands.
        records: offset in the file and text of each.
        rest: what else the object holds, as JSON; empty when it is nothing.
    """

    key: str
    records: list[tuple[int, bytes]]
    rest: bytes


def listed_records(data: bytes) -> ListedRecords | None:
    """The records in a list of an object, or the only one under ``data``; None without any.

    Args:
        data: a whole file.
    """
    try:
        values = jsontext.decode_object(data)
        if jsontext.lost_keys(data, values):
            return None
        key = next((key for key in values if key in KEYS and _items(key, values[key])), None)
    except (msgspec.DecodeError, RecursionError):
        return None
    if key is None:
        return None
    at = _start(data, values, key)
    records = []
    for item in _items(key, values[key]):
        text = bytes(item)
        at = data.find(text, at)
        records.append((at, text))
        at += len(text)
    rest = {name: value for name, value in values.items() if name != key}
    return ListedRecords(key, records, jsontext.encode(rest) if rest else b"")


def listed_frames(file: Frame, source: InputStream | UnpackedStream) -> Iterator[Frame]:
    """The records of a file, and what stands beside them, which is skipped.

    Args:
        file: the whole file.
        source: where it comes from.
    """
    start = len(BOM) if file.data.startswith(BOM) else 0
    listed = None if source.fault or file.hash else listed_records(file.data[start:])
    if listed is None:
        file.error = source.fault or "there is no list of records in it"
        yield file
        return
    for number, (offset, data) in enumerate(listed.records, 1):
        yield Frame(data, number, start + offset, len(data))
    if listed.rest:
        reason = f"it stands beside the list of records, {listed.key}, and is of none of them"
        yield Frame(listed.rest, len(listed.records) + 1, 0, len(listed.rest), skip=reason)


def _start(data: bytes, values: dict[str, Raw], key: str) -> int:
    """A place before the list, and behind the values before it, which may hold its text."""
    at = 0
    for name, value in values.items():
        at = data.find(bytes(value), at)
        if name == key:
            break
        at += len(value)
    return at


def _items(key: str, raw: Raw) -> list[Raw]:
    """The objects of a list; none when it holds anything else."""
    first = jsontext.first_byte(raw)
    if first == BRACE and key == "data":
        return [raw]
    items: list[Raw] = jsontext.decode_array(raw) if first == BRACKET else []
    return items if all(jsontext.first_byte(item) == BRACE for item in items) else []
