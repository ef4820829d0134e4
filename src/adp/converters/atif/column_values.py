"""Values of columns as JSON in ``extra.adp``, and back."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec
import pyarrow as pa
from msgspec import Raw

from adp.converters.json_objects import read_time
from adp.converters.scalars import number_text
from adp_schema import jsontext, media


def write_value(value: Any, field: pa.Field, blobs: Any) -> Any:
    """A value of a column as the encoder takes it, with its base64 from ``blobs``."""
    if _is_json(field):
        return jsontext.raw(value)
    if isinstance(value, str):
        return jsontext.string(media.restore(value, blobs))
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, float):
        return jsontext.raw(number_text(value))
    return value


def _is_json(field: pa.Field) -> bool:
    return (field.metadata or {}).get(b"content") == b"json"


def same_json(first: bytes, second: bytes) -> bool:
    """Whether two JSON texts are the same but for white space and escapes."""
    return _canonical(first) == _canonical(second)


def _canonical(data: bytes) -> str:
    return jsontext.escape_non_ascii(msgspec.json.format(data, indent=-1).decode("utf-8"))


def read_value(raw: Raw, field: pa.Field, words: frozenset[str] | None) -> Any:
    """The value of a column that JSON text says; None when it is of another type.

    Raises:
        ValueError: it is none of the words that the column may hold.
    """
    if _is_json(field):
        return jsontext.one_line(raw)
    value = jsontext.decode_value(raw)
    if pa.types.is_timestamp(field.type):
        return read_time(value)[0]
    if words is not None and (not isinstance(value, str) or value not in words):
        raise ValueError(f"{field.name} cannot be {value}")
    if pa.types.is_list(field.type):
        items = value if isinstance(value, list) else [None]
        full = all(_item(item, field.type.value_type) is not None for item in items)
        return value if full else None
    return _item(value, field.type)


def _item(value: Any, of: pa.DataType) -> Any:
    """A decoded value as one of a type; None when it is of another one."""
    if pa.types.is_integer(of):
        limit = 1 << (of.bit_width - 1)
        return value if type(value) is int and -limit <= value < limit else None
    kinds: dict[Any, Any] = {pa.string(): str, pa.bool_(): bool, pa.float64(): float}
    kind = kinds[of]
    if kind is float and type(value) is int:
        value = float(value)
    return value if type(value) is kind else None
