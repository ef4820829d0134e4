"""Rows of the engine v1 of LLaMA-Factory: messages of parts, each with its weight in the loss."""

from __future__ import annotations

from typing import Any

from adp.rendering.chat import Chat, Message
from adp.trainers.export.llamafactory_turns import THOUGHT, WORDS, calls_text, tools_text
from adp.trainers.export.shapes import plain

TEMPLATES = ("qwen3", "qwen3_nothink")
"""Templates of the engine v1 in LLaMA-Factory 0.9.5 that know tools."""


def v1_row(chat: Chat, template: str) -> dict[str, Any]:
    """The row of a chat: ``messages`` and ``tools``.

    Args:
        chat: a chat; all its messages are written.
        template: one of `TEMPLATES`. The engine marks reasoning as ``<thinking>`` under
            qwen3_nothink, and nothing else does; there it is words like others.
    """
    plain_thoughts = template in WORDS
    messages = [_message(message, plain_thoughts=plain_thoughts) for message in chat.messages]
    return {"messages": messages, "tools": tools_text(chat)}


def _message(message: Message, *, plain_thoughts: bool) -> dict[str, Any]:
    parts: list[tuple[str, str]] = []
    text = message.text
    if message.reasoning and plain_thoughts:
        text = f"{THOUGHT[0]}{message.reasoning}{THOUGHT[1]}{text}"
    elif message.reasoning:
        parts.append(("reasoning", message.reasoning))
    if text or not (parts or message.calls):
        parts.append(("text", text))
    parts += [("tool_call", calls_text([call], ())) for call in message.calls]
    return {
        "role": message.role,
        "content": [{"type": kind, "value": plain(value)} for kind, value in parts],
        "loss_weight": float(message.weight),
    }
