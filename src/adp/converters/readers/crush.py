"""Sessions of Crush, and of the Go opencode that it comes from: rows of their database.

A message has its parts as JSON text: ``[{"type": ..., "data": {...}}, ...]``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from msgspec import Raw

from adp.converters.files.sqlite import SqliteShape
from adp.converters.kit.blocks import call_columns
from adp.converters.kit.drafts import StepDraft, merge_extra
from adp.converters.kit.session import LogReader, SessionLog, inner
from adp.converters.kit.source_object import SourceObject
from adp.converters.kit.times import take_end, take_start, take_time
from adp.converters.reading import BRACE, BRACKET, QUOTE
from adp_schema import jsontext
from adp_schema.errors import RecordError
from adp_schema.protocols import Match


class CrushSession(SessionLog):
    """One session."""

    agent: ClassVar[str | None] = "crush"

    def line(self, source: SourceObject) -> None:
        """The row of a session with those of its messages."""
        if source.first("sessions") != BRACE:
            raise RecordError("expected the row of a session under the key sessions", source.path)
        if "source_id" in self.run.columns:
            self.other(source)
            return
        session = source.child("sessions")
        columns = self.run.columns
        columns["source_id"] = columns["session_id"] = session.name("id")
        take_start(session, columns, "created_at")
        take_end(session, columns, "updated_at")
        columns["total_tokens_in"] = session.integer("prompt_tokens")
        columns["total_tokens_out"] = session.integer("completion_tokens")
        columns["total_cost_usd"] = session.number("cost")
        summary = session.word("summary_message_id")
        for message in source.objects("messages"):
            self.message(message, summary)
        self.run.extra.update(source.rest())

    def message(self, message: SourceObject, summary: str) -> None:
        """A message, by its role; results of tools have a role of their own."""
        role, name = message.word("role"), message.word("id")
        self.run.constant(message, "session_id")
        parts = self._parts(message)
        if role == "tool" and all(part.word("type") == "tool_result" for part in parts):
            message.drop("role")
            before = len(self.run.steps[-1].observations if self.run.steps else self.run.early)
            for part in parts:
                self._result(part)
            results = (self.run.steps[-1].observations if self.run.steps else self.run.early)[
                before:
            ]
            if results:
                take_time(message, results[-1].columns, "created_at")
                merge_extra(results[-1].extra, {"message": message.rest()})
                return
        if role in ("user", "assistant", "system"):
            message.drop("role")
        agent = role == "assistant"
        kind = "llm_turn" if agent else "message"
        source = "agent" if agent else ("system" if role == "system" else "user")
        step = self.run.step(source, kind, native_id=message.name("id"))
        take_time(message, step.columns, "created_at")
        for part in parts:
            self._part(part, step)
        if agent:
            step.columns["model"] = message.text("model")
            self.run.columns["agent_model"] = step.columns["model"]
        is_summary = message.integer_at("is_summary_message") == 1 or (name and name == summary)
        merge_extra(step.extra, message.rest())
        if is_summary:
            text = step.parts.columns().get("text")
            self.run.step("system", "context_edit", edit_boundary="replace", edit_summary=text,
                          synthetic=True)  # fmt: skip

    def _parts(self, message: SourceObject) -> list[SourceObject]:
        """The parts, which stand as a list or as its JSON text."""
        if message.first("parts") == QUOTE:
            text = message.word("parts")
            data = text.encode("utf-8", "surrogatepass")
            if jsontext.first_byte(data) != BRACKET or not jsontext.is_valid(data):
                return []
            if jsontext.has_mark(text) or jsontext.depth(data) > jsontext.MAX_DEPTH:
                return []
            message.values["parts"] = jsontext.raw(text)
        return message.objects("parts")

    def _part(self, part: SourceObject, step: StepDraft) -> None:
        kind, data = part.word("type"), part.child("data")
        if kind in ("text", "reasoning"):
            text = data.text("text" if kind == "text" else "thinking")
            if text is not None:
                part.drop("type")
                add = step.parts.text if kind == "text" else step.parts.reasoning
                add(self.builder.text(text), part.rest())
                return
        elif kind == "tool_call":
            part.drop("type")
            name, call_id = data.text("name"), data.name("id")
            step.call(call_columns(name, call_id, data.take("input")), part.rest())
            return
        elif kind == "tool_result":
            self._result(part)
            return
        elif kind == "finish" and "finish" not in step.extra:
            part.drop("type")
            step.columns["stop_reason"] = data.text("reason")
            step.extra["finish"] = part.rest()
            return
        elif kind in ("image_url", "binary") and self._blob(kind, part, data, step):
            return
        elif kind not in ("image_url", "binary", "finish"):
            self.losses.unknown(f"content block {kind or 'without a type'}")
        step.parts.opaque(part.rest())

    def _blob(self, kind: str, part: SourceObject, data: SourceObject, step: StepDraft) -> bool:
        key = "url" if kind == "image_url" else "Data"
        content, mime = data.word(key), data.word("MIMEType") or None
        if not content:
            return False
        kept = data.values.pop(key)
        add = self.blocks.reference if kind == "image_url" else None
        done = (add(content, step.parts, part.rest(), mime) if add is not None
                else self.blocks.blob(content, mime, step.parts, part.rest()))  # fmt: skip
        if not done:
            data.values[key] = kept
        return done

    def _result(self, part: SourceObject) -> None:
        if part.word("type") == "tool_result":
            part.drop("type")
        data = part.child("data")
        columns = {"name": data.text("name"), "is_error": data.flag("is_error")}
        draft = self.run.observe(columns, answers=data.name("tool_call_id"), by_order=True)
        if (text := data.text("content")) is not None:
            draft.parts.text(self.builder.text(text))
        meta = data.word("metadata")
        if jsontext.first_byte(meta.encode("utf-8", "replace")) == BRACE and (
            jsontext.is_valid(meta) and not jsontext.has_mark(meta)
        ):
            draft.columns["structured"] = data.text("metadata")
        draft.extra = part.rest()


class CrushReader(LogReader):
    """The format ``crush``."""

    name = "crush"
    title = "Sessions of Crush and of the Go opencode"
    recognised = "the row of a session with prompt_tokens, and messages with parts"
    versions = "reads the tables sessions, messages and files"
    log = CrushSession
    database = SqliteShape(
        root="sessions",
        key="id",
        children={"messages": "session_id", "files": "session_id"},
        order={"messages": ("created_at",), "files": ("created_at",)},
        needs=("sessions.prompt_tokens", "messages.session_id", "messages.parts"),
    )

    def sniff(self, record: Mapping[str, Raw]) -> Match:
        """Rows of the tables; those of Hermes Agent have the same names and other columns."""
        session = inner(record, "sessions")
        known = {"prompt_tokens", "message_count"} <= set(session)
        return Match.STAMP if known and "messages" in record else Match.NO


CONVERTER = CrushReader()
