"""What a growing store refuses, because no reader could make anything of it.

A conversion makes only rows that pass: its JSON comes from records that were decoded, its parts
from `adp_schema.parts`. Here rows come from anywhere, and what is appended cannot be mended later.
"""

from __future__ import annotations

import functools
from datetime import UTC, datetime
from typing import Any

import msgspec

from adp_schema import jsontext
from adp_schema.arrow import json_columns
from adp_schema.errors import SchemaError
from adp_schema.model import Columns
from adp_schema.parts import Part
from adp_schema.tables import TABLES

_DEEPEST = jsontext.MAX_DEPTH + 8
"""Columns put a few levels around the value of a record."""

_WANTED = {"text": "span", "reasoning": "span", "media": "media_id", "tool_call": "call"}


class _Loss(msgspec.Struct):
    path: str
    reason: str


class _Extra(msgspec.Struct):
    """The keys of ``extra`` that this package reads."""

    null: list[str] = msgspec.field(name="$null", default_factory=list)
    absent: list[str] = msgspec.field(name="$absent", default_factory=list)
    shape: dict[str, Any] = msgspec.field(name="$shape", default_factory=dict)
    escaped: dict[str, str] = msgspec.field(name="$escaped", default_factory=dict)


_FORMS: dict[str, tuple[msgspec.json.Decoder[Any], str]] = {
    "content": (msgspec.json.Decoder(list[Part]), "a list of content parts"),
    "losses": (msgspec.json.Decoder(list[_Loss]), "a list of {path, reason}"),
    "extra": (msgspec.json.Decoder(_Extra), "a JSON object"),
}


def check_readable(table: str, rows: list[Columns]) -> None:
    """Check dates and JSON of some rows of a table.

    Raises:
        SchemaError: a date has no year from 1 to 9999 in UTC, or a text is not the JSON that its
            column holds.
    """
    columns = json_columns(table)
    dates = _dates(table)
    for row in rows:
        for name in row.keys() & columns:
            if fault := _json_fault(name, row[name]):
                raise SchemaError(f"column {table}.{name} {fault}")
        for name in row.keys() & dates:
            if not _has_year(row[name]):
                raise SchemaError(
                    f"column {table}.{name} has no year from 1 to 9999 in UTC: {row[name]}"
                )


def _json_fault(name: str, text: str) -> str | None:
    if text.count("[") + text.count("{") > _DEEPEST and jsontext.depth(text.encode()) > _DEEPEST:
        return f"is JSON of more than {_DEEPEST} levels; flatten it"
    if not jsontext.is_valid(text):
        return "is not JSON that every reader takes; give it as json.dumps writes it, without NaN"
    if name not in _FORMS:
        return None
    decoder, form = _FORMS[name]
    try:
        value = decoder.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        return f"is not {form}: {error}"
    return _parts_fault(value) if name == "content" else None


def _parts_fault(parts: list[Part]) -> str | None:
    for part in parts:
        if part.type != "opaque" and part.type not in _WANTED:
            return f"holds a part of the unknown type {part.type!r}"
        wanted = _WANTED.get(part.type)
        if wanted is not None and getattr(part, wanted) is None:
            return f"holds a part of type {part.type} without {wanted}"
        if part.span is not None and not 0 <= part.span[0] <= part.span[1]:
            return f"holds a part whose span {list(part.span)} is no range of characters"
    return None


def _has_year(value: datetime) -> bool:
    if value.tzinfo is None:
        return True
    try:
        value.astimezone(UTC)
    except OverflowError:
        return False
    return True


@functools.cache
def _dates(table: str) -> frozenset[str]:
    fields = TABLES[table].row.model_fields.items()
    return frozenset(name for name, info in fields if info.annotation == datetime | None)
