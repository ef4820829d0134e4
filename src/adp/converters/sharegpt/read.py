"""Reading: a record into a trajectory, and into a second one when it is a preference pair."""

from __future__ import annotations

from typing import Any

from msgspec import Raw

from adp.converters.reading import (
    BRACE,
    BRACKET,
    QUOTE,
    begins,
    drop_nulls,
    list_items,
    record_fields,
    take_text,
    tools_text,
)
from adp.converters.scalars import take_fields
from adp.converters.sharegpt import keys as k
from adp.converters.sharegpt.media import MediaColumns, role_key, turn_words, value_key
from adp.converters.sharegpt.system_tools import offered_tools
from adp.converters.sharegpt.turns import TurnReader
from adp_schema import extra_column, jsontext
from adp_schema.builder import RowBuilder
from adp_schema.errors import RecordError
from adp_schema.losses import Losses
from adp_schema.model import Columns
from adp_schema.protocols import RawRecord

_EMPTY = Raw(b'""')


def read_record(record: RawRecord, builder: RowBuilder, losses: Losses) -> None:
    """Convert a record.

    Raises:
        RecordError: there are no turns, or one of them is wrong.
    """
    fields = record_fields(record, losses)
    names = list(fields)
    form: dict[str, Any] = {}
    columns: Columns = {}
    key, turns, marked = _turns(fields, form, builder, losses)
    null = list(drop_nulls(fields))
    system = _system(fields)
    _tools(fields, columns, form)
    if "tools" not in columns and b"<tools>" in record.data:
        _offered(system, turns, columns, form)
    take_fields(k.RECORD_FIELDS, fields, columns, form)
    media = MediaColumns(builder)
    media.take(fields, form, turns)
    sides = _sides(fields)
    if names != [*_usual_record(names, key, form, [*fields, *null]), *fields, *null]:
        form["keys"] = names
    columns["extra"] = extra_column.pack(fields, shape=form, null=null)
    builder.trajectory(columns)
    if system is not None:
        extra = extra_column.pack(None, shape={"at": "system"})
        text = builder.text(system)
        builder.step({"source": "system", "kind": "message", "text": text, "extra": extra})
    unmarked = None if marked or record.marked else record.data
    reader = TurnReader(builder, losses, media, unmarked)
    for index, turn in enumerate(turns):
        reader.read(turn, f"$.{key}[{index}]")
    if sides is not None:
        _pair(reader, builder, *sides)


def _turns(
    fields: dict[str, Raw], form: dict[str, Any], builder: RowBuilder, losses: Losses
) -> tuple[str, list[Raw], bool]:
    """The key of the list of turns, the turns, and whether they had to be sanitised here."""
    key = next(
        (
            name
            for name in k.LISTS
            if begins(fields.get(name), BRACKET) or begins(fields.get(name), QUOTE)
        ),
        None,
    )
    if key is None:
        raise RecordError("there are no turns (no list `conversations`)", "$.conversations")
    if key != k.LISTS[0]:
        form["list"] = key
    turns, marked = list_items(
        fields.pop(key), (f"$.{key}", "turns"), form, "string", builder, losses
    )
    return key, turns, marked


def _system(fields: dict[str, Raw]) -> str | None:
    """The column ``system``; an empty one says nothing and stays in ``extra``."""
    return None if fields.get("system") == _EMPTY else take_text(fields, "system")


def _tools(fields: dict[str, Raw], columns: Columns, form: dict[str, Any]) -> None:
    """The column ``tools``: a JSON string of a list, or a list."""
    text = tools_text(fields.get("tools"))
    if text is None:
        return
    if begins(fields.pop("tools"), BRACKET):
        form["tools"] = "list"
    columns |= {"tools": text, "tools_origin": "recorded"}


def _offered(system: str | None, turns: list[Raw], columns: Columns, form: dict[str, Any]) -> None:
    """The tools that the system text offers."""
    role, text = ("system", system) if system is not None or not turns else turn_words(turns[0])
    if text is None or k.SOURCES.get(role) != "system" or jsontext.has_mark(text):
        return
    result = offered_tools(text)
    if result is not None:
        columns |= {"tools": result.tools, "tools_origin": "parsed"}
        form["tools"] = "text"


def _sides(fields: dict[str, Raw]) -> tuple[Raw, Raw] | None:
    """The two answers of a preference pair, when both are messages."""
    sides = [fields.get(name) for name in k.SIDES]
    for raw in sides:
        if not begins(raw, BRACE):
            return None
        turn = jsontext.decode_object(raw)
        role = role_key(turn)
        if role is None or value_key(turn) is None:
            return None
        if jsontext.decode_value(turn[role]).lower() in k.RESULT_ROLES:
            return None
    return fields.pop("chosen"), fields.pop("rejected")


def _usual_record(names: list[str], key: str, form: dict[str, Any], rest: list[str]) -> list[str]:
    """The order in which `write` writes what columns hold when it is not told another one."""
    read_from = form.get("fields", {})
    ids = [read_from.get(column, keys[0]) for column, keys, _ in k.RECORD_FIELDS]
    media = [name for name in (*k.MEDIA, *k.SINGLE_MEDIA) if name in form.get("media", {})]
    usual = [ids[0], key, *k.SIDES, "system", "tools", *media, *ids[1:]]
    return [name for name in usual if name in names and name not in rest]


def _pair(reader: TurnReader, builder: RowBuilder, chosen: Raw, rejected: Raw) -> None:
    """The two answers that follow the conversation: the second one becomes a branch."""
    first = reader.read(chosen, "$.chosen", "chosen")
    main = builder.finish()
    branch: Columns = {"parent_id": main, "parent_step": first, "branch_kind": "alternate"}
    builder.trajectory({**branch, "extra": extra_column.pack(None, shape={"at": "rejected"})})
    reader.read(rejected, "$.rejected", "rejected")
    builder.pair(pair_of(main, builder.finish(), first))


def pair_of(main: str | None, other: str | None, first: int) -> Columns:
    """The pair of a record: the answers of its run and of the branch at one step."""
    return {
        **{"pair_id": main, "context_id": main, "context_up_to": first, "level": "step"},
        **{"chosen_id": main, "chosen_from": first, "chosen_to": first + 1},
        **{"rejected_id": other, "rejected_from": first, "rejected_to": first + 1},
    }
