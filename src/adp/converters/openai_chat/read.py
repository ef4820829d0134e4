"""Reading: a row into a trajectory."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw

from adp.converters.openai_chat import keys as k
from adp.converters.openai_chat.content import content_columns
from adp.converters.openai_chat.fast import read_message
from adp.converters.scalars import is_null, read_number, take_fields
from adp_schema import extra_column, jsontext
from adp_schema.arrow import Columns
from adp_schema.builder import RowBuilder
from adp_schema.errors import RecordError
from adp_schema.losses import Losses
from adp_schema.protocols import RawRecord

_shape_cache: dict[Any, str | None] = {}
_QUOTE, _BRACE, _BRACKET = 0x22, 0x7B, 0x5B


def read_record(record: RawRecord, builder: RowBuilder, losses: Losses) -> None:
    """Convert one row.

    Raises:
        RecordError: there are no messages, or one of them is wrong.
    """
    try:
        fields = jsontext.decode_object(record.data)
    except msgspec.ValidationError:
        raise RecordError("expected an object") from None
    report_lost(record.data, fields, "$", losses)
    names = list(fields)
    form: dict[str, Any] = {}
    columns: Columns = {}
    messages, marked = _messages(fields, form, builder, losses)
    marked = marked or record.marked
    take_tools(fields, columns, form)
    take_fields(k.RECORD_FIELDS, fields, columns, form)
    if names != _usual_record(names, form, fields):
        form["keys"] = names
    columns["extra"] = extra_column.pack(fields, shape=form)
    builder.trajectory(columns)
    for index, message in enumerate(messages):
        read_item(message, f"$.messages[{index}]", builder, losses, marked=marked)


def read_item(raw: Raw, path: str, builder: RowBuilder, losses: Losses, *, marked: bool) -> None:
    """Add one message to the open trajectory.

    Args:
        raw: the message.
        path: where it is, for errors and losses.
        builder: takes its rows.
        losses: takes what cannot be kept.
        marked: whether it went through `jsontext.sanitise`.

    Raises:
        RecordError: it is no message.
    """
    if marked or not read_message(raw, builder):
        _message(raw, path, builder, losses)


def _usual_record(names: list[str], form: dict[str, Any], rest: dict[str, Raw]) -> list[str]:
    """The order in which `write` writes the keys when it is not told another one."""
    read_from = form.get("fields", {})
    ids = [read_from.get(c, keys[0]) for c, keys, _ in k.RECORD_FIELDS]
    usual = [ids[0], "messages", "tools", *ids[1:]]
    return [name for name in usual if name in names and name not in rest] + list(rest)


def _messages(
    fields: dict[str, Raw], form: dict[str, Any], builder: RowBuilder, losses: Losses
) -> tuple[list[Raw], bool]:
    """The messages, and whether they had to be sanitised here."""
    raw = fields.pop("messages", None)
    if raw is None:
        raise RecordError("there are no messages", "$.messages")
    data: bytes | Raw = raw
    marked = False
    if jsontext.first_byte(raw) == _QUOTE:
        text = jsontext.decode_value(raw)
        form["messages"] = _layout(text, "$.messages", losses)
        data = text.encode("utf-8")
        if not jsontext.is_valid(data):
            data, marked = jsontext.sanitise(data), True
            builder.mark()
    try:
        return jsontext.decode_array(data), marked
    except msgspec.DecodeError as error:
        raise RecordError("expected a list of messages", "$.messages") from error


def _layout(text: str, path: str, losses: Losses) -> dict[str, object]:
    """Layout of JSON inside a string; one that cannot be written again is a loss."""
    layout = k.string_layout(text)
    if layout["layout"] is None:
        losses.add(path, "the white space between the tokens of the JSON string is not kept")
    return layout


def take_tools(fields: dict[str, Raw], columns: Columns, form: dict[str, Any]) -> None:
    """``tools``, or the old ``functions``, as a list or a JSON string of one."""
    key = "tools" if "tools" in fields else "functions"
    raw = fields.get(key)
    first = 0 if raw is None else jsontext.first_byte(raw)
    if raw is None or first not in (_BRACKET, _QUOTE):
        return
    text = jsontext.one_line(raw)
    if first == _QUOTE:
        text = jsontext.decode_value(raw)
        if not text.lstrip().startswith("[") or not jsontext.is_valid(text):
            return
        if jsontext.has_mark(text):
            return
        form["tools"] = "string"
    if key != "tools":
        form["tools_key"] = key
    del fields[key]
    columns["tools"] = text
    columns["tools_origin"] = "recorded"


def report_lost(text: Raw | bytes, decoded: dict[str, Raw], path: str, losses: Losses) -> None:
    """Report keys that an object has twice, and those whose characters cannot be stored."""
    for name in jsontext.lost_keys(text, decoded):
        losses.add(f"{path}.{name}", "the key occurs twice; the last value was kept")
    for name in decoded:
        if not name.isascii() and jsontext.has_mark(name):
            result = jsontext.mend_text(name)[0]
            losses.add(f"{path}.{result}", "lone surrogates in the key were replaced")


def _report_marks(text: str, path: str, losses: Losses) -> None:
    if not text.isascii() and jsontext.has_mark(text):
        losses.add(path, "lone surrogates were replaced")


def _message(raw: Raw, path: str, builder: RowBuilder, losses: Losses) -> None:
    if jsontext.first_byte(raw) != _BRACE:
        raise RecordError("expected a message object", path)
    message = jsontext.decode_object(raw)
    report_lost(raw, message, path, losses)
    role_raw = message.get("role")
    if role_raw is None or jsontext.first_byte(role_raw) != _QUOTE:
        raise RecordError("expected a role", f"{path}.role")
    role = jsontext.decode_value(role_raw)
    _report_marks(role, f"{path}.role", losses)
    if role in k.RESULT_ROLES:
        _result(message, role, builder)
    else:
        _step(message, role, path, builder, losses)


def _step(
    message: dict[str, Raw], role: str, path: str, builder: RowBuilder, losses: Losses
) -> None:
    names = tuple(message)
    nulls = tuple(name for name, value in message.items() if is_null(value))
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
    _reasoning(message, columns, form)
    if jsontext.first_byte(message.get("name", b"")) == _QUOTE:
        columns["actor"] = jsontext.decode_value(message.pop("name"))
    if "weight" in message and jsontext.first_byte(message["weight"]) in b"-0123456789":
        weight = read_number(message["weight"], "weight", form)
        if weight is not None:
            columns["loss_weight"] = weight
            del message["weight"]
    calls = _call_list(message, form, path, builder, losses)
    old = message.get("function_call")
    old_call = old is not None and jsontext.first_byte(old) == _BRACE
    if old_call:
        del message["function_call"]
    _drop_nulls(message, nulls)
    columns["extra"] = _pack(("s", names, nulls), message, form, k.STEP_KEYS)
    builder.step(columns)
    requestor = "user" if source == "user" else "agent"
    for index, call in enumerate(calls):
        read_call(call, requestor, f"{path}.tool_calls[{index}]", builder, losses)
    if old_call and old is not None:
        _function_call(old, requestor, f"{path}.function_call", builder, losses)


def _result(message: dict[str, Raw], role: str, builder: RowBuilder) -> None:
    names = tuple(message)
    nulls = tuple(name for name, value in message.items() if is_null(value))
    form: dict[str, Any] = {} if role == "tool" else {"role": role}
    columns: Columns = {"source": "environment"}
    del message["role"]
    content_columns(message.pop("content", None), columns, form, builder)
    if jsontext.first_byte(message.get("name", b"")) == _QUOTE:
        columns["name"] = jsontext.decode_value(message.pop("name"))
    answers = None
    if jsontext.first_byte(message.get("tool_call_id", b"")) == _QUOTE:
        answers = jsontext.decode_value(message.pop("tool_call_id"))
    else:
        form["by_order"] = True
    _drop_nulls(message, nulls)
    columns["extra"] = _pack(("r", names, nulls), message, form, k.RESULT_KEYS)
    builder.observation(columns, answers=answers, by_order=answers is None)


def _drop_nulls(message: dict[str, Raw], nulls: tuple[str, ...]) -> None:
    """Nulls are told by the list of keys; they need no entry in ``extra``."""
    for name in nulls:
        message.pop(name, None)


def _pack(
    signature: tuple[str, tuple[str, ...], tuple[str, ...]],
    rest: dict[str, Raw],
    form: dict[str, Any],
    usual: tuple[str, ...],
) -> str | None:
    """``extra`` of a message: what is left of it, and its form.

    Nearly all messages of a data set have one of a few forms, so the texts are kept.
    """
    if rest or "exact" in form or "tool_calls" in form:
        _note_keys(signature, rest, form, usual)
        return extra_column.pack(rest, shape=form)
    cache_key = (signature, tuple(form.items()))
    if cache_key not in _shape_cache:
        if len(_shape_cache) > 10_000:
            _shape_cache.clear()
        _note_keys(signature, rest, form, usual)
        _shape_cache[cache_key] = extra_column.pack(None, shape=form)
    return _shape_cache[cache_key]


def _note_keys(
    signature: tuple[str, tuple[str, ...], tuple[str, ...]],
    rest: dict[str, Raw],
    form: dict[str, Any],
    usual: tuple[str, ...],
) -> None:
    """Note the keys when a writer would not guess them."""
    _, names, nulls = signature
    reasoning = form.get("reasoning", "reasoning_content")
    order = [reasoning if name == "reasoning" else name for name in usual]
    later = [name for name in names if name in rest and name != "role"]
    guessed = [name for name in order if name in names and name not in later] + later
    unguessed_null = any(name != "content" for name in nulls)
    if list(names) != guessed or unguessed_null or "content" not in names:
        form["keys"] = list(names)


def _reasoning(message: dict[str, Raw], columns: Columns, form: dict[str, Any]) -> None:
    for name in k.REASONING_KEYS:
        raw = message.get(name)
        if raw is not None and jsontext.first_byte(raw) == _QUOTE:
            columns["reasoning"] = jsontext.decode_value(message.pop(name))
            if name != "reasoning_content":
                form["reasoning"] = name
            return


def _call_list(
    message: dict[str, Raw], form: dict[str, Any], path: str, builder: RowBuilder, losses: Losses
) -> list[Raw]:
    raw = message.get("tool_calls")
    if raw is None or is_null(raw):
        return []
    data: Raw | bytes = message.pop("tool_calls")
    if jsontext.first_byte(raw) == _QUOTE:
        text = jsontext.decode_value(raw)
        form["tool_calls"] = _layout(text, f"{path}.tool_calls", losses)
        data = text.encode("utf-8")
        if not jsontext.is_valid(data):
            data = jsontext.sanitise(data)
            builder.mark()
    try:
        calls = jsontext.decode_array(data)
    except msgspec.DecodeError as error:
        raise RecordError("expected a list of calls", f"{path}.tool_calls") from error
    if not calls:
        form["tool_calls"] = form.get("tool_calls", "list")
    return calls


def read_call(raw: Raw, requestor: str, path: str, builder: RowBuilder, losses: Losses) -> None:
    """Add a call to the step at hand.

    Raises:
        RecordError: it is no object.
    """
    if jsontext.first_byte(raw) != _BRACE:
        raise RecordError("expected a call object", path)
    call = jsontext.decode_object(raw)
    report_lost(raw, call, path, losses)
    names = list(call)
    form: dict[str, Any] = {}
    columns: Columns = {"kind": "function", "requestor": requestor}
    if jsontext.first_byte(call.get("id", b"")) == _QUOTE:
        columns["call_id"] = jsontext.decode_value(call.pop("id"))
    if jsontext.first_byte(call.get("type", b"")) == _QUOTE:
        kind = jsontext.decode_value(call.pop("type"))
        _report_marks(kind, f"{path}.type", losses)
        if kind != "function":
            form["type"] = kind
    inner_key = next((key for key in ("function", "custom") if _is_object(call.get(key))), None)
    if inner_key is None:
        form["form"] = "flat"
        _function(call, columns, form)
    else:
        inner_raw = call.pop(inner_key)
        child = jsontext.decode_object(inner_raw)
        report_lost(inner_raw, child, f"{path}.{inner_key}", losses)
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
    columns["extra"] = extra_column.pack(call, shape=form) if call or form else None
    builder.call(columns)


def _function_call(
    raw: Raw, requestor: str, path: str, builder: RowBuilder, losses: Losses
) -> None:
    """The old single call: an object with name and arguments."""
    child = jsontext.decode_object(raw)
    report_lost(raw, child, path, losses)
    form: dict[str, Any] = {"form": "function_call"}
    columns: Columns = {"kind": "function", "requestor": requestor}
    _function(child, columns, form)
    columns["extra"] = extra_column.pack(child, shape=form)
    builder.call(columns)


def _is_object(raw: Raw | None) -> bool:
    return raw is not None and jsontext.first_byte(raw) == _BRACE


def _function(fields: dict[str, Raw], columns: Columns, form: dict[str, Any]) -> None:
    """Name and arguments; what is left stays in ``fields``."""
    names = list(fields)
    _name_and_arguments(fields, columns, form)
    usual = ["name"] if "name" in columns else []
    if "arguments_kind" in columns:
        usual.append("input" if form.get("form") == "custom" else "arguments")
    if form.get("form") != "flat" and names != [*usual, *fields]:
        form["function"] = names


def _name_and_arguments(fields: dict[str, Raw], columns: Columns, form: dict[str, Any]) -> None:
    if jsontext.first_byte(fields.get("name", b"")) == _QUOTE:
        columns["name"] = jsontext.decode_value(fields.pop("name"))
    key = "input" if form.get("form") == "custom" else "arguments"
    raw = fields.pop(key, None)
    if raw is None or is_null(raw):
        return
    if jsontext.first_byte(raw) != _QUOTE:
        columns["arguments"] = jsontext.one_line(raw)
        columns["arguments_kind"] = "object"
        return
    text = jsontext.decode_value(raw)
    if form.get("form") == "custom":
        columns["arguments_raw"], columns["arguments_kind"] = text, "text"
    elif jsontext.is_valid(text):
        columns["arguments"], columns["arguments_kind"] = text, "json_string"
    else:
        columns["arguments_raw"], columns["arguments_kind"] = text, "invalid"
