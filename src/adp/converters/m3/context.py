"""What a model sees: the messages of its input, as the steps that they come from.

Each interaction of a run repeats its whole input. The input follows from the steps before it, so
none of it is stored: a step of the agent adds what it wrote and what came back, any other message
is a step by itself, and a step of kind ``context_edit`` says that earlier steps were left out.

A context edit with the boundary ``replace`` keeps those messages of the context that come from a
step from ``edit_from`` up to, not with, ``edit_to``; ``edit_summary`` follows them. So the collapse
of a finished turn keeps its question, and the golden answer stands for what the agent did.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from msgspec import Raw

from adp.converters.json_objects import JsonObject
from adp.converters.m3 import keys as k
from adp.converters.reading import BRACE, QUOTE, opaque_columns
from adp_schema import extra_column, jsontext
from adp_schema.builder import RowBuilder
from adp_schema.losses import Losses
from adp_schema.model import Columns

Seen = tuple[str, str] | str
"""A message in a form that can be compared: role and content, or its JSON text."""


def seen_message(raw: Raw) -> Seen:
    """A message of an input."""
    if jsontext.first_byte(raw) == BRACE:
        message = jsontext.decode_object(raw)
        values = [message.get(key, Raw()) for key in k.MESSAGE]
        texts = all(jsontext.first_byte(value) == QUOTE for value in values)
        if list(message) == list(k.MESSAGE) and texts and not jsontext.lost_keys(raw, message):
            role, content = map(jsontext.decode_value, values)
            return role, content
    return jsontext.one_line(raw)


@dataclass
class ModelContext:
    """The messages that the next turn sees.

    Attributes:
        steps: the step that each comes from.
        messages: the messages.
    """

    steps: list[int] = field(default_factory=list)
    messages: list[Any] = field(default_factory=list)

    def add(self, step: int, message: Any) -> None:
        """Add a message."""
        self.steps.append(step)
        self.messages.append(message)

    def keep(self, first: int, end: int) -> None:
        """Keep the messages of the steps from one up to, not with, another."""
        kept = [n for n, step in enumerate(self.steps) if first <= step < end]
        self.steps = [self.steps[n] for n in kept]
        self.messages = [self.messages[n] for n in kept]


def follow(
    context: ModelContext, given: list[Raw], builder: RowBuilder, path: str, losses: Losses
) -> None:
    """Add the steps that turn the context into an input.

    Args:
        context: what the steps so far give; it becomes the input.
        given: the messages of the input.
        builder: takes the rows.
        path: where the input is.
        losses: takes keys that occur twice.
    """
    wanted = [seen_message(raw) for raw in given]
    common = 0
    for message, theirs in zip(context.messages, wanted, strict=False):
        if message != theirs:
            break
        common += 1
    if common < len(context.messages):
        common = _edit(context, common, wanted, builder)
    for number in range(common, len(wanted)):
        index = _message(given[number], wanted[number], builder, f"{path}[{number}]", losses)
        context.add(index, wanted[number])


def _edit(context: ModelContext, common: int, wanted: list[Seen], builder: RowBuilder) -> int:
    """Leave out what the input does not have; return how many of its messages are there."""
    end = context.steps[common]
    context.keep(0, end)
    common = len(context.messages)
    columns: Columns = {
        "source": "environment",
        "kind": "context_edit",
        "edit_boundary": "replace",
        "edit_from": 0,
        "edit_to": end,
    }
    summary = wanted[common] if common < len(wanted) else None
    is_answer = isinstance(summary, tuple) and summary[0] == "assistant"
    if summary is not None and is_answer:
        columns["edit_summary"] = builder.text(summary[1])
    index = builder.step(columns)
    if is_answer:
        context.add(index, summary)
    return common + is_answer


def _message(raw: Raw, seen: Seen, builder: RowBuilder, path: str, losses: Losses) -> int:
    """Add a message of the input as a step."""
    columns: Columns = {"source": "environment", "kind": "message"}
    if isinstance(seen, tuple) and not jsontext.has_mark(seen[0]):
        role = seen[0]
        columns["source"] = k.SOURCES.get(role, "environment")
        columns["text"] = builder.text(seen[1])
        form = {} if role == "user" else {"message": role}
        columns["extra"] = extra_column.pack(None, shape=form)
        return builder.step(columns)
    message = JsonObject(raw, path, losses) if jsontext.first_byte(raw) == BRACE else None
    if message is not None and _is_message(message):
        role, text = message.text("role") or "", message.text("content") or ""
        columns["source"] = k.SOURCES.get(role, "environment")
        columns["text"] = builder.text(text)
        form = message.end(k.MESSAGE)
        if role != "user":
            form["message"] = role
        columns["extra"] = extra_column.pack(message.values, shape=form)
        return builder.step(columns)
    columns |= {"kind": "event", **opaque_columns(raw)}
    columns["extra"] = extra_column.pack(None, shape={"message": None})
    return builder.step(columns)


def _is_message(message: JsonObject) -> bool:
    """Whether an object has a role that can be stored, and a text."""
    texts = all(message.first(key) == QUOTE for key in k.MESSAGE)
    return texts and not jsontext.has_mark(bytes(message.values["role"]).decode("utf-8"))
