"""The lines of a log, each an object; one that is none is kept and reported."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec
from msgspec import Raw

from adp.converters.kit.source_object import SourceObject
from adp.converters.reading import BRACE, BRACKET
from adp_schema import jsontext
from adp_schema.builder import RowBuilder
from adp_schema.errors import RecordError
from adp_schema.losses import Losses
from adp_schema.protocols import RawRecord

_BETWEEN = b",\n"
"""Between two lines; no JSON value of a single line has a line end in it."""


def log_lines(
    record: RawRecord,
    builder: RowBuilder,
    losses: Losses,
    make: Callable[[Raw | bytes, str, Losses], SourceObject] = SourceObject,
) -> Iterator[tuple[SourceObject, str]]:
    """The objects of a log, and the text of each line that is none.

    Args:
        record: the lines as a JSON array, or one document.
        builder: is told when a line had to be sanitised.
        losses: takes lines that are no objects.
        make: makes the object of a line, from its text and its path.

    Yields:
        An object and an empty text, or an object without keys and the text of the line.

    Raises:
        RecordError: no line is an object.
    """
    usable = 0
    items, valid = _items(record.data, builder)
    is_list = jsontext.first_byte(record.data) == BRACKET
    for index, raw in enumerate(items):
        path = f"$[{index}]" if is_list else "$"
        data = raw if valid else _decodable(raw, builder)
        if data is not None and jsontext.first_byte(data) == BRACE:
            usable += 1
            yield make(data, path, losses), ""
        else:
            why = "the line is no JSON" if data is None else "the line is no object"
            losses.add(path, f"{why}; its text is kept in an event")
            text = bytes(raw).decode("utf-8", "backslashreplace")
            yield SourceObject(None, path, losses), jsontext.unmark_json(text)
    if not usable:
        raise RecordError("no line is a JSON object")


def json_lines(
    record: RawRecord, builder: RowBuilder, losses: Losses
) -> tuple[list[Raw], list[str]]:
    """The lines of a log whose lines are any JSON, and the texts of those that are none.

    Args:
        record: the lines as a JSON array, or one document.
        builder: is told when a line had to be sanitised.
        losses: takes lines that are no JSON.
    """
    items, valid = _items(record.data, builder)
    good: list[Raw] = []
    broken: list[str] = []
    for index, item in enumerate(items):
        data = item if valid else _decodable(item, builder)
        if data is not None:
            good.append(Raw(data))
            continue
        losses.add(f"$[{index}]", "the line is no JSON; its text is kept in an event")
        broken.append(jsontext.unmark_json(bytes(item).decode("utf-8", "backslashreplace")))
    return good, broken


def _items(data: bytes, builder: RowBuilder) -> tuple[list[Raw] | list[bytes], bool]:
    """The lines, and whether it is known that each can be decoded."""
    if jsontext.first_byte(data) != BRACKET:
        return [data], False
    try:
        items: list[Raw] = jsontext.decode_array(data)
        return items, True
    except (msgspec.DecodeError, RecursionError):
        lines = data[1:-1].split(_BETWEEN)
    # A list that is no strict JSON may be a document, whose items are no lines.
    if _decodable(lines[0], builder) is None and (whole := _decodable(data, builder)) is not None:
        items = jsontext.decode_array(whole)
        return items, True
    return lines, False


def _decodable(raw: Raw | bytes, builder: RowBuilder) -> Raw | bytes | None:
    """A line that can be decoded, sanitised when that is needed; None when it cannot be."""
    if jsontext.is_valid(bytes(raw)):
        return raw
    try:
        data = jsontext.sanitise(bytes(raw))
    except ValueError:
        return None
    if not jsontext.is_valid(data) or jsontext.depth(data) > jsontext.MAX_DEPTH:
        return None
    builder.mark()
    return data
