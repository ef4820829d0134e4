"""What Mistral Vibe prints since version 2.20 (``--output streaming`` or ``json``): entries.

An entry is a message, reasoning, or an effect: a call with its result. Entries that come of the
same answer of the model have its id in theirs (``assistant-<id>``, ``reasoning-<id>-0``).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, ClassVar

from msgspec import Raw

from adp.converters.kit.blocks import call_columns
from adp.converters.kit.drafts import StepDraft
from adp.converters.kit.session import LogReader, SessionLog, word
from adp.converters.kit.source_object import SourceObject
from adp.converters.kit.times import take_time
from adp_schema import jsontext
from adp_schema.protocols import Match

_ANSWER = re.compile(r"assistant-(.+)|reasoning-(.+)-\d+")
_FAILED = ("failed", "error", "rejected", "cancelled", "interrupted")


def answer_id(entry: SourceObject) -> str:
    """The id of the model's answer that an entry is a part of; empty when it is of none."""
    match = _ANSWER.fullmatch(entry.word("id"))
    return match[match.lastindex or 0] if match else ""


def words(entry: SourceObject) -> str:
    """The text of an entry."""
    if entry.word("type") == "reasoning":
        return entry.word("text")
    return "".join(block.word("text") for block in entry.copy().objects("content"))


def without(entry: SourceObject, *keys: str) -> Any:
    """An entry for ``extra``, without what stands elsewhere."""
    entry.drop(*keys)
    return json.loads(jsontext.text_of(entry.rest_lines()))


def take_arguments(source: SourceObject) -> Raw | None:
    """Arguments as the model wrote them; their value beside them stays where it differs."""
    text, value = source.word("raw"), source.values.get("value")
    written = jsontext.decode_value(jsontext.raw(text)) if jsontext.is_valid(text) else None
    if value is not None and written is not None and jsontext.decode_value(value) == written:
        source.drop("value", "type")
    return source.take("raw" if "raw" in source else "value")


class VibeEntries(SessionLog):
    """The entries of a session."""

    agent: ClassVar[str | None] = "mistral-vibe"
    handlers: ClassVar[Mapping[str, str]] = {
        "message": "message",
        "reasoning": "reasoning",
        "effect": "effect",
    }
    constants: ClassVar[tuple[str, ...]] = ("sessionId",)
    id_key: ClassVar[str] = "id"
    time_keys: ClassVar[tuple[str, ...]] = ("createdAt",)

    def set_up(self) -> None:
        """Nothing was answered yet."""
        self._answer = ""

    def line(self, source: SourceObject) -> None:
        """An entry; its session is that of the run."""
        columns, session = self.run.columns, source.word("sessionId")
        if session and "source_id" not in columns:
            columns["source_id"] = columns["session_id"] = session
        super().line(source)

    def message(self, source: SourceObject) -> None:
        """A message of the user, or the text of an answer."""
        role = source.word("role")
        step = self._turn(source) if role == "assistant" else self.begin_step(source, "user")
        self.blocks.content(source.take("content"), step, f"{source.path}.content")
        if role in ("user", "assistant"):
            source.drop("role")
        else:
            self.losses.unknown(f"role {role or 'missing'}")
        self._end(source, step)

    def reasoning(self, source: SourceObject) -> None:
        """What the model thought; it stands before the text of the same answer."""
        step = self._turn(source)
        if (text := source.text("text")) is not None:
            step.parts.reasoning(self.builder.text(text))
        self._end(source, step)

    def _turn(self, source: SourceObject) -> StepDraft:
        """The turn of an answer."""
        answer, before = answer_id(source), self._answer
        self._answer = answer
        return self.open_turn(source) if answer == before else self.begin_step(source, "agent")

    def effect(self, source: SourceObject) -> None:
        """A call, and what came of it; several calls of a turn follow each other."""
        last = self.run.steps[-1] if self.run.steps else None
        fits = last is not None and last.columns["kind"] == "llm_turn"
        step = last if last is not None and fits else self.begin_step(source, "agent")
        detail, state = source.child("detail"), source.child("state")
        call_id = source.name("id")
        name = detail.text("toolName") or source.text("title")
        if source.word("title") == name:
            source.drop("title")
        step.call(call_columns(name, call_id, detail.take("input")))
        draft = self.run.observe({"name": name}, answers=call_id)
        take_time(source, draft.columns, "updatedAt", "createdAt")
        draft.columns["duration_ms"] = state.number("durationMs")
        if (text := state.text("outputText")) is not None:
            draft.parts.text(self.builder.text(text))
        draft.columns["structured"] = state.json("output")
        draft.columns["is_error"] = state.word("status") in _FAILED or None
        draft.extra.update(source.rest())

    def _end(self, source: SourceObject, step: StepDraft) -> None:
        if step.columns.get("native_id") == source.word("id"):
            source.drop("id")
        self.end_step(source, step)


class VibeEntriesReader(LogReader):
    """The format ``vibe_entries``."""

    name = "vibe_entries"
    title = "The output of Mistral Vibe"
    recognised = "entries of a type with a sessionId, a turnId and a generationStatus"
    versions = "reads what vibe -p --output streaming and json print since 2.20"
    log = VibeEntries

    def sniff(self, record: Mapping[str, Raw]) -> Match:
        """An entry."""
        known = {"sessionId", "turnId", "generationStatus"} <= set(record) and "type" in record
        return Match.STAMP if known and word(record, "type") in VibeEntries.handlers else Match.NO


CONVERTER = VibeEntriesReader()
