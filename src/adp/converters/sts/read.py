"""Reading: the lines of a file into trajectories."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec import Raw

from adp.converters.openai_chat.content import content_columns
from adp.converters.openai_chat.read import read_call, take_tools
from adp.converters.reading import (
    BRACE,
    BRACKET,
    NUMBER,
    begins,
    drop_nulls,
    object_fields,
    opaque_columns,
    report_marks,
    take_text,
    text_at,
)
from adp.converters.scalars import is_null, take_fields
from adp.converters.sts import keys as k
from adp.converters.sts.write import digits_of, time_of
from adp_schema import extra_column, jsontext
from adp_schema.builder import RowBuilder
from adp_schema.errors import RecordError
from adp_schema.losses import Losses
from adp_schema.model import Columns
from adp_schema.protocols import RawRecord

_FIRST = "the first line is no header of a session"
_SECOND = "another session begins here; put each into a file of its own"


def read_session(record: RawRecord, builder: RowBuilder, losses: Losses) -> None:
    """Convert a file.

    Raises:
        RecordError: it does not begin with a header, has another one, or a line is wrong.
    """
    try:
        lines = jsontext.decode_array(record.data)
    except msgspec.ValidationError:
        raise RecordError("expected the lines of a session") from None
    for index, raw in enumerate(lines):
        path = f"$[{index}]"
        line = object_fields(raw, path, losses)
        kind = text_at(line, "type")
        if (kind == "session") != (index == 0):
            raise RecordError(_SECOND if index else _FIRST, f"{path}.type")
        if index == 0:
            _header(line, builder)
        elif kind == "message" and begins(line.get("message"), BRACE):
            _message(line, _Place(builder, losses, path))
        else:
            _whole_line(raw, builder)


def _header(line: dict[str, Raw], builder: RowBuilder) -> None:
    names = list(line)
    form: dict[str, Any] = {}
    columns: Columns = {}
    del line["type"]
    take_tools(line, columns, form)
    take_fields(k.HEADER_FIELDS, line, columns, form)
    usual = ["type", *(keys[0] for _, keys, _ in k.HEADER_FIELDS), "tools"]
    guessed = [name for name in usual if name in names and name not in line]
    if names != [*guessed, *line]:
        form["keys"] = names
    columns["extra"] = extra_column.pack(line, shape=form)
    builder.trajectory(columns)


def _whole_line(raw: Raw, builder: RowBuilder) -> None:
    """A line that is no message is kept as it is."""
    extra = extra_column.pack(None, shape={"whole_line": True, "content": "value"})
    builder.step({"source": "environment", "kind": "event", **opaque_columns(raw), "extra": extra})


@dataclass(frozen=True)
class _Place:
    """Where a message goes, and where it is."""

    builder: RowBuilder
    losses: Losses
    path: str


def _message(line: dict[str, Raw], at: _Place) -> None:
    form: dict[str, Any] = {}
    names = list(line)
    message = object_fields(line.pop("message"), f"{at.path}.message", at.losses)
    around = _around(line, names, message, form, at.path, at.losses)
    role = text_at(message, "role")
    if role is None:
        raise RecordError("expected a role", f"{at.path}.message.role")
    report_marks(role, f"{at.path}.message.role", at.losses)
    if role == "tool":
        _result(message, around, form, at)
    else:
        _step(message, role, around, form, at)


def _around(
    line: dict[str, Raw],
    names: list[str],
    message: dict[str, Raw],
    form: dict[str, Any],
    path: str,
    losses: Losses,
) -> dict[str, Raw]:
    """What is beside ``message`` in a line, by the names that it has in ``extra``."""
    around: dict[str, Raw] = {}
    for name, value in line.items():
        if name == "type" or is_null(value):
            continue
        if f"line.{name}" in message:
            losses.add(f"{path}.{name}", f"the message has a key line.{name}")
            names.remove(name)
        else:
            around[f"line.{name}"] = value
    if names != k.LINE_KEYS or any(name.startswith("line.") for name in message):
        form["line"] = names
    return around


def _step(
    message: dict[str, Raw], role: str, around: dict[str, Raw], form: dict[str, Any], at: _Place
) -> None:
    names = list(message)
    nulls = drop_nulls(message)
    source = k.ROLE_SOURCES.get(role, "environment")
    columns: Columns = {"source": source, "kind": "llm_turn" if source == "agent" else "message"}
    if role in k.ROLE_SOURCES:
        del message["role"]
    content_columns(message.pop("content", None), columns, form, at.builder)
    for key, column in (("reasoningContent", "reasoning"), ("model", "model")):
        columns[column] = take_text(message, key)
    _time(message, columns, form)
    calls: list[Raw] = []
    if begins(message.get("toolCalls"), BRACKET):
        calls = jsontext.decode_array(message.pop("toolCalls"))
        if not calls:
            form["tool_calls"] = "list"
    columns["extra"] = _pack(names, nulls, {**message, **around}, form, k.STEP_KEYS)
    at.builder.step(columns)
    requestor = "user" if source == "user" else "agent"
    for index, call in enumerate(calls):
        path = f"{at.path}.message.toolCalls[{index}]"
        read_call(call, requestor, path, at.builder, at.losses)


def _result(
    message: dict[str, Raw], around: dict[str, Raw], form: dict[str, Any], at: _Place
) -> None:
    names = list(message)
    nulls = drop_nulls(message)
    columns: Columns = {"source": "environment"}
    del message["role"]
    content_columns(message.pop("content", None), columns, form, at.builder)
    answers = take_text(message, "toolCallId")
    _time(message, columns, form)
    columns["extra"] = _pack(names, nulls, {**message, **around}, form, k.RESULT_KEYS)
    at.builder.observation(columns, answers=answers)


def _time(message: dict[str, Raw], columns: Columns, form: dict[str, Any]) -> None:
    raw = message.get("timestamp")
    if raw is None or jsontext.first_byte(raw) not in NUMBER:
        return
    text = bytes(raw).decode("ascii")
    time = time_of(text)
    if time is None:
        return
    del message["timestamp"]
    columns["timestamp"], columns["timestamp_zone_known"] = time, True
    if text != digits_of(time):
        form["exact"] = {"timestamp": text}


def _pack(
    names: list[str],
    nulls: tuple[str, ...],
    rest: dict[str, Raw],
    form: dict[str, Any],
    usual: tuple[str, ...],
) -> str | None:
    """``extra`` of a message: what is left of it, and its keys when no writer would guess them."""
    left = [name for name in names if name in rest]
    guessed = [name for name in usual if name in names and name not in left]
    odd = names != [*guessed, *left] or "content" not in names or "role" in left
    if odd or set(nulls) - {"content"}:
        form["keys"] = names
    return extra_column.pack(rest, shape=form) if rest or form else None
