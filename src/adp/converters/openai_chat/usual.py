"""Reading all messages of a row at once, when each of them has a usual form.

The messages are decoded twice as a whole: to typed values, and to the JSON text of each key, which
tells the order of the keys and, by its length, that no character stands between them. What is not
exactly as `read.read_message` would take it with nothing to say is left to that function.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import accumulate, chain, compress
from operator import attrgetter, methodcaller
from typing import Any

import msgspec
from msgspec import Raw

from adp.converters.openai_chat import keys as k
from adp.converters.openai_chat.content import read_part
from adp.converters.openai_chat.message_extra import pack_message
from adp.converters.reading import BRACKET, begins
from adp_schema import jsontext
from adp_schema.builder import RowBuilder
from adp_schema.message_rows import ColumnValues, MessageRows
from adp_schema.parts import Parts
from adp_schema.protocols import RawRecord


class _Function(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    name: str
    arguments: Raw


class _Call(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    id: str
    type: str
    function: _Function


class _Message(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    role: str
    content: str | list[Raw] | None = None
    tool_calls: list[_Call] | None = None
    tool_call_id: str | None = None
    name: str | None = None
    reasoning_content: str | None = None


_typed = msgspec.json.Decoder(list[_Message]).decode
_objects = msgspec.json.Decoder(list[dict[str, Raw]]).decode
_items = msgspec.json.Decoder(list[Raw]).decode


_GETTERS = {name: attrgetter(name) for name in _Message.__struct_fields__}

_Sign = tuple[tuple[str, ...], str, *tuple[type, ...]]
"""The keys of a message in order, its role, and the types of the values under some further keys."""

_Values = dict[str, list[Any]]
"""Key -> its value in each message, None where there is none. Keys that none has are left out."""


@dataclass(slots=True)
class _Form:
    """What messages of one form have in common.

    Attributes:
        is_step: whether they are steps, not observations.
        row: their columns source, kind and extra.
        requestor: the column of their calls.
        size: characters beside the values when no white space stands between the tokens.
        spaces: characters that a space behind each comma and colon adds.
        head: how they begin with such spaces.
    """

    is_step: bool
    row: tuple[str, str, str | None]
    requestor: str
    size: int
    spaces: int
    head: bytes


class _Forms(dict[_Sign, _Form | None]):
    """The forms that were met, and None for those that are not usual.

    Args:
        keys: the keys whose values a sign tells the types of.
    """

    def __init__(self, keys: tuple[str, ...]) -> None:
        super().__init__()
        self._keys = keys

    def __missing__(self, sign: _Sign) -> _Form | None:
        if len(self) > 10_000:
            self.clear()
        form = self[sign] = _form(sign[0], sign[1], dict(zip(self._keys, sign[2:], strict=True)))
        return form


@cache
def _forms(keys: tuple[str, ...]) -> _Forms:
    return _Forms(keys)


def _form(names: tuple[str, ...], role: str, types: dict[str, type]) -> _Form | None:
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
    return _Form(
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


def _rows(raw: Raw, builder: RowBuilder) -> MessageRows | None:
    """The rows of some messages; None when one of them is not usual.

    Raises:
        msgspec.DecodeError: one of them is not usual either.
    """
    messages, objects = _typed(raw), _objects(raw)
    present: set[str] = set().union(*objects)
    values: _Values = {
        name: list(map(get, messages)) for name, get in _GETTERS.items() if name in present
    }
    further = tuple(values)[1:]
    types = [map(type, values[name]) for name in further]
    signs = zip(map(tuple, objects), values.get("role", ()), *types, strict=False)
    forms = [form for form in map(_forms(further).__getitem__, signs) if form is not None]
    if not forms or len(forms) < len(messages):
        return None
    layout = _layout(raw, objects, forms)
    if layout is None:
        return None
    rows = MessageRows({})
    if "tool_calls" in values and not _add_calls(rows, values, objects, forms, layout):
        return None
    _add_columns(rows, values, forms, builder)
    return rows


# ---- characters ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Layout:
    """How the calls of a message are written: what stands before id, name and arguments."""

    first: str
    second: str
    third: str
    joint: str


_COMPACT = _Layout('{"id":"', '","type":"function","function":{"name":"', '","arguments":', ",")
_SPACED = _Layout(
    '{"id": "', '", "type": "function", "function": {"name": "', '", "arguments": ', ", "
)


def _layout(raw: Raw, objects: list[dict[str, Raw]], forms: list[_Form]) -> _Layout | None:
    """The layout of the messages; None for another one, and when a key occurs twice.

    As long as its keys and values say a text is only when nothing else is in it.
    """
    size = sum(map(len, chain.from_iterable(map(_VALUES_OF, objects)))) + len(objects) + 1
    for form in forms:
        size += form.size
    if size == len(raw):
        return _COMPACT
    for text, item, form in zip(_items(raw), objects, forms, strict=True):
        if len(text) != form.size + form.spaces + sum(map(len, item.values())):
            return None
        if memoryview(text)[: len(form.head)] != form.head:
            return None
    return _SPACED


_VALUES_OF = methodcaller("values")


# ---- columns -------------------------------------------------------------------------------------


def _add_calls(
    rows: MessageRows,
    values: _Values,
    objects: list[dict[str, Raw]],
    forms: list[_Form],
    layout: _Layout,
) -> bool:
    """Add the columns of the calls; False when one of them is not usual."""
    first, second, third = layout.first, layout.second, layout.third
    step = -1
    calls: list[_Call] = []
    arguments: list[str] = []
    requestors: list[str] = []
    expected: list[str] = []
    for made, form in zip(values["tool_calls"], forms, strict=True):
        step += form.is_step
        if made is None:
            continue
        joint = "["
        for call in made:
            function = call.function
            text = str(function.arguments, "utf-8")
            expected.append(f"{joint}{first}{call.id}{second}{function.name}{third}{text}}}}}")
            arguments.append(text)
            rows.callers.append(step)
            requestors.append(form.requestor)
            joint = layout.joint
        expected.append("]" if made else "empty")
        calls += made
    there = [made is not None for made in values["tool_calls"]]
    written = [item["tool_calls"] for item in compress(objects, there)]
    ids = [call.id for call in calls]
    if "".join(expected).encode() != b"".join(written) or len(set(ids)) < len(ids):
        return False
    if "null" in arguments:
        return False
    rows.calls = _argument_columns(calls, arguments)
    rows.calls["call_id"] = ids
    rows.calls["name"] = [call.function.name for call in calls]
    rows.calls["kind"] = ["function"] * len(calls)
    rows.calls["requestor"] = requestors
    return True


def _argument_columns(calls: list[_Call], texts: list[str]) -> ColumnValues:
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
    rows: MessageRows, values: _Values, forms: list[_Form], builder: RowBuilder
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


def _step_columns(cells: ColumnValues, forms: list[_Form]) -> ColumnValues:
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
