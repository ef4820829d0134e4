"""Streamed replies of model APIs as they come over the wire: a text of server-sent events.

Lines ``data:`` hold the events that `api_streams` reads, an event a line.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Raw

from adp.converters.exchanges.streams import events_of, is_event
from adp.converters.kit.drafts import merge_extra
from adp.converters.kit.session import LogReader, word
from adp.converters.kit.source_object import SourceObject
from adp.converters.readers.api_streams import Streams
from adp_schema.errors import RecordError
from adp_schema.protocols import Match


class EventText(Streams):
    """The text of a file."""

    def read_lines(self) -> None:
        """Read the replies that its events tell."""
        source = SourceObject(self.record.data, "$", self.losses)
        events = events_of(source.text("text") or "")
        if not events:
            raise RecordError("the text holds no event", "$.text")
        self.losses.add("$.text", "the events of the stream are joined to the reply that they tell")
        self.replies(events)
        merge_extra(self.run.extra, source.rest())


class EventTextReader(LogReader):
    """The format ``api_stream_text``."""

    name = "api_stream_text"
    title = "Streamed replies of model APIs as a text"
    recognised = "a text of server-sent events, with data that are events of a model's API"
    versions = "reads streams of the Responses API, of Anthropic, and of chat completions"
    container = "text"
    log = EventText

    def sniff(self, record: Mapping[str, Raw]) -> Match:
        """A text whose first event is one of a model's reply."""
        text = word(record, "text").replace("\r\n", "\n")
        if not text.lstrip().startswith(("data:", "event:", ":", "id:")):
            return Match.NO
        first = next((line for line in text.split("\n") if line.startswith("data:")), "")
        for event in events_of(first)[:1]:
            if is_event(str(event.get("type")), str(event.get("object"))):
                return Match.STAMP
        return Match.NO


CONVERTER = EventTextReader()
