"""Transcripts of Antigravity: ``brain/ID/.system_generated/logs/transcript.jsonl``, a step a line.

A step of the planner calls tools; a later step of another type of the model is what came back, in
the order of the calls. Long contents are cut in ``transcript.jsonl``, and whole in
``transcript_full.jsonl`` beside it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import ClassVar

from msgspec import Raw

from adp.converters.kit.blocks import call_columns
from adp.converters.kit.drafts import ObservationDraft, StepDraft
from adp.converters.kit.session import LogReader, SessionLog, word
from adp.converters.kit.source_object import SourceObject
from adp.converters.kit.times import take_time
from adp.converters.reading import BRACKET
from adp_schema.protocols import Match

FULL, CUT = "transcript_full.jsonl", "transcript.jsonl"
_FOLDER = ".system_generated"
_SOURCES = frozenset({"USER_EXPLICIT", "USER_IMPLICIT", "MODEL", "SYSTEM", "UNKNOWN"})
_USUAL = frozenset({"USER_INPUT", "PLANNER_RESPONSE"})
_FAILED = frozenset({"ERROR", "FAILED", "CANCELED", "CANCELLED"})
_TRUNCATED = re.compile(r"<truncated \d+ (?:bytes|lines|characters)>")
_CHILD = re.compile(r'"conversationId":\s*"([\w-]+)"')


class AntigravitySession(SessionLog):
    """One conversation."""

    agent: ClassVar[str | None] = "antigravity"

    def read_lines(self) -> None:
        """The folder names the conversation."""
        for path in self.record.side_files:
            self.losses.add(f"$side.{path}", "the transcript beside it has the same steps, whole")
        parts = self.record.source_file.split("/")
        if _FOLDER in parts[1:]:
            name = parts[parts.index(_FOLDER) - 1]
            self.run.columns["source_id"] = self.run.columns["session_id"] = name
        super().read_lines()

    def line(self, source: SourceObject) -> None:
        """A step, by its type and by who made it."""
        kind, origin = source.word("type"), source.word("source")
        if kind == "USER_INPUT" or origin.startswith("USER_"):
            self._message(source, "user")
        elif kind == "PLANNER_RESPONSE" or source.first("tool_calls") == BRACKET:
            self._turn(source, kind)
        elif kind == "CHECKPOINT":
            step = self.run.step("system", "context_edit", edit_boundary="replace")
            step.columns["edit_summary"] = source.text("content")
            self._end(source, step)
        elif origin == "MODEL" and kind:
            self._result(source, kind)
        elif source.word("content"):
            self._message(source, "system")
        else:
            if origin not in _SOURCES or not kind:
                self.losses.unknown(f"step of {origin or 'no source'}, {kind or 'without a type'}")
            step = self.run.step("environment", "event", visibility="none")
            self._end(source, step)

    def _message(self, source: SourceObject, who: str) -> None:
        step = self.run.step(who)
        self.blocks.content(source.take("content"), step, f"{source.path}.content")
        self._end(source, step)

    def _turn(self, source: SourceObject, kind: str) -> None:
        """A step of the model; of another type than the planner's, its text is the result."""
        step = self.run.step("agent", "llm_turn")
        if (thought := source.text("thinking")) is not None:
            step.parts.reasoning(self.builder.text(thought))
        if kind == "PLANNER_RESPONSE":
            self.blocks.content(source.take("content"), step, f"{source.path}.content")
        for call in source.objects("tool_calls"):
            name, call_id = call.text("name"), call.name("id", "call_id")
            step.call(call_columns(name, call_id, call.take("args")), call.rest())
        if source.word("content"):
            draft = self.run.observe({}, by_order=True)
            self._content(source, draft)
        self._end(source, step)

    def _result(self, source: SourceObject, kind: str) -> None:
        draft = self.run.observe({}, by_order=True)
        for name in set(_CHILD.findall(source.word("content"))) if "SUBAGENT" in kind else ():
            self.run.link(
                "subagent", self.run.steps[-1] if self.run.steps else None, target_id=name
            )
        self._content(source, draft)
        self._end(source, draft)

    def _content(self, source: SourceObject, draft: ObservationDraft) -> None:
        if _TRUNCATED.search(source.word("content")):
            draft.columns["truncated"] = True
        if source.word("status") in _FAILED:
            draft.columns["is_error"] = True
        self.blocks.result(source.take("content"), draft, f"{source.path}.content")

    def _end(self, source: SourceObject, draft: StepDraft | ObservationDraft) -> None:
        """What all steps have."""
        if source.word("type") in _USUAL:
            source.drop("type")
        take_time(source, draft.columns, "created_at")
        if isinstance(draft, StepDraft):
            draft.columns["native_id"] = source.name("step_index")
        draft.extra.update(source.rest())


class AntigravityReader(LogReader):
    """The format ``antigravity``."""

    name = "antigravity"
    title = "Transcripts of Antigravity"
    recognised = "lines of a step_index, a source such as USER_EXPLICIT, and a type"
    versions = "reads transcript.jsonl and transcript_full.jsonl; its databases are encoded"
    log = AntigravitySession

    def side_files(self, source_file: str) -> tuple[str, ...]:
        """The transcript with long contents cut, where the full one is there."""
        folder, slash, name = source_file.rpartition("/")
        return (f"{folder}{slash}{CUT}",) if name == FULL else ()

    def sniff(self, record: Mapping[str, Raw]) -> Match:
        """A step."""
        known = "step_index" in record and word(record, "source") in _SOURCES
        return Match.STAMP if known and word(record, "type").isupper() else Match.NO


CONVERTER = AntigravityReader()
