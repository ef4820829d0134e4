"""Writing a turn of another format: one interaction for each call, or a final answer."""

from __future__ import annotations

from typing import Any

from adp.converters.json_objects import members
from adp.converters.m3 import keys as k
from adp.converters.m3.model_text import arguments_of, take_apart
from adp.converters.m3.write_native import Rows, WrittenTurn
from adp.converters.m3.write_parts import Item, M3Parts
from adp.converters.text_calls import call_text
from adp.converters.unwritten_columns import report_columns
from adp_schema import jsontext
from adp_schema.extra_column import original
from adp_schema.model import Step, ToolCall

_TURN = frozenset({"source", "kind", "actor", "text", "content", "reasoning", "labels", "reward"})
_CALL = frozenset({"kind", "name", "arguments", "arguments_raw", "language"})


def foreign_turns(parts_writer: M3Parts, step: Step, path: str, rows: Rows) -> list[WrittenTurn]:
    """Write a turn; what came back and answers no call goes to the last interaction."""
    extra = parts_writer.extra(step)
    report_columns(step, parts_writer.carried(_TURN), path, parts_writer.losses)
    if step.kind in ("context_edit", "event"):
        parts_writer.losses.add(f"{path}.kind", f"a step of kind {step.kind} becomes a turn")
    words = parts_writer.words(step, path, extra) or ""
    thought = parts_writer.text(step, "reasoning", extra) or ""
    judged = parts_writer.judged(step, path, extra)
    actor = original(step, "actor", extra)
    calls = [
        (_call(parts_writer, call, f"{path}.calls[{n}]"), _is_retrieval(call))
        for n, call in enumerate(step.calls)
    ]
    kept = dict(extra.fields)
    child = {name: members(kept.pop(name, None)) or {} for name in ("metadata", "output")}
    out: list[WrittenTurn] = []
    for number in range(max(len(calls), 1)):
        last = number == max(len(calls), 1) - 1
        items = [item for item in rows if _belongs(item[1], step, number, last, len(calls))]
        seen, _ = parts_writer.seen(items, step.labels)
        text = f"<think>{thought}</think>"
        arguments: Any = jsontext.string(words)
        action = "FINAL"
        if calls:
            call, retrieves = calls[number]
            action = "RETRIEVE" if retrieves else "API"
            text += f"{words}\n{call}" if words else call
            arguments = jsontext.raw(call) if jsontext.is_nearly_valid(call) else None
        else:
            text += f"<FINAL>{words}</FINAL>"
        _report_unclear(
            parts_writer, text, thought, words, calls[number][0] if calls else None, path
        )
        meta: Item = {
            "thought": jsontext.string(thought),
            "action": action,
            "action_arguments": arguments,
            "observation": None if seen is None else jsontext.string(seen),
        }
        role = "function" if calls else "assistant"
        message: Item = {"role": role, "content": jsontext.string(text)}
        item: Item = {
            "metadata": {**meta, **child["metadata"]},
            "actor": "agent" if actor is None else jsontext.string(actor),
            "output": {**message, **child["output"]},
            "reward": judged,
            **kept,
        }
        back: Item | None = None
        if seen is not None:
            back = {"role": k.OBSERVATION, "content": meta["observation"]}
        answer = None if calls else words
        out.append(WrittenTurn(item, message, back, answer, step.labels))
        thought = words = ""
        kept, child = {}, {name: {} for name in child}
    return out


def _belongs(row: Any, step: Step, number: int, last: bool, calls: int) -> bool:
    """Whether an observation goes to the interaction of a call."""
    answers_call = row.call_step == step.step and row.call is not None and row.call < calls
    return bool(row.call == number) if answers_call else last


def _report_unclear(
    parts_writer: M3Parts, text: str, thought: str, words: str, call: str | None, path: str
) -> None:
    """Report words that a reader would not tell from the call beside them."""
    pieces = take_apart(text, thought, calling=call is not None)
    if (pieces.prose, arguments_of(pieces)) == (words, call):
        return
    if words and not (call is None and pieces.answer == words):
        parts_writer.losses.add(
            f"{path}.text", "it cannot be told from the call that it stands with"
        )
        parts_writer.losses.add(
            f"{path}.prose", "it cannot be told from the call that it stands with"
        )
    if thought and pieces.thought != thought:
        parts_writer.losses.add(f"{path}.reasoning", "it cannot be told from the text after it")


def _is_retrieval(call: ToolCall) -> bool:
    name = call.name or ""
    return name == k.RETRIEVE or name.startswith("retriever_")


def _call(parts_writer: M3Parts, call: ToolCall, path: str) -> str:
    """The JSON of a call."""
    losses = parts_writer.losses
    report_columns(call, parts_writer.carried(_CALL), path, losses)
    if call.kind == "code":
        losses.add(f"{path}.kind", "a call of kind code becomes one of a function")
    return call_text(call, parts_writer.extra(call), parts_writer.run.media, path, losses)
