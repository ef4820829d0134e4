"""Conversations of plain texts: the rows of harnesses that write calls into the text."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from adp.rendering.chat import Chat
from adp.trainers.export.exporter import ExportItem
from adp.trainers.export.harness.options import HarnessOptions, ShareOptions
from adp.trainers.export.harness.texts import joined

_FROM = {"user": "human", "assistant": "gpt", "call": "function_call", "result": "observation"}
_ROLES = {"user": "user", "assistant": "assistant", "call": "assistant", "result": "user"}


@dataclass(slots=True)
class ChatLine:
    """A message of plain text.

    Attributes:
        kind: who writes it; ``call``: the agent, with a call; ``result``: what came back.
        text: the text.
        weight: weight in the loss.
    """

    kind: Literal["user", "assistant", "call", "result"]
    text: str
    weight: float = 0.0


def conversation(lines: Iterable[ChatLine], options: ShareOptions) -> list[dict[str, Any]]:
    """The messages of a row."""
    messages: list[dict[str, Any]] = []
    for line in lines:
        if options.keys == "from":
            message: dict[str, Any] = {"from": _FROM[line.kind], "value": line.text}
        else:
            message = {"role": _ROLES[line.kind], "content": line.text}
        if options.weights and line.kind in ("assistant", "call"):
            message["weight"] = int(line.weight > 0)
        messages.append(message)
    return messages


def row_id(item: ExportItem) -> str:
    """The id of a row: that of the source, and the number of a later stretch."""
    assert item.chat is not None
    name = item.trajectory.source_id or item.chat.trajectory_id
    return f"{name}-{item.chat.segment}" if item.chat.segment else name


def with_source_system(prompt: str, chat: Chat, options: HarnessOptions) -> str:
    """The system prompt, with that of the source behind it where it is wanted."""
    if options.source_system == "drop":
        return prompt
    return joined(prompt, *(message.text for message in chat.messages if message.role == "system"))
