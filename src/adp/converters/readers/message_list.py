"""Chat messages with nothing around them: one a line, one list, or a list a line.

Small agents keep their messages so, and several programs print them: Kimi CLI (``--output-format
stream-json``), the first Mistral Vibe (``--output``), and the Grok CLI for each answer. A format
with keys of its own takes its files first (`Format.gives_way`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Raw

from adp.converters.kit.chat import RESULTS, SOURCES
from adp.converters.kit.chat_messages import ChatMessages
from adp.converters.kit.lines import json_lines
from adp.converters.kit.responses_items import CALLS as ITEM_CALLS
from adp.converters.kit.responses_items import RESULTS as ITEM_RESULTS
from adp.converters.kit.responses_items import ResponseItems
from adp.converters.kit.session import LogReader, SessionLog, first_item, word
from adp.converters.kit.source_object import SourceObject
from adp.converters.kit.usage import ANTHROPIC, OPENAI, take_usage
from adp.converters.reading import BRACE, BRACKET, NULL, QUOTE
from adp_schema import jsontext
from adp_schema.builder import RowBuilder
from adp_schema.losses import Losses
from adp_schema.model import Columns
from adp_schema.protocols import LIST_LINE, Match, RawRecord

_OTHER_FORMATS = frozenset(
    {"type", "message", "messages", "parts", "uuid", "parentId", "sessionId", "session_id",
     "prompt", "response", "choices", "label", "chosen", "rejected", "conversations"}
)  # fmt: skip
"""Keys that say that an object is a line of another log, a reply of an API, or a row."""
_ITEMS = ITEM_CALLS.keys() | ITEM_RESULTS | {"reasoning", "compaction", "item_reference"}
_ITEM = frozenset(
    {"type", "id", "call_id", "name", "arguments", "input", "output", "status", "summary",
     "content", "encrypted_content", "action", "namespace", "caller"}
)  # fmt: skip
"""Keys of an item of the Responses API; one with others is a line of a log."""


class MessageList(SessionLog):
    """The messages of one conversation.

    Attributes:
        broken: lines of the file that are no JSON, for its last conversation.
    """

    broken: Sequence[str] = ()

    def read_lines(self) -> None:
        """Take the messages, and what broke off behind them."""
        super().read_lines()
        for text in self.broken:
            self.entry(SourceObject(None, "$", self.losses), text)

    def set_up(self) -> None:
        """Make the reader of messages."""
        self._chat = ChatMessages(self.blocks)
        self._items = ResponseItems(self.blocks)

    def line(self, source: SourceObject) -> None:
        """A message, by its role; what has none is kept as an event."""
        if source.word("type"):
            self._items.item(source)
            return
        self._items.end_turn()
        if SOURCES.get(source.word("role")) == "agent":
            usage: Columns = {}
            keys = source.peek("usage")
            take_usage(source, "usage", usage, OPENAI if "prompt_tokens" in keys else ANTHROPIC)
            self._chat.assistant(source).columns.update(usage)
        elif source.word("role"):
            self._chat.message(source)
        else:
            self.losses.unknown(f"record without a role: {next(iter(source.values), 'empty')}")
            self.other(source)


class MessageListReader(LogReader):
    """The format ``message_list``."""

    name = "message_list"
    title = "Chat messages with nothing around them"
    recognised = "objects of a role and a content, as lines, as a list, or in a list a line"
    versions = (
        "reads messages and items of OpenAI's and Anthropic's kinds, and what Kimi CLI prints, "
        "as do Mistral Vibe 1 and the Grok CLI"
    )
    log = MessageList
    gives_way = True
    holds_text_actions = True

    def sniff(self, record: Mapping[str, Raw]) -> Match:
        """A message of a chat, and no key of another format."""
        if LIST_LINE in record:
            record = first_item(record, LIST_LINE)
        if word(record, "type") in _ITEMS and set(record) <= _ITEM:
            return Match.SHAPE
        role = word(record, "role")
        other = _OTHER_FORMATS & set(record)
        if word(record, "type") == "message":
            other = other - {"type"}
        if (role not in SOURCES and role not in RESULTS) or other:
            return Match.NO
        content = record.get("content")
        if content is None:
            return Match.SHAPE if "tool_calls" in record else Match.NO
        return Match.SHAPE if jsontext.first_byte(content) in (QUOTE, BRACKET, NULL) else Match.NO

    def read(self, record: RawRecord, builder: RowBuilder, losses: Losses) -> None:
        """Read a conversation, or each list of a file of lists."""
        report = Losses()
        items, broken = json_lines(record, builder, report)
        firsts = {jsontext.first_byte(item) for item in items}
        if BRACKET not in firsts or BRACE in firsts:
            super().read(record, builder, losses)
            return
        for number, item in enumerate(items):
            place = RawRecord(bytes(item), record.source_file, record.number, record.offset, 0)
            run = MessageList(place, builder, losses)
            run.run.columns["source_id"] = f"{record.source_file.rpartition('/')[2]}/{number + 1}"
            if number + 1 == len(items):
                run.broken = broken
            run.read()
        losses.items += report.items


CONVERTER = MessageListReader()
