"""Single values that move between keys of a source and columns, and keep their spelling.

``$shape`` remembers what a writer would not guess: ``exact`` (key -> number as written),
``numbers`` (keys of ids that were numbers) and ``fields`` (column -> key it was read from).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Raw

from adp_schema import jsontext
from adp_schema.extra_column import Extra, original
from adp_schema.model import Columns, Trajectory

Fields = tuple[tuple[str, tuple[str, ...], str], ...]
"""Columns of the trajectory, the keys that they are read from, and id, text, bool or number."""

_QUOTE = 0x22
_LONGEST_ID = 1000
_NULL = Raw(b"null")


def is_null(raw: Raw | None) -> bool:
    """Whether a value is JSON null."""
    return raw == _NULL


def number_text(value: float) -> str:
    """How a number is written when nothing else is known: integers without a point."""
    if isinstance(value, int):
        return str(value)
    return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)


def read_number(raw: Raw, key: str, form: dict[str, Any]) -> float | None:
    """A JSON number as a float, None when it is too large for one.

    Args:
        raw: the number.
        key: key that it stands under.
        form: takes its spelling, when it is not the usual one.
    """
    text = bytes(raw).decode("ascii")
    value = float(text)
    if value in (float("inf"), float("-inf")):
        return None
    if number_text(value) != text:
        form.setdefault("exact", {})[key] = text
    return value


def write_number(value: float | None, key: str, form: Mapping[str, Any]) -> Raw | None:
    """A number as the source wrote it, unless it was edited since; None when there is none."""
    if value is None:
        return None
    text = form.get("exact", {}).get(key)
    same = text is not None and float(text) == value
    return jsontext.raw(text if same else number_text(value))


def take_fields(
    wanted: Fields, fields: dict[str, Raw], columns: Columns, form: dict[str, Any]
) -> None:
    """Fill columns, each from the first of its keys that has a value of the wanted type.

    Args:
        wanted: the columns.
        fields: the keys of the source; those that are taken are removed.
        columns: the row.
        form: takes what a writer would not guess.
    """
    for column, keys, kind in wanted:
        for key in keys:
            value = _take(fields.get(key), kind, key, form)
            if value is not None:
                columns[column] = value
                del fields[key]
                if key != keys[0]:
                    form.setdefault("fields", {})[column] = key
                break


def _take(raw: Raw | None, kind: str, key: str, form: dict[str, Any]) -> Any:
    """The value when it has the wanted type, else None: it then stays in ``extra``."""
    if raw is None:
        return None
    first = jsontext.first_byte(raw)
    if first == _QUOTE:
        text = jsontext.decode_value(raw) if kind in ("id", "text") else None
        # A prompt under the key of an id, as some converted data sets have it, is no id.
        return None if kind == "id" and text is not None and len(text) > _LONGEST_ID else text
    if first in b"tf":
        return jsontext.decode_value(raw) if kind == "bool" else None
    if first not in b"-0123456789" or kind not in ("id", "number"):
        return None
    if kind == "number":
        return read_number(raw, key, form)
    form.setdefault("numbers", []).append(key)
    return bytes(raw).decode("ascii")


def write_field(value: Any, kind: str, key: str, extra: Extra) -> Any:
    """The inverse of `take_fields` for one column."""
    if kind == "id" and key in extra.shape.get("numbers", []) and jsontext.is_valid(value):
        return jsontext.raw(value)
    if kind == "number":
        return write_number(value, key, extra.shape)
    return jsontext.string(value) if isinstance(value, str) else value


def write_fields(
    wanted: Fields, run: Trajectory, extra: Extra, defaults: Mapping[str, Any]
) -> dict[str, Any]:
    """The inverse of `take_fields`: the keys of the source and their values.

    Args:
        wanted: the columns.
        run: the trajectory.
        extra: its unpacked column ``extra``.
        defaults: column -> value that is written when it is empty.
    """
    fields: dict[str, Any] = {}
    for column, keys, kind in wanted:
        value = original(run, column, extra)
        value = defaults.get(column) if value is None else value
        if value is not None:
            key = extra.shape.get("fields", {}).get(column, keys[0])
            fields[key] = write_field(value, kind, key, extra)
    return fields
