"""The quick way for messages of the common form.

Nearly all messages have only usual keys with values of usual types. They are converted here with
few Python operations; whatever is not plainly of that form is left to `read`, which gives the
same rows for it (a property test holds the two together).
"""

from __future__ import annotations

import re
from typing import Any

import msgspec
from msgspec import Raw

from adp.converters.openai_chat import keys as k
from adp.converters.openai_chat.content import content_columns
from adp.converters.reading import BRACKET, argument_columns, begins
from adp.converters.scalars import is_null
from adp_schema import jsontext
from adp_schema.builder import RowBuilder
from adp_schema.extra_column import pack
from adp_schema.model import Columns

_decode = msgspec.json.Decoder().decode
_text = msgspec.json.Decoder(str | None).decode
_objects = msgspec.json.Decoder(dict[str, Raw]).decode
_arrays = msgspec.json.Decoder(list[Raw]).decode
_NAMES = frozenset({"role", "content", "name", "tool_calls", "tool_call_id", *k.REASONING_KEYS})
_CALL = re.compile(
    rb'\{"id": ?("[^"\\\xf4]*"), ?"type": ?"function", ?'
    rb'"function": ?\{"name": ?("[^"\\\xf4]*"), ?"arguments": ?(".*"|\{.*\})\}\}',
    re.DOTALL,
)
_LIMIT = 10_000
_TEXT_OR_NONE = (str, type(None))
_NULL_TEXT, _LIST, _NULL_REASONING, _NULL_NAME, _NULL_CALLS, _NULL_ID = 1, 2, 4, 8, 16, 32
_BY_ORDER = 64


class _Plan:
    """What is known of all messages with the same keys in the same order.

    Attributes:
        size: characters of a compact object with these keys besides its values.
        spaces: further characters when ", " and ": " are used; both -1 for unusual keys.
        first: where the first of these spaces is.
        reasoning: the key of the reasoning, if any.
        extras: (role, bits) -> column ``extra``. There are few, so the texts are kept.
    """

    __slots__ = (
        *("calls", "extras", "first", "name", "names"),
        *("reasoning", "result_id", "size", "spaces"),
    )

    def __init__(self, names: tuple[str, ...]) -> None:
        reasoning = [name for name in names if name in k.REASONING_KEYS]
        usual = "role" in names and _NAMES.issuperset(names) and len(reasoning) < 2
        self.names = names
        self.size = sum(map(len, names)) + 4 * len(names) + 1 if usual else -1
        self.spaces = 2 * len(names) - 1
        self.first = len(names[0]) + 4 if names else 0
        self.reasoning = reasoning[0] if reasoning else None
        self.name = "name" in names
        self.calls = "tool_calls" in names
        self.result_id = "tool_call_id" in names
        self.extras: dict[tuple[str, int], str | None] = {}


_plans: dict[tuple[str, ...], _Plan] = {}


def _plan(names: tuple[str, ...]) -> _Plan:
    if len(_plans) > _LIMIT:
        _plans.clear()
    return _plans.setdefault(names, _Plan(names))


def read_usual_message(raw: Raw, builder: RowBuilder) -> bool:
    """Convert a message of the common form; False when it is not one and nothing was done."""
    if jsontext.first_byte(raw) != 0x7B:
        return False
    message = _objects(raw)
    names = tuple(message)
    plan = _plans.get(names) or _plan(names)
    if plan.size < 0:
        return False
    spare = len(raw) - plan.size - sum(map(len, message.values()))
    if spare and (spare != plan.spaces or memoryview(raw)[plan.first] != 0x20):
        return False
    columns: Columns = {}
    bits = 0
    content = message.get("content")
    try:
        role = _decode(message["role"])
        listed = content is not None and jsontext.first_byte(content) == 0x5B
        text = None if content is None or listed else _text(content)
        if text is not None:
            columns["text"] = builder.text(text) if ";base64," in text else text
        elif not listed:
            bits = _NULL_TEXT
        name = _decode(message["name"]) if plan.name else None
        if name is not None:
            columns["name"] = name
        elif plan.name:
            bits |= _NULL_NAME
        if type(role) is not str or type(name) not in _TEXT_OR_NONE:
            return False
        if plan.result_id and role not in k.RESULT_ROLES:
            return False
        emit = _result if role in k.RESULT_ROLES else _step
        return emit(builder, plan, message, columns, role, bits, listed)
    except msgspec.DecodeError:
        # A number that no float holds, before anything was done.
        return False


def _list_content(message: dict[str, Raw], columns: Columns, builder: RowBuilder) -> int:
    content_columns(message["content"], columns, {}, builder)
    return _LIST


def _result(
    builder: RowBuilder,
    plan: _Plan,
    message: dict[str, Raw],
    columns: Columns,
    role: str,
    bits: int,
    listed: bool,
) -> bool:
    if plan.calls or plan.reasoning:
        return False
    answers = None
    if plan.result_id:
        answers = _decode(message["tool_call_id"])
        if answers is None:
            bits |= _NULL_ID
        elif type(answers) is not str:
            return False
    if answers is None:
        bits |= _BY_ORDER
    if listed:
        bits |= _list_content(message, columns, builder)
    columns["source"] = "environment"
    columns["extra"] = _extra(plan, role, bits, k.RESULT_KEYS, "tool")
    builder.observation(columns, answers=answers, by_order=answers is None)
    return True


def _step(
    builder: RowBuilder,
    plan: _Plan,
    message: dict[str, Raw],
    columns: Columns,
    role: str,
    bits: int,
    listed: bool,
) -> bool:
    calls: list[Columns] = []
    if plan.reasoning:
        reasoning = _decode(message[plan.reasoning])
        if reasoning is None:
            bits |= _NULL_REASONING
        elif type(reasoning) is str:
            columns["reasoning"] = reasoning
        else:
            return False
    if plan.calls:
        if is_null(message["tool_calls"]):
            bits |= _NULL_CALLS
        elif not _calls(message["tool_calls"], calls):
            return False
    if listed:
        bits |= _list_content(message, columns, builder)
    source = k.ROLE_SOURCES.get(role, "environment")
    columns["source"] = source
    columns["kind"] = "llm_turn" if source == "agent" else "message"
    if plan.name and "name" in columns:
        columns["actor"] = columns.pop("name")
    columns["extra"] = _extra(plan, role, bits, k.STEP_KEYS, k.USUAL_ROLES[source])
    builder.step(columns)
    requestor = "user" if source == "user" else "agent"
    for call in calls:
        call["requestor"] = requestor
        builder.call(call)
    return True


def _calls(raw: Raw, calls: list[Columns]) -> bool:
    """Add the calls of a message; False when one is not of the common form, or none is there."""
    if not begins(raw, BRACKET):
        return False
    for item in _arrays(raw):
        call = usual_call(item)
        if call is None:
            return False
        calls.append(call)
    return bool(calls)


def usual_call(raw: Raw) -> Columns | None:
    """The columns of a call with just the usual keys in the usual order, which most have."""
    match = _CALL.fullmatch(raw)
    if match is None or not jsontext.is_valid(match[3]):
        return None
    call_id, name = map(_decode, match.group(1, 2))
    return {"kind": "function", "call_id": call_id, "name": name, **argument_columns(match[3])}


def _extra(
    plan: _Plan, role: str, bits: int, usual: tuple[str, ...], usual_role: str
) -> str | None:
    """``extra`` of a message of this form."""
    key = (role, bits)
    if key in plan.extras:
        return plan.extras[key]
    if len(plan.extras) > _LIMIT:
        plan.extras.clear()
    shape: dict[str, Any] = {}
    kept = None
    if role != usual_role and (role in k.SYNONYMS or role in k.RESULT_ROLES):
        shape["role"] = role
    elif role != usual_role:
        kept = {"role": role}
    if bits & _LIST:
        shape["content"] = "list"
    reasoning = None if bits & _NULL_REASONING else plan.reasoning
    if reasoning is not None and reasoning != "reasoning_content":
        shape["reasoning"] = reasoning
    order = [reasoning or "reasoning_content" if name == "reasoning" else name for name in usual]
    guessed = [name for name in order if name in plan.names]
    if bits & _BY_ORDER:
        shape["by_order"] = True
    nulls = bits & (_NULL_REASONING | _NULL_NAME | _NULL_CALLS | _NULL_ID)
    if list(plan.names) != guessed or nulls or "content" not in plan.names:
        shape["keys"] = plan.names
    plan.extras[key] = pack(kept, shape=shape)
    return plan.extras[key]
