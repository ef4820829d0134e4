"""What a line of a Codex log is: a line with a payload, or a flat one of an early log."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import ClassVar, Literal

import msgspec
from msgspec import Raw

from adp.converters.kit.lines import log_lines
from adp.converters.kit.repeats import Repeats
from adp.converters.kit.session import SessionLog, inner, word
from adp.converters.kit.source_object import SourceObject
from adp.converters.readers.codex.event_kinds import is_event
from adp.converters.readers.codex.items import Items
from adp.converters.readers.codex.session_meta import CopiedContext, take_meta
from adp.converters.readers.codex.turns import rest_of
from adp.converters.reading import BRACE, BRACKET, QUOTE
from adp_schema import jsontext
from adp_schema.losses import Losses
from adp_schema.protocols import Match

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

    def sources(self) -> Iterator[tuple[SourceObject, str]]:
        """The lines, each with what it is about under ``payload``."""
        return log_lines(self.record, self.builder, self.losses, _line_object)

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
        if set(source.values) == {"prompt"} and source.first("prompt") == QUOTE:
            return "flat prompt"
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

    def prompt(self, source: SourceObject) -> None:
        """What the user asked for, as early versions of ``codex exec --json`` printed it."""
        self.blocks.take_text(source, self.run.step("user").parts, "prompt")

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
        if turn_id and "turn_id" in payload.values and payload.word("turn_id") == turn_id:
            payload.drop("turn_id")


class UsualLine(msgspec.Struct, forbid_unknown_fields=True):
    """A line in the form that nearly all have: it is decoded at once with its payload."""

    timestamp: Raw
    type: Literal["response_item", "event_msg"]
    payload: dict[str, Raw]


_decode_usual = msgspec.json.Decoder(UsualLine).decode
_LONGEST = 4096
"""Of longer lines the texts are most of the work."""


def _line_object(raw: Raw | bytes, path: str, losses: Losses) -> SourceObject:
    """A line, with what it is about under ``payload``."""
    usual = _usual_line(raw) if len(raw) < _LONGEST else None
    if usual is None:
        source = SourceObject(raw, path, losses)
        _put_payload(source)
        return source
    source, payload = SourceObject(None, path, losses), SourceObject(None, "", losses)
    source.values = {"timestamp": usual.timestamp, "type": _TYPES[usual.type]}
    payload.path, payload.values = f"{path}.payload", usual.payload
    source.adopt("payload", payload)
    return source


def _usual_line(raw: Raw | bytes) -> UsualLine | None:
    """A line in the usual form; None for one with other keys, spaces, or a key that is lost."""
    try:
        line = _decode_usual(raw)
    except msgspec.ValidationError:
        return None
    named = bool(line.payload) and "".join(line.payload).isascii()
    return line if named and jsontext.encode(line) == bytes(raw) else None


_COMPLETED = ("item_started", "item_completed")


def _put_payload(source: SourceObject) -> None:
    """Give a line of another surface the form of a rollout.

    Some write a payload as ``item``, the protocol of the program writes events as ``msg``, and a
    completed item may be the line itself.
    """
    values = source.values
    if "payload" in values:
        return
    kind = source.word("type")
    if kind in TYPES and source.first("item") == BRACE:
        values["payload"] = values.pop("item")
    elif kind in _COMPLETED and source.first("item") == BRACE:
        about = {key: values.pop(key) for key in [*values] if key not in ("timestamp", "ordinal")}
        values |= {"type": _EVENT, "payload": jsontext.raw(jsontext.text_of(about))}
    elif not kind and source.first("msg") == BRACE and source.peek("msg").word("type"):
        values |= {"type": _EVENT, "payload": values.pop("msg")}


_EVENT = Raw(b'"event_msg"')
_TYPES = {"response_item": Raw(b'"response_item"'), "event_msg": _EVENT}


def match_of(record: Mapping[str, Raw]) -> Match:
    """How surely a line is Codex's; flat items are also those of the Responses API."""
    kind = word(record, "type")
    if kind in TYPES and (inner(record, "payload") or inner(record, "item")):
        return Match.STAMP
    if is_event(record):
        return Match.STAMP
    if "timestamp" in record and kind == "tool_call" and "function" in record:
        return Match.STAMP
    first_item = record.get("items")
    if first_item is not None and jsontext.first_byte(first_item) == BRACKET:
        return Match.STAMP if "id" in inner(record, "session") else Match.NO
    header = {"id", "timestamp", "instructions"} <= set(record)
    if (header and not kind) or word(record, "record_type") == "state":
        return Match.SHAPE
    return Match.NO
