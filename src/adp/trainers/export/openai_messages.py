"""Chats as messages of OpenAI's fine-tuning files, with the limits that its API checks.

Source: OpenAI's API reference, `FineTuneChatRequestInput` and `FineTunePreferenceRequestInput`,
and the limits that the chat API states in its errors. There is no place for reasoning.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from adp.rendering.chat import Chat, ChatCall, Message
from adp.trainers.export.exporter import UnwritableChatError
from adp.trainers.export.shapes import plain
from adp_schema.ids import digest

MOST_TOOLS = 128
LONGEST_NAME = 64
LONGEST_ID = 40
LONGEST_DESCRIPTION = 1024
MOST_TOKENS = 65_536
FEWEST_ROWS = 10
LARGEST_FILE = "512 MB"
CHARACTERS_PER_TOKEN = 4
"""A rough figure for English text: only to say that a row is far too long."""

_OTHER = re.compile(r"[^a-zA-Z0-9_-]")


class OpenAIMessages:
    """Writes the messages of one chat.

    Args:
        chat: a chat; all its messages are written.
        changed: counts what is written differently.

    Raises:
        UnwritableChatError: the format has no place for it.
    """

    def __init__(self, chat: Chat, changed: Counter[str]) -> None:
        self._changed = changed
        self._chat = chat
        if len(chat.tools) > MOST_TOOLS:
            raise UnwritableChatError(f"more than {MOST_TOOLS} tools on offer")
        self._names = self._renamed(
            [
                *(tool["function"]["name"] for tool in chat.tools),
                *(call.name for message in chat.messages for call in message.calls),
            ]
        )
        self._ids: dict[str, str] = {}
        self._open: list[str] = []

    def offer(self, parallel: bool) -> dict[str, Any]:
        """``tools`` and ``parallel_tool_calls``, which the API takes only together.

        Args:
            parallel: whether several calls in one message are allowed.

        Raises:
            UnwritableChatError: there are some, and they are not.
        """
        if not parallel and any(len(message.calls) > 1 for message in self._chat.messages):
            raise UnwritableChatError("parallel calls, which parallel_tool_calls=false forbids")
        if not self._chat.tools:
            return {}
        return {"tools": self._tools(), "parallel_tool_calls": parallel}

    def _tools(self) -> list[dict[str, Any]]:
        tools = []
        for tool in self._chat.tools:
            values = {key: value for key, value in tool["function"].items() if value is not None}
            values["name"] = self._names[values["name"]]
            if len(str(values.get("description", ""))) > LONGEST_DESCRIPTION:
                self._changed[
                    f"descriptions of tools of more than {LONGEST_DESCRIPTION} characters, kept"
                ] += 1
            tools.append({"type": "function", "function": plain(values)})
        return tools

    def messages(self, end: int | None = None) -> list[dict[str, Any]]:
        """The messages; an assistant's has its ``weight``.

        Args:
            end: index of the message before which to stop.
        """
        messages: list[dict[str, Any]] = []
        for message in self._chat.messages[:end]:
            if message.role == "tool":
                messages.append(self._result(message))
                continue
            messages += self._unanswered()
            if message.role == "assistant":
                messages.append({**self.assistant(message), "weight": int(message.weight == 1)})
            else:
                messages.append({"role": message.role, "content": plain(message.text)})
        return messages

    def assistant(self, message: Message) -> dict[str, Any]:
        """A message of the assistant, without its weight."""
        written: dict[str, Any] = {"role": "assistant"}
        if message.reasoning:
            self._changed["reasoning, which the format has no place for"] += 1
        if message.text or not message.calls:
            written["content"] = plain(message.text)
        if message.calls:
            written["tool_calls"] = [self._call(call) for call in message.calls]
            self._open = [call.call_id for call in message.calls]
        return written

    def _call(self, call: ChatCall) -> dict[str, Any]:
        name = call.call_id
        if len(name) > LONGEST_ID:
            self._changed[f"ids of calls of more than {LONGEST_ID} characters"] += 1
            name = f"call_{digest(name.encode())}"
        self._ids[call.call_id] = plain(name)
        function = {"name": self._names[call.name], "arguments": plain(call.text)}
        return {"id": self._ids[call.call_id], "type": "function", "function": function}

    def _result(self, message: Message) -> dict[str, Any]:
        call_id = message.call_id or ""
        if call_id not in self._open:
            raise UnwritableChatError("a result that does not follow its call at once")
        self._open.remove(call_id)
        return {
            "role": "tool",
            "tool_call_id": self._ids[call_id],
            "content": plain(message.text),
        }

    def _unanswered(self) -> Iterable[dict[str, Any]]:
        """The API wants a result for every call before the chat goes on."""
        for call_id in self._open:
            self._changed["an empty result for a call that has none"] += 1
            yield {"role": "tool", "tool_call_id": self._ids[call_id], "content": ""}
        self._open = []

    def _renamed(self, names: Iterable[str]) -> dict[str, str]:
        """Names of tools as the API allows them.

        Raises:
            UnwritableChatError: two tools would share a name.
        """
        results = {name: _OTHER.sub("_", name)[:LONGEST_NAME] or "_" for name in names}
        if len(set(results.values())) < len(results):
            raise UnwritableChatError("two tools whose names the API cannot tell apart")
        self._changed["names of tools with characters that the API refuses"] += sum(
            name != written for name, written in results.items()
        )
        return results


def note_length(messages: list[dict[str, Any]], changed: Counter[str]) -> None:
    """Count a row that is surely longer than the API takes: it cuts the end of such rows."""
    size = sum(
        len(str(message.get("content", ""))) + len(str(message.get("tool_calls", "")))
        for message in messages
    )
    if size > MOST_TOKENS * CHARACTERS_PER_TOKEN:
        changed[f"rows of about more than {MOST_TOKENS:,} tokens, whose end the API cuts off"] += 1


def limits(facts: Mapping[str, Any]) -> str:
    """What a README says about the limits of the service."""
    few = f" These are {facts['rows']}." if facts["rows"] < FEWEST_ROWS else ""
    return (
        f"- The service wants at least {FEWEST_ROWS} rows.{few} A file may have {LARGEST_FILE}; of "
        f"a row, what goes beyond {MOST_TOKENS:,} tokens is cut off.\n"
        "- OpenAI has closed fine-tuning to new users. Azure OpenAI, Together and others take the "
        "same rows; ask yours whether it reads `weight` and `tools`.\n"
    )
