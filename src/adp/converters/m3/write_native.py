"""Writing a turn that was read from this format, in the form that it had."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from adp.converters.json_objects import members
from adp.converters.m3 import keys as k
from adp.converters.m3.model_text import arguments_of, plain_text, take_apart, with_thought
from adp.converters.m3.turn import usual_role
from adp.converters.m3.write_parts import Item, M3Parts
from adp.converters.text_calls import CallGroup, call_edit, find_bare, rewrite
from adp.converters.unwritten_columns import report_columns
from adp.converters.writing import string
from adp_schema import jsontext
from adp_schema.extra_column import Extra, original, unpack
from adp_schema.model import Observation, Step, ToolCall

Rows = list[tuple[str, Observation]]
"""Observations with their paths."""

_TURN = frozenset({"source", "kind", "actor", "text", "reasoning", "labels", "reward", "extra"})
_CALL = frozenset({"kind", "name", "arguments", "arguments_raw", "call_id", "native_id", "extra"})


@dataclass
class WrittenTurn:
    """A turn as it is written.

    Attributes:
        item: its object.
        message: what the model wrote, as a message of the next input; None when it is none.
        seen: what came back, as such a message; None when nothing did, or when it is a step.
        answer: the final answer; None when there is none.
        labels: the categories of its reward.
    """

    item: Item
    message: Item | None
    seen: Item | None
    answer: str | None
    labels: list[str] | None


def native_turn(
    parts_writer: M3Parts,
    step: Step,
    path: str,
    rows: Rows,
    known: Item | None = None,
    query: str | None = None,
) -> WrittenTurn:
    """Write a turn.

    Args:
        parts_writer: writes the parts.
        step: the step.
        path: where it is.
        rows: what came back.
        known: ``input`` and ``alternate_trace``, if they are there; None for an alternate.
        query: the next query of the user.
    """
    extra = parts_writer.extra(step)
    form = extra.shape
    report_columns(step, _TURN, path, parts_writer.losses)
    if step.content is not None:
        parts_writer.words(step, path, extra)
        report_columns(step, _TURN | {"content"}, path, parts_writer.losses)
    thought = parts_writer.text(step, "reasoning", extra)
    text = parts_writer.text(step, "text", extra)
    if text is not None and thought is not None and form.get("thought") != "apart":
        text = with_thought(text, thought)
    inside = [call for call in step.calls if unpack(call.extra).shape.get("at") != "metadata"]
    for n, call in enumerate(step.calls):
        report_columns(call, _CALL, f"{path}.calls[{n}]", parts_writer.losses)
    if inside or (step.prose is not None and text is not None):
        text = _with_calls(step, text or "", inside)
    pieces = None if text is None else take_apart(text, thought, calling=bool(inside))
    meta: Item = {
        "thought": string(thought) if form.get("thought") != "text" else None,
        "action_arguments": _arguments(step, pieces, extra, parts_writer),
    }
    seen, shown = parts_writer.seen(rows, step.labels)
    if form.get("observation") == "next" and not rows:
        meta["observation"] = string(query)
    else:
        meta["observation"] = string(seen)
    role = form.get("role", usual_role(bool(step.calls)))
    out: Item = {"role": string(role), "content": string(text)}
    order = k.ALTERNATE if known is None else k.INTERACTION
    known = {
        **(known or {}),
        "actor": string(original(step, "actor", extra)),
        "reward": parts_writer.judged(step, path, extra),
    }
    return WrittenTurn(
        item=parts_writer.turn(known, meta, out, extra, order),
        message=None if role is None or text is None else out,
        seen=None if seen is None else {"role": string(shown), "content": string(seen)},
        answer=None if pieces is None else pieces.answer,
        labels=step.labels,
    )


def _with_calls(step: Step, text: str, calls: list[ToolCall]) -> str:
    """The text with its calls, in which only what was edited is written anew."""
    if not calls and take_apart(text, step.reasoning, calling=False).prose == step.prose:
        return text
    groups: list[CallGroup] = find_bare(text)
    return rewrite(text, groups, [call_edit(call) for call in calls], tagged=False)


def _arguments(step: Step, pieces: Any, extra: Extra, parts_writer: M3Parts) -> Any:
    """The arguments in the metadata: those of the calls, or the answer."""
    form = extra.shape.get("arguments")
    if form == "none":
        return None
    alone = [call for call in step.calls if unpack(call.extra).shape.get("at") == "metadata"]
    if alone:
        written = [_object(call) for call in alone]
        return written[0] if len(written) == 1 else written
    if "action_arguments" in (members(extra.fields.get("metadata")) or {}):
        return None
    if pieces is None:
        return None
    if pieces.answer is not None:
        return string(pieces.answer)
    text = arguments_of(pieces)
    if text is None:
        return None
    return jsontext.raw(plain_text(text) if form == "plain" else text)


def _object(call: ToolCall) -> Item:
    """A call that only the metadata hold."""
    extra = unpack(call.extra)
    out: Item = {"name": string(original(call, "name", extra))}
    text = original(call, "arguments", extra)
    raw = original(call, "arguments_raw", extra)
    if text is not None or raw is not None:
        written = text if text is not None else raw
        is_object = call.arguments_kind == "object"
        out["arguments"] = jsontext.raw(written) if is_object else jsontext.string(written)
    return out
