"""Values of a record that is being written: Python values, or JSON text as the source wrote it."""

from __future__ import annotations

import json
import re
from datetime import datetime
from typing import Any

from msgspec import Raw

from adp.converters.json_objects import JsonObject, array_items, integer
from adp.converters.reading import BRACE, BRACKET, QUOTE
from adp_schema import jsontext
from adp_schema.model import Columns

_NUMBER = re.compile(rb"-?[0-9]")
_ODD = (b"NaN", b"Infinity")


def is_null(value: Any) -> bool:
    """Whether a value is null, or not there."""
    return value is None or (isinstance(value, Raw) and bytes(value) == b"null")


def is_text(value: Any) -> bool:
    """Whether a value is a text."""
    return isinstance(value, str) or (
        isinstance(value, Raw) and jsontext.first_byte(value) == QUOTE
    )


def plain(value: Any) -> Any:
    """A scalar as Python has it."""
    if isinstance(value, Raw):
        data = bytes(value)
        if jsontext.first_byte(value) == QUOTE:
            return jsontext.unescape(data.decode("utf-8")[1:-1])
        return None if data[:1] in b"{[" else json.loads(data)
    return value


def items_of(value: Any) -> list[Any] | None:
    """The items of a list; None when it is no list."""
    if isinstance(value, Raw):
        if jsontext.first_byte(value) != BRACKET:
            return None
        return array_items(value)
    return value if isinstance(value, list) else None


def is_number(value: Any) -> bool:
    """Whether a value is a number, and neither NaN nor infinite."""
    if isinstance(value, Raw):
        return _NUMBER.match(bytes(value)) is not None
    return isinstance(value, int | float) and not isinstance(value, bool)


def whole_number(value: Any) -> int | None:
    """The integer that a number is."""
    if not is_number(value):
        return None
    text = bytes(value).decode("ascii") if isinstance(value, Raw) else str(value)
    return integer(text) if float(text) not in (float("inf"), float("-inf")) else None


def is_numbers(value: Any, *, integers: bool) -> bool:
    """Whether a value is a list of numbers; with ``integers`` of integers only."""
    items = items_of(value)
    if items is None:
        return False
    if integers:
        return all(whole_number(item) is not None for item in items)
    return all(is_number(item) or bytes(item).lstrip(b"-") in _ODD for item in items)


def is_time(text: Any) -> bool:
    """Whether a text is a time in ISO 8601; no text at all is."""
    if text is None:
        return True
    try:
        datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        return False
    return True


def spread(source: JsonObject) -> None:
    """Put the keys of ``extra`` in the place of it; ``own`` tells the others from them.

    An ``extra`` stays whole when its keys cannot stand beside those of the object itself.
    """
    names = [name for name in source.values if name != "extra"]
    raw = source.values.get("extra")
    if raw is not None:
        child = jsontext.decode_object(raw) if jsontext.first_byte(raw) == BRACE else {}
        odd = any(name in names or jsontext.has_mark(name) for name in child)
        if odd or not child or jsontext.lost_keys(raw, child):
            source.form["whole"] = True
            return
        del source.values["extra"]
        source.values.update(child)
    if names:
        source.form["own"] = names


def lift_code(columns: Columns) -> None:
    """The code of a code call, which stands alone in its arguments."""
    text = columns.get("arguments") or ""
    if columns.get("arguments_kind") != "object" or text[0] != "{":
        return
    child = jsontext.decode_object(text.encode("utf-8"))
    if (
        list(child) == ["code"]
        and not jsontext.lost_keys(text.encode("utf-8"), child)
        and jsontext.first_byte(child["code"]) == QUOTE
    ):
        del columns["arguments"]
        columns["arguments_raw"] = jsontext.decode_value(child["code"])
        columns["arguments_kind"] = "text"
