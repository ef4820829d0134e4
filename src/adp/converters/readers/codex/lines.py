"""What a line of a Codex log is: a line with a payload, or a flat one of an early log."""

from __future__ import annotations

import re
from typing import ClassVar

from adp.converters.kit.repeats import Repeats
from adp.converters.kit.session import SessionLog
from adp.converters.kit.source_object import SourceObject
from adp.converters.readers.codex.items import Items
from adp.converters.readers.codex.session_meta import CopiedContext, take_meta
from adp.converters.readers.codex.turns import rest_of

TYPES = frozenset(
    {"session_meta", "turn_context", "response_item", "event_msg", "compacted", "world_state",
     "token_usage_record", "inter_agent_communication", "inter_agent_communication_metadata",
     "history_mutation", "retained_context", "security_risk_score"}
)  # fmt: skip
"""Types of lines with a payload."""
_THREAD = re.compile(r"rollout-.*?([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})")


class CodexLines(SessionLog):
    """The lines of a session.

    Attributes:
        repeats: what the last line of each type said.
        copied: which lines are copies of lines of another session.
    """

    agent: ClassVar[str | None] = "codex"

    def set_up(self) -> None:
        """Make what lines are compared with."""
        self.repeats = Repeats()
        self.copied = CopiedContext()

    def kind_of(self, source: SourceObject) -> str:
        """The type of a line; of flat files what it is by its keys."""
        kind = source.word("type")
        if "payload" in source or kind in TYPES:
            return kind
        if "record_type" in source:
            return "flat state"
        if kind in Items.METHODS or kind in Items.KEPT or (not kind and "role" in source):
            return "flat item"
        if not kind and "id" in source and "timestamp" in source:
            return "flat header"
        return kind

    def other(self, source: SourceObject) -> None:
        """Keep a line that is no message, and only what of its payload is new."""
        step = self.begin_step(source, "environment", "event")
        step.columns["visibility"] = "none"
        kind = source.word("type")
        self.repeats.drop(kind, source.child("payload"), step.extra)
        step.extra.update(rest_of(source))

    def keep_rest(self, source: SourceObject) -> None:
        """Keep a line as an event, without its type and what an item takes of it."""
        step = self.begin_step(source, "environment", "event")
        step.columns["visibility"] = "none"
        step.extra.update(rest_of(source))

    def header(self, source: SourceObject) -> None:
        """The header of an early session, or of another one that was joined to it."""
        if self.copied.known:
            self.keep_rest(source)
            return
        self.copied.known = True
        take_meta(self.run, source, source, self.builder)

    def meta(self, source: SourceObject) -> None:
        """The header; a second one is that of the parent, or of a resumed session."""
        payload = source.child("payload")
        first = not self.copied.known
        self.copied.meta(source, payload)
        if first:
            self.repeats.drop("session_meta", payload, {})  # a later one is compared with it
            if thread := _THREAD.search(self.record.source_file.rpartition("/")[2]):
                self.run.columns["source_id"] = thread[1]
            take_meta(self.run, source, payload, self.builder)
            return
        self.keep(source)

    def drop_known(self, payload: SourceObject, turn_id: str) -> None:
        """Take away the ids of the thread and the turn where they are those at hand."""
        for key, column in (("thread_id", "source_id"), ("session_id", "session_id")):
            if key in payload.values and payload.word(key) == (self.run.columns.get(column) or 0):
                payload.drop(key)
        if turn_id and payload.word("turn_id") == turn_id:
            payload.drop("turn_id")
