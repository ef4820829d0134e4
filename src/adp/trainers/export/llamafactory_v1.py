"""Rows of the engine v1 of LLaMA-Factory: messages of parts, each with its weight in the loss."""

from __future__ import annotations

from typing import Any

from adp.core.render.chat import Chat, Message
from adp.trainers.export.llamafactory_turns import calls_text, tools_text
from adp.trainers.export.shapes import plain

TEMPLATES = ("qwen3", "qwen3_nothink")
"""Templates of the engine v1 in LLaMA-Factory 0.9.5 that know tools."""


def v1_row(chat: Chat) -> dict[str, Any]:
    """The row of a chat: ``messages`` and ``tools``."""
    return {"messages": [_message(each) for each in chat.messages], "tools": tools_text(chat)}


def _message(message: Message) -> dict[str, Any]:
    parts: list[tuple[str, str]] = []
    if message.reasoning:
        parts.append(("reasoning", message.reasoning))
    if message.text or not (message.reasoning or message.calls):
        parts.append(("text", message.text))
    parts += [("tool_call", calls_text([call], ())) for call in message.calls]
    return {
        "role": message.role,
        "content": [{"type": kind, "value": plain(value)} for kind, value in parts],
        "loss_weight": float(message.weight),
    }
