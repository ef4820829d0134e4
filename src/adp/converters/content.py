"""Content of a message: a text, nothing, a list of parts, or anything else; in and out.

What a part looks like is said by the format: how one is read, and how one is written.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Raw

from adp.converters.reading import BRACKET, NULL, QUOTE, opaque_columns
from adp.converters.writing import parts_of
from adp_schema import jsontext, media
from adp_schema.builder import RowBuilder
from adp_schema.extra_column import Extra, original
from adp_schema.model import Columns, Observation, Step
from adp_schema.parts import Part, Parts

OTHER_COLUMNS = frozenset({"reasoning", "tool_call"})
"""Parts that are written beside the content."""

PartReader = Callable[[Raw, Parts, RowBuilder], None]
PartWriter = Callable[[Part, Any], Any]


def read_content(
    raw: Raw | None,
    columns: Columns,
    form: dict[str, Any],
    builder: RowBuilder,
    read_part: PartReader,
) -> None:
    """Fill text and content of a step or an observation.

    Args:
        raw: the content of a message; None when there is none.
        columns: takes the columns.
        form: takes ``content``: ``list`` for a list of parts, ``value`` for what is no text at all.
        builder: takes media.
        read_part: reads one part of a list.
    """
    first = NULL if raw is None else jsontext.first_byte(raw)
    if raw is None or first == NULL:
        return
    if first == QUOTE:
        columns["text"] = builder.text(jsontext.decode_value(raw))
    elif first == BRACKET:
        form["content"] = "list"
        parts = Parts()
        for item in jsontext.decode_array(raw):
            read_part(item, parts, builder)
        columns.update(parts.columns())
    else:
        form["content"] = "value"
        columns.update(opaque_columns(raw))


def write_content(row: Step | Observation, extra: Extra, blobs: Any, write_part: PartWriter) -> Any:
    """The content of a row that was read from the format that is written, in its form."""
    text = original(row, "text", extra)
    form = extra.shape.get("content")
    if row.content is None:
        restored = None if text is None else jsontext.string(media.restore(text, blobs))
        if form == "list":
            return [] if restored is None else [{"type": "text", "text": restored}]
        return restored
    parts = parts_of(row, text, extra, exact=True)
    if form == "value" and len(parts) == 1:
        return parts[0].value
    return [write_part(part, blobs) for part in parts if part.type not in OTHER_COLUMNS]


def further_keys(
    part: dict[str, Raw], names: list[str], usual: list[str], *, later: bool = False
) -> dict[str, Any]:
    """Further keys of a part, and its keys in order when they are not the usual ones.

    Args:
        part: the keys that are left of it.
        names: its keys in order.
        usual: the usual ones.
        later: whether further keys behind the usual ones are usual, too.
    """
    extra: dict[str, Any] = {
        key: jsontext.raw(jsontext.one_line(value)) for key, value in part.items() if key != "type"
    }
    if names != ([*usual, *extra] if later else usual):
        extra["$keys"] = names
    return extra


def take_reserved(extra: dict[str, Any], name: str) -> Any:
    """Take what a part remembers under a reserved key; None when it has no such key."""
    value = extra.pop(name, None)
    return None if value is None else jsontext.decode_value(value)


def ordered(full: dict[str, Any], names: list[str] | None) -> dict[str, Any]:
    """A part in the order of the source, when that is known."""
    return full if names is None else {name: full[name] for name in names if name in full}
