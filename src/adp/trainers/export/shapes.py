"""What exporters for other trainers share: where a row ends, sides of a pair, readable texts."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from adp.rendering.chat import Chat, Message, PairChats
from adp.trainers.export.exporter import UnwritableChatError

NEITHER = "a weight that is neither 0 nor 1"
SEVERAL = "a side that is not one trained message after the prompt"
SAME = "both sides say the same"

_HALF = re.compile("[\ud800-\udfff]")


def ended(chat: Chat) -> Chat:
    """The chat up to its last trained message: what follows is no context of any trained step."""
    trained = chat.trained()
    return replace(chat, messages=chat.messages[: trained[-1] + 1 if trained else 0])


def alike(chat: Chat) -> bool:
    """Whether every message of the assistant, up to the last trained one, has the weight 1."""
    return all(
        message.weight == 1 for message in ended(chat).messages if message.role == "assistant"
    )


def last_only(chat: Chat) -> bool:
    """Whether the last message has the weight 1, and no other one has any."""
    trained = chat.trained()
    return trained == [len(chat.messages) - 1] and chat.messages[-1].weight == 1


def plain(value: Any) -> Any:
    """A value without halves of characters (lone surrogates), which no UTF-8 file can hold."""
    if isinstance(value, str):
        return _HALF.sub("\ufffd", value)
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {plain(key): plain(item) for key, item in value.items()}
    return value


def json_text(value: Any) -> str:
    """A value as JSON text, characters as themselves."""
    return str(plain(json.dumps(value, ensure_ascii=False)))


def arguments_text(text: str) -> str:
    """The arguments as they were written; anew only when they hold half a character."""
    if not re.search(r"\\u[dD][89a-fA-F]", text) and not _HALF.search(text):
        return text
    return json_text(json.loads(text))


def sides(pair: PairChats) -> tuple[Message, Message]:
    """The one message of each side, for formats that hold no more.

    The runner has cut the pair, or stopped, before; this is to be sure.

    Raises:
        UnwritableChatError: a side has more, or both say the same.
    """
    results = []
    for chat in (pair.chosen, pair.rejected):
        if len(chat.messages) != pair.shared + 1 or not last_only(chat):
            raise UnwritableChatError(SEVERAL)
        results.append(chat.messages[-1])
    values = [(side.text, side.reasoning, calls_of(side)) for side in results]
    if values[0] == values[1]:
        raise UnwritableChatError(SAME)
    return results[0], results[1]


def calls_of(message: Message) -> list[tuple[str, str]]:
    """The calls of an assistant's message, without ids."""
    return [(call.name, call.text) for call in message.calls]


def note_invalid(messages: Iterable[Message], changed: Counter[str]) -> None:
    """Count calls whose arguments are no JSON object, and are written inside one."""
    count = sum(not call.valid for message in messages for call in message.calls)
    if count:
        changed["arguments that are no JSON object, written as text in one"] += count
