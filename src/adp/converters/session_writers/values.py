"""Values of lines that are written: objects with what is left of the source, and times."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from msgspec import Raw

from adp.converters.reading import BRACE, BRACKET, QUOTE
from adp_schema import jsontext

Line = dict[str, Any]

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
"""The time of what has none."""


def merged(known: Mapping[str, Any], kept: Mapping[str, Raw]) -> Line:
    """An object of known values, with the keys of the source that no column took."""
    out = dict(known)
    for key, value in kept.items():
        if isinstance(out.get(key), dict) and jsontext.first_byte(value) == BRACE:
            out[key] = merged(out[key], jsontext.decode_exact(value))
        else:
            out[key] = value
    return out


def iso(time: datetime) -> str:
    """A time as programs write it: UTC, with milliseconds, and more digits where it has them."""
    exact = "microseconds" if time.microsecond % 1000 else "milliseconds"
    return time.astimezone(UTC).isoformat(timespec=exact).replace("+00:00", "Z")


def text_at(fields: Mapping[str, Raw], key: str) -> str:
    """The string under a key, with all its characters; empty when there is none."""
    raw = fields.get(key)
    if raw is None or jsontext.first_byte(raw) != QUOTE:
        return ""
    exact = jsontext.is_valid(bytes(raw))
    text: str = jsontext.decode_value(raw) if exact else json.loads(bytes(raw))
    return text


def object_at(fields: Mapping[str, Raw], key: str) -> dict[str, Raw]:
    """The object under a key, with all its characters; empty when there is none."""
    raw = fields.get(key)
    return {} if raw is None or jsontext.first_byte(raw) != BRACE else jsontext.decode_exact(raw)


def objects_at(fields: Mapping[str, Raw], key: str) -> list[dict[str, Raw]]:
    """The objects in the list under a key."""
    raw = fields.get(key)
    if raw is None or jsontext.first_byte(raw) != BRACKET or not jsontext.is_valid(bytes(raw)):
        return []
    items = jsontext.decode_array(raw)
    return [jsontext.decode_object(it) for it in items if jsontext.first_byte(it) == BRACE]
