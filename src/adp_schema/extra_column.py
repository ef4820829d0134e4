"""The column ``extra``: what no other column holds, and what a round trip needs.

``extra`` is a JSON object. Its plain keys are keys of the source that no column holds, with
their values as written. Reserved keys begin with a dollar sign:

- ``$null``: names of columns whose value was null in the source;
- ``$absent``: names of keys that the source left out where they are usually written;
- ``$shape``: the form that the source's own format used, for writing it back the same way;
- ``$escaped``: originals of columns whose characters cannot be stored (lone surrogates, NaN);
- ``$parsed``: what was recovered from texts, or set by a recipe, after the row was read;
- ``$tool_names``: what the source calls a tool and its arguments, where they were renamed.

A key of the source that begins with a dollar sign gets a second one.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
from msgspec import Raw

from adp_schema import jsontext
from adp_schema.model import Row

TOOL_NAMES = "$tool_names"
RESERVED = ("$null", "$absent", "$shape", "$escaped", "$parsed", TOOL_NAMES)


@dataclass
class Extra:
    """The unpacked column ``extra``.

    Attributes:
        fields: keys of the source and their JSON text.
        shape: the value of ``$shape``.
        null: the value of ``$null``.
        absent: the value of ``$absent``.
        escaped: the value of ``$escaped``: column name -> original.
        parsed: the value of ``$parsed``.
        tool_names: the value of ``$tool_names``.
    """

    fields: dict[str, Raw] = field(default_factory=dict)
    shape: dict[str, Any] = field(default_factory=dict)
    null: list[str] = field(default_factory=list)
    absent: list[str] = field(default_factory=list)
    escaped: dict[str, str] = field(default_factory=dict)
    parsed: dict[str, Any] = field(default_factory=dict)
    tool_names: dict[str, Any] = field(default_factory=dict)


_EMPTY = Extra()


def pack(
    fields: Mapping[str, Any] | None = None,
    *,
    shape: Mapping[str, Any] | None = None,
    null: list[str] | None = None,
    absent: list[str] | None = None,
) -> str | None:
    """Build the column ``extra``; None when there is nothing to say.

    Args:
        fields: keys of the source; values are `Raw` (kept as written) or plain values.
        shape: the form of the source, plain values.
        null: names of columns whose value was null.
        absent: names of keys that were left out.
    """
    if type(fields) is dict and fields and not (null or absent or shape):
        text = jsontext.text_of(fields)
        # As it is: no key begins with a dollar sign, and no value is spread over lines.
        if '"$' not in text and "\n" not in text and "\r" not in text:
            return text
    out: dict[str, Any] = {}
    for key, value in (fields or {}).items():
        name = "$" + key if key.startswith("$") else key
        out[name] = jsontext.raw_line(value) if isinstance(value, Raw) else value
    for name, reserved in (("$null", null), ("$absent", absent), ("$shape", shape)):
        if reserved:
            out[name] = reserved
    return jsontext.text_of(out) if out else None


def unpack(text: str | None) -> Extra:
    """Take the column ``extra`` apart."""
    if text is None:
        return _EMPTY
    values = jsontext.decode_object(text.encode("utf-8"))
    reserved = {name: msgspec.json.decode(values.pop(name)) for name in RESERVED if name in values}
    escaped = reserved.get("$escaped") or {}
    if "extra" in escaped:
        _put_originals(values, escaped["extra"])
    fields = {key[1:] if key.startswith("$") else key: value for key, value in values.items()}
    return Extra(
        fields=fields,
        shape=reserved.get("$shape") or {},
        null=reserved.get("$null") or [],
        absent=reserved.get("$absent") or [],
        escaped=escaped,
        parsed=reserved.get("$parsed") or {},
        tool_names=reserved.get(TOOL_NAMES) or {},
    )


def with_parsed(text: str | None, parsed: Mapping[str, Any]) -> str:
    """The column ``extra`` with a value of ``$parsed``, which it does not have yet.

    Args:
        text: the column.
        parsed: plain values.
    """
    return with_reserved(text, "$parsed", parsed)


def with_reserved(text: str | None, name: str, value: Mapping[str, Any]) -> str:
    """The column ``extra`` with a reserved key, which it does not have yet.

    Args:
        text: the column.
        name: the key.
        value: plain values.
    """
    start = "{" if text is None or text == "{}" else text[:-1] + ","
    return f'{start}"{name}":{jsontext.text_of(value)}}}'


def with_changed_columns(text: str | None, before: Mapping[str, Any]) -> str:
    """The column ``extra`` of a row some of whose columns were set after it was read.

    Args:
        text: the column.
        before: column -> the value that was read; None when there was none.
    """
    values = jsontext.decode_object((text or "{}").encode("utf-8"))
    parsed = msgspec.json.decode(values.pop("$parsed")) if "$parsed" in values else {}
    known = {*parsed.get("columns", ()), *parsed.get("replaced", ())}
    new = {name: value for name, value in before.items() if name not in known}
    empty = [name for name, value in new.items() if value is None]
    replaced = {name: value for name, value in new.items() if value is not None}
    for key, more in (("columns", [*parsed.get("columns", ()), *empty]),
                      ("replaced", {**parsed.get("replaced", {}), **replaced})):  # fmt: skip
        if more:
            parsed[key] = more
    return jsontext.text_of({**values, "$parsed": parsed} if parsed else values)


def without_parsed(text: str | None) -> str | None:
    """The column ``extra`` without ``$parsed``; None when nothing else is in it."""
    return without_reserved(text, "$parsed")


def without_reserved(text: str | None, name: str) -> str | None:
    """The column ``extra`` without a reserved key; None when nothing else is in it."""
    if text is None or f'"{name}"' not in text:
        return text
    start = text.rfind(f',"{name}":')
    if start > 0 and jsontext.is_valid(text[start + len(name) + 4 : -1]):
        return text[:start] + "}"  # it is the last key, as `with_reserved` wrote it
    values = jsontext.decode_object(text.encode("utf-8"))
    values.pop(name, None)
    return jsontext.text_of(values) if values else None


def _put_originals(values: dict[str, Raw], original: str) -> None:
    """Put back the characters of the source where a value was not edited since."""
    marked = jsontext.decode_object(jsontext.sanitise(original.encode("utf-8")))
    for key, value in marked.items():
        name = jsontext.mend_text(key)[0]
        result, written = jsontext.mend_json(bytes(value).decode("utf-8"))
        if name in values and bytes(values[name]) == result.encode("utf-8"):
            values[name] = jsontext.raw(written)


def mend_row(row: dict[str, Any], json_columns: frozenset[str]) -> None:
    """Clean a row that came from a sanitised record; originals go to ``extra.$escaped``.

    Args:
        row: column name -> value; changed in place.
        json_columns: the columns that hold JSON text.
    """
    escaped: dict[str, str] = {}
    for name, value in list(row.items()):
        if not isinstance(value, str) or not jsontext.has_mark(value):
            continue
        if name == "arguments":
            _mend_arguments(row, escaped)
        elif name in json_columns:
            row[name], escaped[name] = jsontext.mend_json(value)
        else:
            row[name], escaped[name] = jsontext.mend_text(value)
    if escaped:
        text = row.get("extra") or "{}"
        comma = "" if text == "{}" else ","
        row["extra"] = f'{text[:-1]}{comma}"$escaped":{jsontext.text_of(escaped)}}}'


def _mend_arguments(row: dict[str, Any], escaped: dict[str, str]) -> None:
    """Arguments that cannot be stored as JSON move to ``arguments_raw``."""
    value = row["arguments"]
    row["arguments"] = None
    if row.get("arguments_kind") == "object":
        row["arguments_raw"] = jsontext.mend_json(value)[1]
    else:
        row["arguments_raw"], escaped["arguments_raw"] = jsontext.mend_text(value)


def original(row: Row, column: str, extra: Extra) -> Any:
    """The value of a column with the characters of the source.

    Args:
        row: a row of the store. A value that was edited since it was read wins over the original.
        column: name of a text or JSON-text column.
        extra: the row's unpacked ``extra``.
    """
    value = getattr(row, column)
    if column not in extra.escaped or value is None:
        return value
    saved = extra.escaped[column]
    if column in _json_columns(type(row)):
        marked = jsontext.sanitise(saved.encode("utf-8")).decode("utf-8")
        return saved if jsontext.mend_json(marked)[0] == value else value
    text = jsontext.unescape(saved)
    return text if jsontext.replace_surrogates(text) == value else value


@functools.cache
def _json_columns(row: type[Row]) -> frozenset[str]:
    from adp_schema.tables import columns_of

    return frozenset(
        name
        for name, column in columns_of(row).items()
        if (column.metadata or {}).get(b"content") == b"json"
    )
