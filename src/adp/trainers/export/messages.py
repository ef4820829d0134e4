"""Chats as the messages of trainers: plain values, in the form that chat templates take."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Literal

from pydantic import Field

from adp.rendering.chat import ChatCall, Message
from adp.trainers.export.exporter import ExporterOptions


class MessageOptions(ExporterOptions):
    """Options of exporters that write messages for a chat template."""

    arguments: Literal["object", "text"] = "object"
    """Arguments of calls as an object, or as JSON text for templates that want it (DeepSeek V3)."""
    reasoning_key: str = Field(default="reasoning_content", pattern=r"^\w+$")
    """Key of a message's reasoning; gpt-oss and LFM2.5 read thinking."""
    as_text: bool = False
    """Write each message as JSON text: datasets reads it back exactly, other programs see a
    string."""


def message_value(message: Message, options: MessageOptions) -> Any:
    """A message as a template takes it, or as JSON text."""
    plain = plain_message(message, options)
    return json.dumps(plain, ensure_ascii=False, allow_nan=False) if options.as_text else plain


def values(messages: Sequence[Message], options: MessageOptions) -> list[Any]:
    """Messages as a template takes them."""
    return [message_value(message, options) for message in messages]


def plain_message(message: Message, options: MessageOptions) -> dict[str, Any]:
    """A message as a dict; keys without a value are left out."""
    plain: dict[str, Any] = {"role": message.role, "content": message.text}
    if message.role == "tool":
        if message.name is not None:
            plain["name"] = message.name
        return {**plain, "tool_call_id": message.call_id}
    if message.reasoning:
        plain[options.reasoning_key] = message.reasoning
    if message.calls:
        plain["tool_calls"] = [
            plain_call(call, text=options.arguments == "text") for call in message.calls
        ]
    return plain


def plain_call(call: ChatCall, *, text: bool) -> dict[str, Any]:
    """A call in OpenAI's form.

    Args:
        call: the call.
        text: write the arguments as JSON text, as the source wrote them.
    """
    function = {"name": call.name, "arguments": call.text if text else call.arguments}
    return {"id": call.call_id, "type": "function", "function": function}


def tools_text(tools: Sequence[Any]) -> str | None:
    """Tools as JSON text, for an Arrow column of them would be filled with nulls.

    None when there are none: some templates write an empty list of tools as if it held some.
    """
    return json.dumps(list(tools), ensure_ascii=False) if tools else None
