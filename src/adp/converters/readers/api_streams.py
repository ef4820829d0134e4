"""Streamed replies of model APIs, an event a line.

Events of the Responses API, of Anthropic, and chunks of chat completions. The events are joined to
the replies that they tell, which are the turns of one trajectory in their order. Sources: the
references of the APIs; streams that an SDK recorded.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Raw

from adp.converters.exchanges.apis import ModelApis, reply_kind
from adp.converters.exchanges.reader import REPLY_ONLY
from adp.converters.exchanges.streams import encoded, is_event, join, streams_of
from adp.converters.kit.drafts import merge_extra
from adp.converters.kit.lines import json_lines
from adp.converters.kit.session import LogReader, SessionLog, inner, word
from adp.converters.kit.source_object import SourceObject
from adp.converters.reading import BRACE, BRACKET
from adp_schema import jsontext
from adp_schema.errors import RecordError
from adp_schema.protocols import Match


class Streams(SessionLog):
    """The events of a file."""

    def read_lines(self) -> None:
        """Join events to replies, and read those."""
        single = jsontext.first_byte(self.record.data) != BRACKET
        items, broken = json_lines(self.record, self.builder, self.losses)
        events: list[dict[str, Any]] = []
        others: list[SourceObject] = []
        for number, item in enumerate(items):
            if jsontext.first_byte(item) != BRACE:
                raise RecordError("expected an event", f"$[{number}]")
            source = SourceObject(item, "$" if single else f"$[{number}]", self.losses)
            if is_event(source.word("type"), source.word("object")):
                events.append(msgspec.json.decode(item))
                reason = "an event of a stream, joined with the others to the reply that they tell"
                self.losses.add(source.path, reason)
            else:
                others.append(source)
        self.replies(events)
        for source in others:
            self.other(source)
        for text in broken:
            self.entry(SourceObject(None, "$", self.losses), text)

    def replies(self, events: list[dict[str, Any]]) -> None:
        """Join events to the replies that they tell.

        Raises:
            RecordError: a reply is not whole.
        """
        replies = join(events)
        if not replies or len(replies) < len(streams_of(events)):
            raise RecordError("the events do not tell a whole reply")
        self.run.columns["tags"] = [REPLY_ONLY]
        for reply in replies:
            self._reply(encoded(reply))

    def _reply(self, data: bytes) -> None:
        source = SourceObject(data, "$", self.losses)
        kind = reply_kind(source.values)
        if not kind:
            raise RecordError("the events do not tell a reply")
        step = ModelApis(self.blocks).reply(source, kind)
        if step is not None:
            merge_extra(step.extra, source.rest())
            self.run.columns.setdefault("source_id", step.columns.get("response_id"))


class APIStreams(LogReader):
    """The format ``api_streams``."""

    name = "api_streams"
    title = "Streamed replies of model APIs, an event a line"
    recognised = "an event of the Responses API or of Anthropic, or a chunk of a chat completion"
    versions = "reads streams of the Responses API, of Anthropic, and of chat completions"
    log = Streams

    def sniff(self, record: Mapping[str, Raw]) -> Match:
        """An event with what only events have."""
        kind, keys = word(record, "type"), set(record)
        if word(record, "object") == "chat.completion.chunk":
            return Match.STAMP
        responses = kind.startswith("response.") and bool(keys & {"response", "sequence_number"})
        anthropic = kind == "message_start" and "parentUuid" not in keys
        anthropic = anthropic and bool({"id", "type"} & set(inner(record, "message")))
        return Match.STAMP if responses or anthropic else Match.NO


CONVERTER = APIStreams()
