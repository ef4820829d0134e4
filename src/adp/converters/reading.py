"""What readers share: objects and what they lose, texts, JSON in strings, tools and arguments.

A reader decodes an object one level deep, takes the values that columns hold, and packs the rest
into ``extra``: `take_text` and its like remove what they return.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeGuard

import msgspec
from msgspec import Raw

from adp_schema import jsontext
from adp_schema.errors import RecordError
from adp_schema.losses import Losses
from adp_schema.model import Columns
from adp_schema.parts import Parts
from adp_schema.protocols import RawRecord

if TYPE_CHECKING:
    from adp_schema.builder import RowBuilder

QUOTE, BRACE, BRACKET, NULL = 0x22, 0x7B, 0x5B, 0x6E
"""First bytes of a string, an object, a list and null; see `jsontext.first_byte`."""

NULL_VALUE = Raw(b"null")

NUMBER = b"-0123456789"
"""First bytes of numbers."""


def record_fields(record: RawRecord, losses: Losses) -> dict[str, Raw]:
    """The keys of a record and their JSON text.

    Raises:
        RecordError: it is no object.
        msgspec.DecodeError: it is no JSON; the caller reads it again, sanitised.
    """
    try:
        fields = jsontext.decode_object(record.data)
    except msgspec.ValidationError:
        raise RecordError("expected an object") from None
    report_lost(record.data, fields, "$", losses)
    return fields


def object_fields(
    raw: Raw | bytes, path: str, losses: Losses, what: str = "an object"
) -> dict[str, Raw]:
    """The keys of an object inside a record and their JSON text.

    Raises:
        RecordError: it is no object; the message says ``what`` was expected.
    """
    try:
        fields = jsontext.decode_object(raw)
    except msgspec.DecodeError:
        raise RecordError(f"expected {what}", path) from None
    report_lost(raw, fields, path, losses)
    return fields


def report_lost(text: Raw | bytes, decoded: dict[str, Raw], path: str, losses: Losses) -> None:
    """Report keys that an object has twice, and those whose characters cannot be stored."""
    for name in jsontext.lost_keys(text, decoded):
        losses.add(f"{path}.{name}", "the key occurs twice; the last value was kept")
    if "".join(decoded).isascii():
        return
    for name in filter(jsontext.has_mark, decoded):
        result = jsontext.mend_text(name)[0]
        losses.add(f"{path}.{result}", "lone surrogates in the key were replaced")


def begins(raw: Raw | None, first: int) -> TypeGuard[Raw]:
    """Whether a value is there and begins with a character, such as `BRACE` for an object."""
    return raw is not None and jsontext.first_byte(raw) == first


def drop_nulls(fields: dict[str, Raw]) -> tuple[str, ...]:
    """Take away the keys whose value is null, and return them."""
    if NULL_VALUE not in fields.values():
        return ()
    names = tuple(name for name, value in fields.items() if value == NULL_VALUE)
    for name in names:
        del fields[name]
    return names


def text_at(fields: Mapping[str, Raw], key: str) -> str | None:
    """The string under a key; None when there is none."""
    raw = fields.get(key)
    if raw is None or jsontext.first_byte(raw) != QUOTE:
        return None
    text: str = jsontext.decode_value(raw)
    return text


def take_text(fields: dict[str, Raw], key: str) -> str | None:
    """Take the string under a key; None, and what is there stays, when there is none."""
    raw = fields.get(key)
    if raw is None or jsontext.first_byte(raw) != QUOTE:
        return None
    del fields[key]
    text: str = jsontext.decode_value(raw)
    return text


def take_first_text(fields: dict[str, Raw], keys: tuple[str, ...]) -> tuple[str, str] | None:
    """Take the string under the first of some keys that has one: the key and the string."""
    for key in keys:
        if (text := take_text(fields, key)) is not None:
            return key, text
    return None


def report_marks(text: str, path: str, losses: Losses) -> None:
    """Report a text that is no column, and whose characters cannot be stored."""
    if not text.isascii() and jsontext.has_mark(text):
        losses.add(path, "lone surrogates were replaced")


# ---- JSON inside a string ------------------------------------------------------------------------


def string_layout(text: str) -> dict[str, Any]:
    """Layout of JSON that a source wrote inside a string, for writing it the same way."""
    data = text.encode("utf-8", "surrogatepass")
    for layout, indent in (("spaced", 0), ("compact", -1), ("indented", 2)):
        try:
            if jsontext.relayout(data, indent) == data:
                return {"layout": layout, "ascii": data.isascii()}
        except ValueError:
            break
    return {"layout": None, "ascii": data.isascii()}


def json_in_string(
    raw: Raw, path: str, builder: RowBuilder, losses: Losses
) -> tuple[bytes, dict[str, Any], bool]:
    """The JSON inside a string.

    Args:
        raw: the string.
        path: where it is.
        builder: is told when the JSON had to be sanitised.
        losses: takes a layout that cannot be written again.

    Returns:
        The JSON, its layout, and whether it had to be sanitised here.
    """
    text = jsontext.decode_value(raw)
    layout = string_layout(text)
    if layout["layout"] is None:
        losses.add(path, "the white space between the tokens of the JSON string is not kept")
    data: bytes = text.encode("utf-8")
    if jsontext.is_valid(data):
        return data, layout, False
    data = jsontext.sanitise(data)
    builder.mark()
    return data, layout, True


def list_items(
    raw: Raw,
    place: tuple[str, str],
    form: dict[str, Any],
    key: str,
    builder: RowBuilder,
    losses: Losses,
) -> tuple[list[Raw], bool]:
    """The items of a list that may stand inside a string, as data sets in Parquet have them.

    Args:
        raw: the list, or a string of one.
        place: its path, and what its items are, for the message.
        form: takes the layout of a string.
        key: key of that layout.
        builder: is told when the list had to be sanitised.
        losses: takes a layout that cannot be written again.

    Returns:
        The items, and whether they had to be sanitised here.

    Raises:
        RecordError: it is no list.
    """
    path, what = place
    data: Raw | bytes = raw
    marked = False
    if jsontext.first_byte(raw) == QUOTE:
        data, form[key], marked = json_in_string(raw, path, builder, losses)
    try:
        return jsontext.decode_array(data), marked
    except msgspec.DecodeError as error:
        raise RecordError(f"expected a list of {what}", path) from error


# ---- values of one kind --------------------------------------------------------------------------


def tools_text(raw: Raw | None) -> str | None:
    """Tools as JSON text: those of a list, or of a string of one; None for anything else."""
    if begins(raw, BRACKET):
        return jsontext.one_line(raw)
    if not begins(raw, QUOTE):
        return None
    text: str = jsontext.decode_value(raw)
    fits = text.lstrip().startswith("[") and jsontext.is_valid(text)
    return text if fits and not jsontext.has_mark(text) else None


def argument_columns(raw: Raw | bytes) -> Columns:
    """The columns of the arguments of a call: JSON, a string of JSON, or any other string."""
    if jsontext.first_byte(raw) != QUOTE:
        return {"arguments": jsontext.one_line(raw), "arguments_kind": "object"}
    text = jsontext.decode_value(raw)
    if jsontext.is_valid(text):
        return {"arguments": text, "arguments_kind": "json_string"}
    return {"arguments_raw": text, "arguments_kind": "invalid"}


def opaque_columns(raw: Raw) -> Columns:
    """The columns of a content that is kept as the source wrote it."""
    parts = Parts()
    parts.opaque(jsontext.raw(jsontext.one_line(raw)))
    return {**parts.columns()}
