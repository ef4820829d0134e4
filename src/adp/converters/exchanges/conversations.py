"""Calls of a model that repeat the history each time, joined to conversations that hold it once.

A call goes on with a conversation when its messages begin with all those of the conversation; the
model's answer in between may be written in another way than it was given.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
from msgspec import Raw

from adp_schema import jsontext

_IGNORED = frozenset({"cache_control", "id", "status", "usage_metadata", "response_metadata"})
_AGENT = frozenset({"assistant", "ai", "model", "AIMessage", "AIMessageChunk"})
_AGENT_ITEMS = ("reasoning", "_call", "program")


@dataclass
class Conversation:
    """What was said so far.

    Attributes:
        prompt: a key of each message of the last prompt, in order.
        value: what the caller keeps with it.
        answered: whether the model answered the last prompt.
    """

    value: Any
    answered: bool = True
    prompt: list[bytes] = field(default_factory=list)

    def known(self, messages: Sequence[Raw]) -> int:
        """How many messages of a prompt the conversation has; 0 when the prompt does not go on.

        Args:
            messages: those of the prompt.
        """
        if not self.prompt or len(messages) < len(self.prompt):
            return 0
        keys = [message_key(message) for message in messages[: len(self.prompt)]]
        if keys != self.prompt:
            return 0
        count = len(self.prompt)
        while self.answered and count < len(messages) and is_of_agent(messages[count]):
            count += 1
        return count

    def note_prompt(self, messages: Sequence[Raw]) -> None:
        """Note the messages of a prompt that was read: the next prompt may go on with them."""
        self.prompt = [message_key(message) for message in messages]


def longest(
    conversations: Sequence[Conversation], messages: Sequence[Raw]
) -> tuple[Conversation | None, int]:
    """The conversation that a prompt goes on with, and how many of its messages that has.

    Args:
        conversations: those so far.
        messages: the messages of the prompt.
    """
    known = [conversation.known(messages) for conversation in conversations]
    if not any(known):
        return None, 0
    place = max(range(len(known)), key=lambda number: (known[number], number))
    return conversations[place], known[place]


def message_key(message: Raw) -> bytes:
    """What a message is compared by: all of it but ids, marks of caches, and white space."""
    try:
        value = msgspec.json.decode(message)
    except msgspec.DecodeError:
        return bytes(message)
    return msgspec.json.encode(_plain(value), order="sorted")


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(it) for key, it in value.items() if key not in _IGNORED and it}
    if isinstance(value, list):
        if len(value) == 1 and isinstance(value[0], dict) and value[0].get("type") == "text":
            return value[0].get("text")
        return [_plain(item) for item in value]
    return value


def is_of_agent(message: Raw) -> bool:
    """Whether a message, an item or a content is of the model."""
    try:
        values = msgspec.json.decode(message)
    except msgspec.DecodeError:
        return False
    if not isinstance(values, dict):
        return False
    kind, role = values.get("type"), values.get("role")
    if isinstance(values.get("id"), list) and values["id"]:
        kind = values["id"][-1]
    if isinstance(role, str):
        return role in _AGENT
    return isinstance(kind, str) and (kind in _AGENT or kind.endswith(_AGENT_ITEMS))


def items_of(raw: Raw | None) -> list[Raw]:
    """The items of a list; none of anything else."""
    if raw is None or jsontext.first_byte(raw) != 0x5B:
        return []
    items: list[Raw] = jsontext.decode_array(raw)
    return items
