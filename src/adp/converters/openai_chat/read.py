"""Reading: a row into a trajectory."""

from __future__ import annotations

import re
from typing import Any

from msgspec import Raw

from adp.converters.openai_chat import keys as k
from adp.converters.openai_chat.content import content_columns
from adp.converters.openai_chat.message_extra import MessageKeys, pack_message
from adp.converters.openai_chat.usual import plain_rows, usual_rows
from adp.converters.reading import (
    BRACE,
    NUMBER,
    QUOTE,
    argument_columns,
    begins,
    drop_nulls,
    list_items,
    object_fields,
    record_fields,
    report_lost,
    report_marks,
    take_first_text,
    take_text,
    tools_text,
)
from adp.converters.scalars import is_null, read_number, take_fields
from adp_schema import extra_column, jsontext
from adp_schema.builder import RowBuilder
from adp_schema.errors import RecordError
from adp_schema.losses import Losses
from adp_schema.message_rows import add_messages
from adp_schema.model import Columns
from adp_schema.protocols import RawRecord

_ROLES = {f'"{role}"'.encode(): role for role in (*k.ROLE_SOURCES, *k.RESULT_ROLES)}


def read_record(record: RawRecord, builder: RowBuilder, losses: Losses) -> None:
    """Convert one row.

    Raises:
        RecordError: there are no messages, or one of them is wrong.
    """
    plain, rows = plain_rows(record, builder), None
    if plain is not None and (rows := plain[2]) is not None:
        fields = plain[1]
        report_lost(plain[0], fields, "$", losses)
    else:
        fields = record_fields(record, losses)
    names = list(fields)
    form: dict[str, Any] = {}
    columns: Columns = {}
    raw = fields.pop("messages", None)
    if raw is None:
        raise RecordError("there are no messages", "$.messages")
    place = ("$.messages", "messages")
    messages: list[Raw] = []
    if plain is None:
        rows = usual_rows(raw, record, builder)
    if rows is None:
        messages, _ = list_items(raw, place, form, "messages", builder, losses)
    take_tools(fields, columns, form)
    take_fields(k.RECORD_FIELDS, fields, columns, form)
    if names != _usual_record(names, form, fields):
        form["keys"] = names
    columns["extra"] = extra_column.pack(fields, shape=form)
    builder.trajectory(columns)
    if rows is not None:
        add_messages(builder, rows)
    for index, message in enumerate(messages):
        read_message(message, f"$.messages[{index}]", builder, losses)


def _usual_record(names: list[str], form: dict[str, Any], rest: dict[str, Raw]) -> list[str]:
    """The order in which `write` writes the keys when it is not told another one."""
    read_from = form.get("fields", {})
    ids = [read_from.get(c, keys[0]) for c, keys, _ in k.RECORD_FIELDS]
    usual = [ids[0], "messages", "tools", *ids[1:]]
    return [name for name in usual if name in names and name not in rest] + list(rest)


def take_tools(fields: dict[str, Raw], columns: Columns, form: dict[str, Any]) -> None:
    """``tools``, or the old ``functions``, as a list or a JSON string of one."""
    key = "tools" if "tools" in fields else "functions"
    text = tools_text(fields.get(key))
    if text is None:
        return
    if begins(fields.pop(key), QUOTE):
        form["tools"] = "string"
    if key != "tools":
        form["tools_key"] = key
    columns |= {"tools": text, "tools_origin": "recorded"}


def read_message(raw: Raw, path: str, builder: RowBuilder, losses: Losses) -> None:
    """Add one message to the open trajectory.

    Args:
        raw: the message.
        path: where it is, for errors and losses.
        builder: takes its rows.
        losses: takes what cannot be kept.

    Raises:
        RecordError: it is no message.
    """
    message = object_fields(raw, path, losses, "a message object")
    raw_role = message.get("role", Raw())
    role = _ROLES.get(bytes(raw_role))
    if role is None:
        if not begins(raw_role, QUOTE):
            raise RecordError("expected a role", f"{path}.role")
        role = jsontext.decode_value(raw_role)
        report_marks(role, f"{path}.role", losses)
    names = tuple(message)
    # Nulls are told by the list of keys; they need no entry in ``extra``.
    keys = (names, drop_nulls(message))
    if role in k.RESULT_ROLES:
        _result(message, role, keys, builder)
    else:
        _step(message, role, keys, path, builder, losses)


def _step(
    message: dict[str, Raw],
    role: str,
    keys: MessageKeys,
    path: str,
    builder: RowBuilder,
    losses: Losses,
) -> None:
    form: dict[str, Any] = {}
    source = k.ROLE_SOURCES.get(role, "environment")
    columns: Columns = {
        "source": source,
        "kind": "llm_turn" if source == "agent" else "message",
    }
    if role in k.SYNONYMS or role == k.USUAL_ROLES[source]:
        del message["role"]
        if role != k.USUAL_ROLES[source]:
            form["role"] = role
    content_columns(message.pop("content", None), columns, form, builder)
    raw = message.pop("tool_calls", None)
    old = _take_rest(message, columns, form) if message else None
    calls: list[Raw] = []
    if raw is not None:
        place = (f"{path}.tool_calls", "calls")
        calls, _ = list_items(raw, place, form, "tool_calls", builder, losses)
        if not calls:
            form.setdefault("tool_calls", "list")
    columns["extra"] = pack_message(keys, message, form, is_step=True)
    builder.step(columns)
    requestor = "user" if source == "user" else "agent"
    for index, call in enumerate(calls):
        read_call(call, requestor, f"{path}.tool_calls[{index}]", builder, losses)
    if old is not None:
        _function_call(old, requestor, f"{path}.function_call", builder, losses)


def _take_rest(message: dict[str, Raw], columns: Columns, form: dict[str, Any]) -> Raw | None:
    """Take what fewer messages have: reasoning, name and weight; return the old single call."""
    if (reasoning := take_first_text(message, k.REASONING_KEYS)) is not None:
        name, columns["reasoning"] = reasoning
        if name != k.REASONING_KEYS[0]:
            form["reasoning"] = name
    columns["actor"] = take_text(message, "name")
    if "weight" in message and jsontext.first_byte(message["weight"]) in NUMBER:
        columns["loss_weight"] = read_number(message["weight"], "weight", form)
        if columns["loss_weight"] is not None:
            del message["weight"]
    return message.pop("function_call") if begins(message.get("function_call"), BRACE) else None


def _result(message: dict[str, Raw], role: str, keys: MessageKeys, builder: RowBuilder) -> None:
    form: dict[str, Any] = {} if role == "tool" else {"role": role}
    columns: Columns = {"source": "environment"}
    del message["role"]
    content_columns(message.pop("content", None), columns, form, builder)
    if (name := take_text(message, "name")) is not None:
        columns["name"] = name
    answers = take_text(message, "tool_call_id")
    if answers is None:
        form["by_order"] = True
    columns["extra"] = pack_message(keys, message, form, is_step=False)
    builder.observation(columns, answers=answers, by_order=answers is None)


# ---- calls ---------------------------------------------------------------------------------------

_USUAL_CALL = re.compile(
    rb'\{"id": ?("[^"\\\xf4]*"), ?"type": ?"function", ?'
    rb'"function": ?\{"name": ?("[^"\\\xf4]*"), ?"arguments": ?(".*"|\{.*\})\}\}',
    re.DOTALL,
)
"""A call with just the usual keys in the usual order, which most calls are."""


def read_call(raw: Raw, requestor: str, path: str, builder: RowBuilder, losses: Losses) -> None:
    """Add a call to the step at hand.

    Raises:
        RecordError: it is no object.
    """
    match = _USUAL_CALL.fullmatch(raw)
    if match is not None and jsontext.is_valid(match[3]):
        call_id, name, arguments = match.groups()
        columns = argument_columns(arguments)
        columns["call_id"] = jsontext.decode_value(call_id)
        columns["name"] = jsontext.decode_value(name)
        columns["kind"] = "function"
    else:
        columns = _any_call(object_fields(raw, path, losses, "a call object"), path, losses)
    columns["requestor"] = requestor
    builder.call(columns)


def _any_call(call: dict[str, Raw], path: str, losses: Losses) -> Columns:
    """The columns of a call of any form."""
    names = list(call)
    form: dict[str, Any] = {}
    columns: Columns = {"kind": "function", "call_id": take_text(call, "id")}
    kind = take_text(call, "type")
    report_marks(kind or "", f"{path}.type", losses)
    if kind not in (None, "function"):
        form["type"] = kind
    inner_key = next((key for key in ("function", "custom") if begins(call.get(key), BRACE)), None)
    if inner_key is None:
        form["form"] = "flat"
        _function(call, columns, form)
    else:
        child = object_fields(call.pop(inner_key), f"{path}.{inner_key}", losses)
        if inner_key == "custom":
            form["form"] = "custom"
        _function(child, columns, form)
        if child:
            call[inner_key] = Raw(jsontext.encode(child))
    # The order in which `write` writes the keys when it is not told another one.
    guessed = ["type", inner_key] if "id" in call else ["id", "type", inner_key]
    guessed += [name for name in call if name not in guessed]
    if form.get("form") == "flat" or names != guessed:
        form["keys"] = names
    columns["extra"] = extra_column.pack(call, shape=form)
    return columns


def _function_call(
    raw: Raw, requestor: str, path: str, builder: RowBuilder, losses: Losses
) -> None:
    """The old single call: an object with name and arguments."""
    child = object_fields(raw, path, losses)
    form: dict[str, Any] = {"form": "function_call"}
    columns: Columns = {"kind": "function", "requestor": requestor}
    _function(child, columns, form)
    columns["extra"] = extra_column.pack(child, shape=form)
    builder.call(columns)


def _function(fields: dict[str, Raw], columns: Columns, form: dict[str, Any]) -> None:
    """Name and arguments; what is left stays in ``fields``."""
    names = list(fields)
    columns["name"] = take_text(fields, "name")
    is_custom = form.get("form") == "custom"
    key = "input" if is_custom else "arguments"
    raw = fields.pop(key, None)
    if raw is not None and not is_null(raw):
        columns |= argument_columns(raw)
        if is_custom and begins(raw, QUOTE):
            columns |= {"arguments_raw": jsontext.decode_value(raw), "arguments_kind": "text"}
            columns.pop("arguments", None)
    usual = [] if columns["name"] is None else ["name"]
    if "arguments_kind" in columns:
        usual.append(key)
    if form.get("form") != "flat" and names != [*usual, *fields]:
        form["function"] = names
