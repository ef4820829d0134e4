"""Reading all messages of a row at once, when each of them has a usual form.

The messages are decoded as a whole to typed values, and `characters` knows how they are written.
What is not exactly as `read.read_message` would take it with nothing to say is left to that
function.
"""

from __future__ import annotations

from functools import cache
from itertools import accumulate, compress
from typing import Any

import msgspec
from msgspec import Raw

from adp.converters.openai_chat import keys as k
from adp.converters.openai_chat.characters import (
    UsualCall,
    UsualForm,
    UsualMessage,
    Values,
    are_calls_written,
    columns_of,
    decode_messages,
    decode_objects,
    is_plainly_written,
    layout_of,
    plain_record,
)
from adp.converters.openai_chat.content import read_part
from adp.converters.openai_chat.message_extra import pack_message
from adp.converters.reading import BRACKET, begins
from adp_schema import jsontext
from adp_schema.builder import RowBuilder
from adp_schema.message_rows import ColumnValues, MessageRows
from adp_schema.parts import Parts
from adp_schema.protocols import RawRecord

_Sign = tuple[tuple[str, ...], str, *tuple[type, ...]]
"""The keys of a message in order, its role, and the types of the values under some further keys."""


class _Forms(dict[_Sign, UsualForm | None]):
    """The forms that were met, and None for those that are not usual.

    Args:
        keys: the keys whose values a sign tells the types of.
    """

    def __init__(self, keys: tuple[str, ...]) -> None:
        super().__init__()
        self._keys = keys

    def __missing__(self, sign: _Sign) -> UsualForm | None:
        if len(self) > 10_000:
            self.clear()
        form = self[sign] = _form(sign[0], sign[1], dict(zip(self._keys, sign[2:], strict=True)))
        return form


class _PlainForms(dict[tuple[Any, ...], UsualForm | None]):
    """The same, of messages whose keys are in the order of their fields.

    Args:
        keys: all keys but the role.
    """

    def __init__(self, keys: tuple[str, ...]) -> None:
        super().__init__()
        self._keys = keys

    def __missing__(self, sign: tuple[Any, ...]) -> UsualForm | None:
        if len(self) > 10_000:
            self.clear()
        types = {
            name: kind
            for name, kind in zip(self._keys, sign[1:], strict=True)
            if kind is not msgspec.UnsetType
        }
        form = self[sign] = _form(("role", *types), sign[0], types)
        return form


@cache
def _plain_forms(keys: tuple[str, ...]) -> _PlainForms:
    return _PlainForms(keys)


@cache
def _forms(keys: tuple[str, ...]) -> _Forms:
    return _Forms(keys)


def _form(names: tuple[str, ...], role: str, types: dict[str, type]) -> UsualForm | None:
    """The form of messages with these keys, this role, and these types of their further values."""
    nulls = tuple(name for name in names if types.get(name) is type(None))
    form: dict[str, Any] = {}
    is_step = role not in k.RESULT_ROLES
    if is_step:
        source = k.ROLE_SOURCES.get(role, "environment")
        usual_role = k.USUAL_ROLES[source]
        if role not in k.SYNONYMS and role != usual_role:
            return None
        strange = types.get("tool_call_id") is str
    else:
        source, usual_role = "environment", "tool"
        strange = types.get("tool_calls") is list or types.get("reasoning_content") is str
        strange = strange or types.get("tool_call_id") is not str
    if strange:
        return None
    if role != usual_role:
        form["role"] = role
    if types.get("content") is list:
        form["content"] = "list"
    extra = pack_message((names, nulls), {}, form, is_step=is_step)
    return UsualForm(
        is_step=is_step,
        row=(source, "llm_turn" if source == "agent" else "message", extra),
        requestor="user" if source == "user" else "agent",
        size=sum(len(name) + 3 for name in names) + len(names) + 1,
        spaces=2 * len(names) - 1,
        head=f'{{"{names[0]}": '.encode(),
    )


def usual_rows(raw: Raw, record: RawRecord, builder: RowBuilder) -> MessageRows | None:
    """The rows of the messages of a row.

    Args:
        raw: the list of messages.
        record: the row.
        builder: takes media.

    Returns:
        The rows; None when a message is not usual: they are to be read one by one.
    """
    # Characters that may be marks of `jsontext.sanitise` are left to the way that looks for them.
    if record.marked or not begins(raw, BRACKET) or b"\xf4" in record.data:
        return None
    try:
        return _rows(raw, builder)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return None


def plain_rows(
    record: RawRecord, builder: RowBuilder
) -> tuple[bytes, dict[str, Raw], MessageRows | None] | None:
    """The rows of the messages of a row that are plainly written, read in one pass with its keys.

    Args:
        record: the row.
        builder: takes media.

    Returns:
        The row with a text in place of its messages, its keys, and the rows of its messages,
        None when one is not usual; None when it is to be read in another way.
    """
    if record.marked or b"\xf4" in record.data:
        return None
    try:
        parts = plain_record(record.data)
        return parts and (parts[0], parts[1], _plain_rows(parts[2], builder))
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return None


def _plain_rows(messages: list[UsualMessage], builder: RowBuilder) -> MessageRows | None:
    """The rows of plainly written messages; None when one of them is not usual.

    Raises:
        UnicodeError: the same.
    """
    values, types = columns_of(messages)
    signs = zip(values.get("role", ()), *types.values(), strict=False)
    forms = [form for form in map(_plain_forms(tuple(types)).__getitem__, signs) if form]
    return _made(values, forms, builder) if len(forms) == len(messages) else None


def _rows(raw: Raw, builder: RowBuilder) -> MessageRows | None:
    """The rows of some messages; None when one of them is not usual.

    Raises:
        msgspec.DecodeError: one of them is not usual either.
    """
    messages = decode_messages(raw)
    if is_plainly_written(messages, raw):
        return _plain_rows(messages, builder)
    values, types = columns_of(messages)
    objects = decode_objects(raw)
    further = tuple(values)[1:]
    kinds = [types[name] for name in further]
    keyed = zip(map(tuple, objects), values.get("role", ()), *kinds, strict=False)
    forms = [form for form in map(_forms(further).__getitem__, keyed) if form]
    if len(forms) < len(messages):
        return None
    layout = layout_of(raw, objects, forms)
    if layout is None or not are_calls_written(values, objects, layout):
        return None
    return _made(values, forms, builder)


def _made(values: Values, forms: list[UsualForm], builder: RowBuilder) -> MessageRows | None:
    """The rows of messages with these values and forms; None when a call is not usual."""
    rows = MessageRows({})
    if not forms or ("tool_calls" in values and not _add_calls(rows, values, forms)):
        return None
    _add_columns(rows, values, forms, builder)
    return rows


# ---- columns -------------------------------------------------------------------------------------


def _add_calls(rows: MessageRows, values: Values, forms: list[UsualForm]) -> bool:
    """Add the columns of the calls; False when one of them is not usual."""
    step = -1
    calls: list[UsualCall] = []
    requestors: list[str] = []
    for made, form in zip(values["tool_calls"], forms, strict=True):
        step += form.is_step
        if made is None:
            continue
        if not made:
            return False
        calls += made
        rows.callers += [step] * len(made)
        requestors += [form.requestor] * len(made)
    arguments = [str(call.function.arguments, "utf-8") for call in calls]
    ids = [call.id for call in calls]
    if len(set(ids)) < len(ids) or "null" in arguments:
        return False
    kinds = [call.type for call in calls]
    if kinds.count("function") < len(kinds):
        return False
    rows.calls = _argument_columns(calls, arguments)
    rows.calls["call_id"] = ids
    rows.calls["name"] = [call.function.name for call in calls]
    rows.calls["kind"] = kinds
    rows.calls["requestor"] = requestors
    return True


def _argument_columns(calls: list[UsualCall], texts: list[str]) -> ColumnValues:
    """The columns of the arguments of some calls, as `reading.argument_columns` has them."""
    arguments: list[str | None] = []
    kinds: list[str] = []
    for call, text in zip(calls, texts, strict=True):
        value, kind = text, "object"
        if text[0] == '"':
            value, kind = jsontext.decode_value(call.function.arguments), "json_string"
            if not jsontext.is_valid(value):
                kind = "invalid"
        elif "\n" in text or "\r" in text:
            value = jsontext.one_line(call.function.arguments)
        arguments.append(value)
        kinds.append(kind)
    columns: ColumnValues = {"arguments": arguments, "arguments_kind": kinds}
    if "invalid" in kinds:
        invalid = [kind == "invalid" for kind in kinds]
        pairs = list(zip(arguments, invalid, strict=True))
        columns["arguments"] = [None if wrong else value for value, wrong in pairs]
        columns["arguments_raw"] = [value if wrong else None for value, wrong in pairs]
    return columns


def _add_columns(
    rows: MessageRows, values: Values, forms: list[UsualForm], builder: RowBuilder
) -> None:
    """Add the columns of the steps and the observations."""
    texts, contents = _contents(values.get("content") or [None] * len(forms), builder)
    columns = {"text": texts, "content": contents}
    columns |= {"reasoning": values.get("reasoning_content", []), "name": values.get("name", [])}
    columns = {name: cells for name, cells in columns.items() if cells}
    steps = [form.is_step for form in forms]
    if all(steps):
        rows.steps = _step_columns(columns, forms)
        return
    results = [not is_step for is_step in steps]
    step_cells = {name: list(compress(cells, steps)) for name, cells in columns.items()}
    rows.steps = _step_columns(step_cells, list(compress(forms, steps)))
    rows.after = list(compress(accumulate(steps), results))
    rows.answers = list(compress(values["tool_call_id"], results))
    rows.observations = {
        "source": ["environment"] * len(rows.after),
        "extra": [form.row[2] for form in forms if not form.is_step],
    }
    for name in ("text", "content", "name"):
        if name in columns:
            _fill(rows.observations, name, list(compress(columns[name], results)))


def _step_columns(cells: ColumnValues, forms: list[UsualForm]) -> ColumnValues:
    """The columns of the steps."""
    if not forms:
        return {"source": []}
    sources, kinds, extras = zip(*[form.row for form in forms], strict=True)
    columns: ColumnValues = {"source": list(sources), "kind": list(kinds)}
    _fill(columns, "extra", list(extras))
    for name, values in cells.items():
        _fill(columns, "actor" if name == "name" else name, values)
    return columns


def _fill(columns: ColumnValues, name: str, cells: list[Any]) -> None:
    """Add a column when it has a value."""
    if cells.count(None) < len(cells):
        columns[name] = cells


def _contents(written: list[Any], builder: RowBuilder) -> tuple[list[str | None], list[str | None]]:
    """The columns text and content of each message; the second one is empty when none has it.

    Media are taken in the order of the source.
    """
    texts: list[str | None] = written
    contents: list[str | None] = []
    for index, content in enumerate(written):
        if content.__class__ is str:
            if ";base64," in content:
                texts[index] = builder.text(content)
        elif content is not None:
            parts = Parts()
            for item in content:
                read_part(item, parts, builder)
            columns = parts.columns()
            texts[index] = columns.get("text")
            contents = contents or [None] * len(written)
            contents[index] = columns.get("content")
    return texts, contents
