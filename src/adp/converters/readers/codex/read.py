"""Sessions of Codex: rollouts, early flat files, early documents, and forks of the format.

A line has a time, a type and a payload. ``response_item`` lines are the conversation; ``event_msg``
lines say much of it again, and some things that nothing else says (see `twins`, `executions`).
Sources: the protocol of Codex from 0.2 to 0.160, and files of those versions.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import ClassVar

from msgspec import Raw

from adp.converters.kit.lines import log_lines
from adp.converters.kit.repeats import Repeats
from adp.converters.kit.session import LogReader, SessionLog, inner, word
from adp.converters.kit.source_object import SourceObject
from adp.converters.kit.times import take_time
from adp.converters.readers.codex.events import Events
from adp.converters.readers.codex.executions import Executions
from adp.converters.readers.codex.history import History
from adp.converters.readers.codex.items import Items
from adp.converters.readers.codex.session_meta import CopiedContext, take_meta
from adp.converters.readers.codex.turns import ModelTurns, rest_of
from adp.converters.readers.codex.twins import Twins
from adp.converters.reading import BRACE, BRACKET
from adp_schema import jsontext
from adp_schema.builder import RowBuilder
from adp_schema.losses import Losses
from adp_schema.protocols import Match, RawRecord

_TYPES = frozenset(
    {"session_meta", "turn_context", "response_item", "event_msg", "compacted", "world_state",
     "token_usage_record", "inter_agent_communication", "inter_agent_communication_metadata",
     "history_mutation", "retained_context", "security_risk_score"}
)  # fmt: skip
_ITEMS = frozenset({"function_call", "function_call_output", "reasoning", "local_shell_call",
                    "custom_tool_call", "custom_tool_call_output"})  # fmt: skip
_THREAD = re.compile(r"rollout-.*?([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})")


class CodexSession(SessionLog):
    """One session."""

    agent: ClassVar[str | None] = "codex"
    handlers: ClassVar[Mapping[str, str]] = {
        "session_meta": "meta",
        "turn_context": "context",
        "response_item": "response_item",
        "event_msg": "event",
        "compacted": "compacted",
        "token_usage_record": "usage_record",
        "history_mutation": "mutation",
    }
    kept: ClassVar[frozenset[str]] = frozenset(
        {"world_state", "inter_agent_communication", "inter_agent_communication_metadata",
         "retained_context", "security_risk_score", "flat state"}
    )  # fmt: skip

    def __init__(self, record: RawRecord, builder: RowBuilder, losses: Losses) -> None:
        super().__init__(record, builder, losses)
        self.blocks.renamed = {"encrypted_content": "refusal"}  # kept whole, and known
        self.turns = ModelTurns(self.run)
        self.twins = Twins()
        self.history = History(self.run)
        self.executions = Executions(self.run, self.blocks)
        self.items = Items(
            self.run, self.blocks, self.turns, self.executions, self.twins, self.history
        )
        self.events = Events(self.items)
        self.copied = CopiedContext()
        self._repeats = Repeats()
        self._looked_at: tuple[SourceObject | None, str] = None, ""
        self._place = 0
        self._items_seen = False

    def read_lines(self) -> None:
        """Look at what all lines are, and then take them in their order."""
        sources = list(log_lines(self.record, self.builder, self.losses))
        if len(sources) == 1 and sources[0][0].first("items") == BRACKET:
            self._document(sources[0][0])
            return
        for place, (source, _) in enumerate(sources):
            self._look(place, source)
        for place, (source, broken) in enumerate(sources):
            self._place = place
            before = len(self.run.steps)
            copied = self.copied.holds(source)
            if copied != self.copied.last:
                self.turns.end()
            self.copied.last = copied
            self.entry(source, broken)
            for step in self.run.steps[before:] if copied else ():
                step.columns["is_copied_context"] = True

    def _look(self, place: int, source: SourceObject) -> None:
        """Note what later lines are needed for: items that events repeat, and their order."""
        kind = self.kind_of(source)
        if kind == "response_item":
            item = source.child("payload")
            self.twins.add(place, item)
            if self._items_seen:
                return
            self._items_seen = item.word("role") == "assistant" or item.word("type") in _ITEMS
        elif kind == "flat item":
            self.twins.add(place, source)
            self._items_seen = True
        elif kind == "event_msg":
            info = source.child("payload").child("info")
            if info.first("last_token_usage") == BRACE and not self._items_seen:
                self.turns.reports_first = True
                self._items_seen = True
        elif kind in ("compacted", "history_mutation"):
            self.history.wanted = True

    def kind_of(self, source: SourceObject) -> str:
        """The type of a line; of flat files what it is by its keys."""
        if source is not self._looked_at[0]:
            self._looked_at = source, self._find_kind(source)
        return self._looked_at[1]

    def _find_kind(self, source: SourceObject) -> str:
        kind = source.word("type")
        if "payload" in source or kind in _TYPES:
            return kind
        if "record_type" in source:
            return "flat state"
        if kind in Items.METHODS or kind in Items.KEPT or (not kind and "role" in source):
            return "flat item"
        if not kind and "id" in source and "timestamp" in source:
            return "flat header"
        return kind

    def line(self, source: SourceObject) -> None:
        """Take one line; the type of a flat one is that of its item."""
        kind = self.kind_of(source)
        if kind == "flat item":
            self.flat_item(source)
        elif kind == "flat header":
            self.header(source)
        else:
            super().line(source)

    def other(self, source: SourceObject) -> None:
        """Keep a line that is no message, and only what of its payload is new."""
        step = self.run.step("environment", "event", visibility="none")
        take_time(source, step.columns, "timestamp")
        kind = source.word("type")
        self._repeats.drop(kind, source.child("payload"), step.extra)
        step.extra.update(rest_of(source))

    def _document(self, source: SourceObject) -> None:
        """An early session: one object with a header and items."""
        header = source.child("session")
        self.header(header)
        for place, item in enumerate(source.objects("items")):
            self.twins.add(place, item)
            self._place = place
            self.flat_item(item)
        self.run.extra.update(source.rest())

    def header(self, source: SourceObject) -> None:
        """The header of an early session, or of another one that was joined to it."""
        if self.copied.known:
            self._keep(source)
            return
        self.copied.known = True
        take_meta(self.run, source, source, self.builder)

    def meta(self, source: SourceObject) -> None:
        """The header; a second one is that of the parent, or of a resumed session."""
        payload = source.child("payload")
        first = not self.copied.known
        self.copied.meta(source, payload)
        if first:
            self._repeats.drop("session_meta", payload, {})  # a later one is compared with it
            if thread := _THREAD.search(self.record.source_file.rpartition("/")[2]):
                self.run.columns["source_id"] = thread[1]
            take_meta(self.run, source, payload, self.builder)
            return
        source.values["type"] = Raw(b'"session_meta"')
        self.other(source)

    def context(self, source: SourceObject) -> None:
        """What holds from here on: the model, its effort, permissions."""
        payload = source.child("payload")
        self.turns.end()
        settings = inner(inner(payload.values, "collaboration_mode"), "settings")
        self.turns.model = payload.word("model") or self.turns.model
        effort = payload.word("effort") or word(settings, "reasoning_effort")
        self.turns.effort = effort or None
        self.items.turn_id = payload.word("turn_id") or self.items.turn_id
        if self.turns.model:
            self.run.columns["agent_model"] = self.turns.model
        source.values["type"] = Raw(b'"turn_context"')
        self.other(source)

    def response_item(self, source: SourceObject) -> None:
        """An item of the conversation."""
        item = source.child("payload")
        if not self.items.read(source, item, self._place):
            self._keep(source)

    def flat_item(self, source: SourceObject) -> None:
        """An item that is the whole line."""
        if not self.items.read(source, source, self._place):
            self._keep(source)

    def _keep(self, source: SourceObject) -> None:
        step = self.run.step("environment", "event", visibility="none")
        take_time(source, step.columns, "timestamp")
        step.extra.update(rest_of(source))

    def mutation(self, source: SourceObject) -> None:
        """Several items at once, as TRAE writes them; or a history that replaces the one before."""
        payload = source.child("payload")
        if payload.word("operation") in ("", "append"):
            for item in payload.objects("items"):
                step_count = len(self.run.steps)
                if not self.items.read(item, item, -1):
                    self._keep(item)
                for step in self.run.steps[step_count:]:
                    if "timestamp" not in step.columns:
                        held = SourceObject(None, source.path, self.losses)
                        held.values = dict(source.values)
                        take_time(held, step.columns, "timestamp")
            source.values["type"] = Raw(b'"history_mutation"')
            self._keep(source)
        else:
            self._edit(source, payload, "items", "history_mutation")

    def compacted(self, source: SourceObject) -> None:
        """The context was replaced by a summary, or by another history."""
        self._edit(source, source.child("payload"), "replacement_history", "compacted")

    def _edit(self, source: SourceObject, payload: SourceObject, key: str, kind: str) -> None:
        self.turns.end()
        step = self.run.step("system", "context_edit", edit_boundary="replace")
        take_time(source, step.columns, "timestamp")
        step.columns["edit_summary"] = payload.text("message") if payload.word("message") else None
        self.history.replace(payload.objects(key), step)
        step.extra.update({"type": kind, **rest_of(source)})

    def usage_record(self, source: SourceObject) -> None:
        """What one response of the API has used."""
        payload = source.child("payload")
        self._drop_known(payload)
        self.turns.usage_record(source, payload)

    def event(self, source: SourceObject) -> None:
        """What the program tells its user."""
        payload = source.child("payload")
        self._drop_known(payload)
        self.events.read(source, payload, self._place)

    def _drop_known(self, payload: SourceObject) -> None:
        """Take away the ids of the thread and the turn where they are those at hand."""
        for key, known in (("thread_id", self.run.columns.get("source_id")),
                           ("session_id", self.run.columns.get("session_id")),
                           ("turn_id", self.items.turn_id)):  # fmt: skip
            if known and payload.word(key) == known:
                payload.drop(key)

    def finish(self) -> None:
        """Join what events said."""
        self.turns.end()
        self.executions.finish()
        self.twins.finish()
        self.items.finish()
        self.events.finish()


class CodexReader(LogReader):
    """The format ``codex``."""

    name = "codex"
    title = "Sessions of Codex, and of agents that write like it"
    recognised = "a line with a payload and a type of Codex, or a document with session and items"
    versions = "reads rollouts of all versions up to 0.160, plain, paginated and early flat ones"
    log = CodexSession

    def sniff(self, record: Mapping[str, Raw]) -> Match:
        """The types of lines are Codex's own; flat items are also those of the Responses API."""
        kind = word(record, "type")
        if kind in _TYPES and inner(record, "payload"):
            return Match.STAMP
        first_item = record.get("items")
        if first_item is not None and jsontext.first_byte(first_item) == BRACKET:
            return Match.STAMP if "id" in inner(record, "session") else Match.NO
        header = {"id", "timestamp", "instructions"} <= set(record)
        flat = "timestamp" in record and kind == "tool_call" and "function" in record
        if (header and not kind) or flat or word(record, "record_type") == "state":
            return Match.SHAPE
        return Match.NO


CONVERTER = CodexReader()
