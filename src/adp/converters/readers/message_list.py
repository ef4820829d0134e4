"""Messages of a chat, or items of the Responses API, by themselves: a list, or a line each.

What a program keeps of a conversation and passes to the model again, without a record around it.
All of a file is one trajectory; of lists in a list, or a list a line, each is one.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Raw

from adp.converters.exchanges.apis import ModelApis
from adp.converters.kit.conversations import items_of
from adp.converters.kit.drafts import TrajectoryDraft, emit
from adp.converters.kit.lines import json_lines
from adp.converters.kit.responses_items import CALLS, RESULTS
from adp.converters.kit.session import LogReader, SessionLog, word
from adp.converters.kit.source_object import SourceObject
from adp.converters.reading import BRACE, BRACKET, begins
from adp_schema import jsontext
from adp_schema.errors import RecordError
from adp_schema.protocols import LIST_LINE, Match

_ROLES = frozenset({"user", "assistant", "system", "developer", "tool", "function"})
_MESSAGE = frozenset(
    {"role", "content", "name", "tool_calls", "tool_call_id", "function_call", "refusal", "audio",
     "annotations", "reasoning_content", "reasoning", "reasoning_details", "thinking_blocks",
     "id", "status", "phase", "provider_specific_fields", "cache_control"}
)  # fmt: skip
"""Keys of a message; one with others is a line of a log, which says more than messages do."""
_ITEMS = CALLS.keys() | RESULTS | {"reasoning", "compaction", "item_reference"}
_ITEM = frozenset(
    {"type", "id", "call_id", "name", "arguments", "input", "output", "status", "summary",
     "content", "encrypted_content", "action", "namespace", "caller"}
)  # fmt: skip


class MessageList(SessionLog):
    """The messages of a file."""

    def read(self) -> None:
        """Read one list as a trajectory, or lists as one each.

        Raises:
            RecordError: there is no message.
        """
        lines, broken = json_lines(self.record, self.builder, self.losses)
        if len(lines) == 1 and begins(lines[0], BRACKET):
            lines = items_of(lines[0])  # the only line is the list
        lists = [items_of(raw) for raw in lines] if all(begins(it, BRACKET) for it in lines) else []
        for number, items in enumerate(lists or [lines]):
            self.run = self.blocks.run = TrajectoryDraft()
            self._list(items, f"$[{number}]" if lists else "$")
            for text in [] if number else broken:
                self.entry(SourceObject(None, "$", self.losses), text)
            if not self.run.steps:
                raise RecordError("there is no message")
            emit(self.run, self.builder)

    def _list(self, items: list[Raw], path: str) -> None:
        apis = ModelApis(self.blocks)
        if any(_is_item(_values(item)) for item in items):
            apis.items.read(jsontext.raw(jsontext.text_of(items)), path)
            return
        for number, item in enumerate(items):
            place = f"{path}[{number}]"
            if not begins(item, BRACE):
                raise RecordError("expected a message", place)
            apis.chat.message(SourceObject(item, place, self.losses))


def _values(raw: Raw) -> Mapping[str, Raw]:
    return jsontext.decode_object(raw) if begins(raw, BRACE) else {}


def _is_message(values: Mapping[str, Raw]) -> bool:
    filled = not {"content", "tool_calls"}.isdisjoint(values)
    kind = word(values, "type")
    keys = values.keys() - {"type"} if kind == "message" else values.keys()
    return filled and word(values, "role") in _ROLES and keys <= _MESSAGE


def _is_item(values: Mapping[str, Raw]) -> bool:
    """Whether it is an item of the Responses API, and no message of a chat."""
    kind = word(values, "type")
    if kind == "message":
        return _is_message(values)
    return kind in _ITEMS and values.keys() <= _ITEM


class MessageListReader(LogReader):
    """The format ``message_list``."""

    name = "message_list"
    title = "Lists of chat messages or of Responses items by themselves"
    recognised = "a message with a role and a content and nothing of a log, or an item with a type"
    versions = "reads messages of chat completions and of Anthropic, and items of Responses"
    log = MessageList
    gives_way = True

    def sniff(self, record: Mapping[str, Raw]) -> Match:
        """A message or an item; or a line that is a list of them."""
        if LIST_LINE in record:
            items = items_of(record[LIST_LINE])
            lists = all(_is_message(_values(it)) or _is_item(_values(it)) for it in items)
            return Match.SHAPE if items and lists else Match.NO
        return Match.SHAPE if _is_message(record) or _is_item(record) else Match.NO


CONVERTER = MessageListReader()
