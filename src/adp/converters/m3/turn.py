"""One turn of a model: what it thought and wrote, what came back, and how that was judged."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from msgspec import Raw

from adp.converters.json_objects import JsonObject
from adp.converters.m3 import keys as k
from adp.converters.m3.labels import error_of, labels_of
from adp.converters.m3.model_text import arguments_of, same_json, take_apart
from adp.converters.reading import BRACE, NULL, QUOTE, argument_columns
from adp.converters.text_calls import TextCall
from adp_schema import extra_column, jsontext
from adp_schema.builder import RowBuilder
from adp_schema.losses import Losses
from adp_schema.model import Columns


@dataclass
class M3Turn:
    """One turn as it was read.

    Attributes:
        source: its object, without what was taken.
        columns: columns of its step.
        calls: columns of its calls.
        role: role of what was written; None when it has none.
        pieces: what was written; None when it is no text.
        seen: what came back; None when it is no text.
        answer: the final answer that it gives; None when it gives none.
        turn: number of the user's turn that it belongs to; known when it is emitted.
    """

    source: JsonObject
    columns: Columns = field(default_factory=dict)
    calls: list[Columns] = field(default_factory=list)
    role: str | None = None
    pieces: str | None = None
    seen: str | None = None
    answer: str | None = None
    turn: int | None = None

    @property
    def form(self) -> dict[str, Any]:
        """What a round trip needs of the step."""
        return self.source.form


def read_turn(raw: Raw, path: str, losses: Losses) -> M3Turn:
    """Read a turn; what it leaves of its object is packed by `emit`.

    Raises:
        RecordError: it is no object.
    """
    source = JsonObject(raw, path, losses)
    out = M3Turn(source, {"source": "agent", "kind": "llm_turn"})
    meta = source.inner("metadata", losses)
    written = source.inner("output", losses)
    if written is not None:
        out.pieces = written.text("content")
        if not jsontext.has_mark(bytes(written.values.get("role", b"")).decode("utf-8")):
            out.role = written.text("role")
    thought = meta.text("thought") if meta is not None else None
    _read_said(out, meta, thought)
    if meta is not None:
        out.seen = meta.text("observation")
        source.close("metadata", meta, k.METADATA)
    if written is not None:
        source.close("output", written, k.OUTPUT)
    out.columns["actor"] = source.text("actor")
    _read_reward(out)
    return out


def _read_reward(out: M3Turn) -> None:
    """The categories of the reward as labels, or the reward when it is a number."""
    if out.source.first("reward") != QUOTE:
        out.columns["reward"] = out.source.number("reward")
        return
    text = jsontext.decode_value(out.source.values["reward"])
    if jsontext.has_mark(text):
        return
    out.source.take("reward")
    out.columns["labels"], regular = labels_of(text)
    if not regular:
        out.form["reward"] = "whole"


def _read_said(out: M3Turn, meta: JsonObject | None, thought: str | None) -> None:
    """Text, prose, reasoning and calls."""
    form, columns = out.form, out.columns
    given = meta.values.get("action_arguments") if meta is not None else None
    is_object = given is not None and jsontext.first_byte(given) == BRACE
    if out.pieces is None:
        columns["reasoning"] = thought
        if meta is not None and is_object:
            _structured(out, meta)
        _note_role(out)
        return
    pieces = take_apart(out.pieces, thought, calling=out.role == "function" or is_object)
    columns["text"], columns["prose"] = out.pieces, pieces.prose
    columns["reasoning"] = thought
    if thought is None and pieces.thought is not None:
        columns["reasoning"], form["thought"] = pieces.thought, "text"
    elif thought is not None and pieces.thought != thought:
        form["thought"] = "apart"
    arguments = arguments_of(pieces)
    if pieces.answer is not None:
        arguments = jsontext.encode(jsontext.string(pieces.answer)).decode("utf-8")
        out.answer = pieces.answer
    fits = arguments is not None and _agrees(arguments, given, meta, form)
    if pieces.group is not None and fits:
        out.calls = [_text_call(call) for call in pieces.group.calls]
    elif meta is not None and is_object:
        columns["prose"] = None
        _structured(out, meta)
    elif pieces.group is not None:
        columns["prose"] = None
    _note_role(out)


def _note_role(out: M3Turn) -> None:
    if out.role != usual_role(bool(out.calls)):
        out.form["role"] = out.role


def usual_role(calls: bool) -> str:
    """The role of what a model writes."""
    return "function" if calls else "assistant"


def _agrees(value: str, given: Raw | None, meta: JsonObject | None, form: dict[str, Any]) -> bool:
    """Whether the metadata say the same as the text; then they are written from it."""
    if given is None or jsontext.first_byte(given) == NULL:
        form["arguments"] = "none"
        return True
    assert meta is not None
    text = jsontext.unmark_json(jsontext.one_line(given))
    value = jsontext.unmark_json(value)
    if not same_json(value, text):
        return False
    if value != text and "\\" in value and value.isascii() and not text.isascii():
        form["arguments"] = "plain"
    meta.take("action_arguments")
    return True


def _text_call(call: TextCall) -> Columns:
    values = call.values
    return {
        "kind": "function",
        "origin": "parsed_from_text",
        "span_start": call.span[0],
        "span_end": call.span[1],
        "call_id": values.call_id,
        "name": values.name,
        "arguments": values.arguments,
        "arguments_raw": values.raw,
        "arguments_kind": call.kind,
    }


def _structured(out: M3Turn, meta: JsonObject) -> None:
    """A call that only the metadata hold."""
    given = meta.values["action_arguments"]
    child = jsontext.decode_object(given)
    if list(child) not in (["name", "arguments"], ["name"]) or jsontext.lost_keys(given, child):
        return
    if jsontext.first_byte(child["name"]) != QUOTE:
        return
    columns: Columns = {"kind": "function", "name": jsontext.decode_value(child["name"])}
    if "arguments" in child:
        value = child["arguments"]
        if jsontext.first_byte(value) == NULL:
            return
        columns |= argument_columns(value)
    columns["extra"] = extra_column.pack(None, shape={"at": "metadata"})
    meta.take("action_arguments")
    out.calls = [columns]


def emit(out: M3Turn, order: tuple[str, ...], builder: RowBuilder, shown: str | None) -> int:
    """Add the step with its calls and what came back.

    Args:
        out: the turn.
        order: the usual keys of its object.
        builder: takes the rows.
        shown: role under which the model saw what came back; None when that is a step by itself.

    Returns:
        The index of the step.
    """
    form = out.source.end(order)
    columns = {**out.columns, "extra": extra_column.pack(out.source.values, shape=form)}
    index = builder.step(columns)
    out.turn = columns["turn"]
    for call in out.calls:
        builder.call(call)
    if out.seen is not None and shown is not None:
        seen: Columns = {"source": "environment", "text": builder.text(out.seen)}
        seen["is_error"], seen["error_type"] = error_of(out.seen, out.columns.get("labels"))
        if shown != k.OBSERVATION:
            seen["extra"] = extra_column.pack(None, shape={"role": shown})
        builder.observation(seen, by_order=bool(out.calls))
    return index
