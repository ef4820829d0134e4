"""The rows of OpenClaw's database, which hold the lines of Pi's sessions."""

from __future__ import annotations

import base64
from collections.abc import Iterator

from adp.converters.kit.source_object import SourceObject
from adp.converters.kit.times import take_end
from adp.converters.readers.pi_printed import PiPrinted
from adp.converters.reading import BRACE
from adp_schema import jsontext

WINDOW, EVENTS = "session_windows", "transcript_events"
"""The tables of OpenClaw's database: a session, and the lines of each."""


class OpenClawRows(PiPrinted):
    """A session that may come from a database."""

    def sources(self) -> Iterator[tuple[SourceObject, str]]:
        """The lines, or those that rows of a database hold."""
        for source, broken in super().sources():
            if broken or source.first(WINDOW) != BRACE:
                yield source, broken
                continue
            rows = source.objects(EVENTS)
            self._window(source)
            for row in rows:
                yield self._event(row), ""

    def _window(self, source: SourceObject) -> None:
        """The row of a session."""
        row, columns = source.child(WINDOW), self.run.columns
        columns["agent_name"] = "openclaw"
        columns["source_id"] = columns["session_id"] = row.word("session_id") or None
        columns["agent_model"] = row.word("model") or None
        take_end(row, columns, "ended_at", "updated_at")
        if previous := row.word("previous_session_id"):
            self.run.link("continuation", target_session_id=previous, extra='{"target":"parent"}')
        self.run.extra.update(source.rest())

    def _event(self, row: SourceObject) -> SourceObject:
        """A line out of its row; long ones are compressed."""
        self.run.constant(row, "session_id")
        packed = row.child("event_zstd")
        size = row.integer_at("event_utf8_bytes")
        is_empty = row.first("event_json") in (0, ord("n"))
        if (
            is_empty and packed and size is not None and 0 < size < 1 << 28
        ):  # bytes of the longest line
            text = _unpacked(packed.word("$base64"), size)
            if text is not None:
                packed.drop("$base64")
                row.values["event_json"] = jsontext.raw(jsontext.text_of(text))
        event = row.take_child("event_json")
        if not event:
            return row
        for key in ("event_json", "event_zstd", "event_utf8_bytes", "navigation_json"):
            if row.first(key) == ord("n"):
                row.drop(key)
        event.adopt("row", row)
        return event


def _unpacked(text: str, size: int) -> str | None:
    """The text of a compressed line; None when it is not of that size, or is damaged."""
    import pyarrow as pa

    try:
        packed = base64.b64decode(text, validate=True)
        if base64.b64encode(packed).decode("ascii") != text:
            return None
        data = pa.decompress(packed, size, codec="zstd", asbytes=True)
        return data.decode("utf-8") if len(data) == size else None
    except (pa.ArrowException, ValueError, OSError):
        return None
