"""Sessions of Codex: rollouts, early flat files, early documents, and forks of the format.

A line has a time, a type and a payload. ``response_item`` lines are the conversation; ``event_msg``
lines repeat much of it, and record some things alone (see `repeated_items`, `executions`).
Sources: the protocol of Codex from 0.2 to 0.160, and files of those versions.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC
from itertools import chain, islice
from typing import Any, ClassVar

from msgspec import Raw

from adp.converters.kit.session import LogReader, inner, word
from adp.converters.kit.source_object import SourceObject
from adp.converters.kit.times import take_time
from adp.converters.kit.usage import TOKEN_COLUMNS
from adp.converters.readers.codex.events import Events
from adp.converters.readers.codex.executions import Executions
from adp.converters.readers.codex.history import History
from adp.converters.readers.codex.items import Items
from adp.converters.readers.codex.lines import CodexLines, match_of
from adp.converters.readers.codex.repeated_items import RepeatedItems
from adp.converters.readers.codex.turns import ModelTurns, rest_of
from adp.converters.reading import BRACE, BRACKET, begins
from adp.converters.session_writers.names import NamedRun, session_uuid
from adp.converters.session_writers.values import EPOCH
from adp_schema.losses import Losses
from adp_schema.model import Trajectory
from adp_schema.protocols import Match

_ITEMS = frozenset({"function_call", "function_call_output", "reasoning", "local_shell_call",
                    "custom_tool_call", "custom_tool_call_output"})  # fmt: skip


class CodexSession(CodexLines):
    """One session."""

    handlers: ClassVar[Mapping[str, str]] = {
        "session_meta": "meta",
        "turn_context": "context",
        "response_item": "response_item",
        "event_msg": "event",
        "compacted": "compacted",
        "token_usage_record": "usage_record",
        "history_mutation": "mutation",
        "flat prompt": "prompt",
    }
    kept: ClassVar[frozenset[str]] = frozenset(
        {"world_state", "inter_agent_communication", "inter_agent_communication_metadata",
         "retained_context", "security_risk_score", "flat state"}
    )  # fmt: skip

    def set_up(self) -> None:
        """Make what joins the lines: turns, items, executions, what is copied or repeated."""
        super().set_up()
        self.blocks.renamed = {"encrypted_content": "refusal"}  # kept whole, and known
        self.turns = ModelTurns(self.run)
        self.repeated = RepeatedItems()
        self.history = History(self.run)
        self.executions = Executions(self.run, self.blocks)
        self.items = Items(
            self.run, self.blocks, self.turns, self.executions, self.repeated, self.history
        )
        self.events = Events(self.items)
        self._place = 0
        self._items_seen = False

    def read_lines(self) -> None:
        """Look at what all lines are, and then take them in their order."""
        lines = self.sources()
        first = list(islice(lines, 2))
        if len(first) == 1 and first[0][0].first("items") == BRACKET:
            self._document(first[0][0])
            return
        sources: list[tuple[SourceObject, str]] = []
        kinds: list[str] = []
        for source, broken in chain(first, lines):
            kinds.append(self._look(len(kinds), source))
            sources.append((source, broken))
        sources.reverse()
        steps = self.run.steps
        for place, kind in enumerate(kinds):
            source, broken = sources.pop()  # and forgotten then: its memory is used again
            self._place = place
            before = len(steps)
            if (copied := self.copied.holds(source, kind)) != self.copied.last:
                self.turns.end()
            self.copied.last = copied
            if broken:
                self.entry(source, broken)
            else:
                self.line_of_kind(source, kind)
            for step in steps[before:] if copied else ():
                step.columns["is_copied_context"] = True

    def _look(self, place: int, source: SourceObject) -> str:
        """Note what later lines are needed for, such as items that events repeat; give its kind."""
        kind = self.kind_of(source)
        if kind == "response_item":
            item = source.child("payload")
            self.repeated.add(place, item)
            if not self._items_seen:
                self._items_seen = item.word("role") == "assistant" or item.word("type") in _ITEMS
        elif kind == "flat item":
            self.repeated.add(place, source)
            self._items_seen = True
        elif kind == "event_msg":
            payload = source.child("payload")
            info = payload.child("info").values if "info" in payload else {}
            if begins(info.get("last_token_usage"), BRACE) and not self._items_seen:
                self.turns.reports_first = True
                self._items_seen = True
        elif kind in ("compacted", "history_mutation"):
            self.history.wanted = True
        return kind

    def line_of_kind(self, source: SourceObject, kind: str) -> None:
        """Take one line; the type of a flat one is that of its item."""
        if kind == "flat item":
            self.flat_item(source)
        elif kind == "flat header":
            self.header(source)
        else:
            super().line_of_kind(source, kind)

    def _document(self, source: SourceObject) -> None:
        """An early session: one object with a header and items."""
        header = source.child("session")
        self.header(header)
        for place, item in enumerate(source.objects("items")):
            self.repeated.add(place, item)
            self._place = place
            self.flat_item(item)
        self.run.extra.update(source.rest())

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
        self.keep(source)

    def response_item(self, source: SourceObject) -> None:
        """An item of the conversation."""
        item = source.child("payload")
        if not self.items.read(source, item, self._place):
            self.keep_rest(source)

    def flat_item(self, source: SourceObject) -> None:
        """An item that is the whole line."""
        if not self.items.read(source, source, self._place):
            self.keep_rest(source)

    def mutation(self, source: SourceObject) -> None:
        """Several items at once, as TRAE writes them; or a history that replaces the one before."""
        payload = source.child("payload")
        if payload.word("operation") in ("", "append"):
            for item in payload.objects("items"):
                step_count = len(self.run.steps)
                if not self.items.read(item, item, -1):
                    self.keep_rest(item)
                for step in self.run.steps[step_count:]:
                    if "timestamp" not in step.columns:
                        take_time(source.copy(), step.columns, "timestamp")
            source.values["type"] = Raw(b'"history_mutation"')
            self.keep_rest(source)
        else:
            self._edit(source, payload, "items", "history_mutation")

    def compacted(self, source: SourceObject) -> None:
        """The context was replaced by a summary, or by another history."""
        self._edit(source, source.child("payload"), "replacement_history", "compacted")

    def _edit(self, source: SourceObject, payload: SourceObject, key: str, kind: str) -> None:
        self.turns.end()
        step = self.context_edit(source, "replace")
        step.columns["edit_summary"] = payload.text("message") if payload.word("message") else None
        self.history.replace(payload.objects(key), step)
        step.extra.update({"type": kind, **rest_of(source)})

    def usage_record(self, source: SourceObject) -> None:
        """What one response of the API has used."""
        payload = source.child("payload")
        self.drop_known(payload, self.items.turn_id)
        self.turns.usage_record(source, payload)

    def event(self, source: SourceObject) -> None:
        """What the program tells its user."""
        payload = source.child("payload")
        self.drop_known(payload, self.items.turn_id)
        self.events.read(source, payload, self._place)

    def finish(self) -> None:
        """Join what events said."""
        self.turns.end()
        self.executions.finish()
        self.repeated.finish()
        self.items.finish()
        self.events.finish()
        for step in self.run.steps:
            if step.columns.get("is_copied_context"):
                for name in TOKEN_COLUMNS:  # the parent has them; ``usage`` stays
                    step.columns.pop(name, None)


class CodexReader(LogReader):
    """The format ``codex``."""

    name = "codex"
    title = "Sessions of Codex, and of agents that write like it"
    recognised = "a line with a payload and a type of Codex, or a document with session and items"
    versions = (
        "Reads rollouts of all versions up to 0.160, plain, paginated and early flat ones. Writes "
        "plain rollouts; it was tried with 0.169."
    )
    log = CodexSession

    def sniff(self, record: Mapping[str, Raw]) -> Match:
        """The types of lines are Codex's own; flat items are also those of the Responses API."""
        return match_of(record)

    def write(
        self, trajectory: Trajectory, losses: Losses, flavour: str | None = None
    ) -> list[dict[str, Any]]:
        """Convert a trajectory into the lines of a rollout."""
        from adp.converters.readers.codex.write import CodexWriter

        return CodexWriter(trajectory, losses).lines()

    def session_file(self, run: NamedRun) -> str:
        """``sessions/<year>/<month>/<day>/rollout-<time>-<session>.jsonl``."""
        time = (run.started_at or EPOCH).astimezone(UTC)
        return (
            f"sessions/{time:%Y/%m/%d}/rollout-{time:%Y-%m-%dT%H-%M-%S}-{session_uuid(run)}.jsonl"
        )


CONVERTER = CodexReader()
