"""Sessions of Crush, and of the Go opencode that it comes from: rows of their database.

A message has its parts as JSON text: ``[{"type": ..., "data": {...}}, ...]``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from msgspec import Raw

from adp.converters.files.sqlite import SqliteShape
from adp.converters.kit.blocks import call_columns
from adp.converters.kit.chat import SOURCES
from adp.converters.kit.drafts import StepDraft, merge_extra
from adp.converters.kit.key_tables import take_columns
from adp.converters.kit.session import LogReader, SessionLog, inner
from adp.converters.kit.source_object import SourceObject
from adp.converters.kit.times import take_time
from adp.converters.reading import BRACE
from adp_schema import jsontext
from adp_schema.errors import RecordError
from adp_schema.protocols import Match

SESSION = {
    "started_at": "created_at",
    "ended_at": "updated_at",
    "total_tokens_in": "prompt_tokens",
    "total_tokens_out": "completion_tokens",
    "total_cost_usd": "cost",
}


class CrushSession(SessionLog):
    """One session."""

    agent: ClassVar[str | None] = "crush"
    id_key: ClassVar[str] = "id"
    time_keys: ClassVar[tuple[str, ...]] = ("created_at",)

    def line(self, source: SourceObject) -> None:
        """The row of a session with those of its messages."""
        if source.first("sessions") != BRACE:
            raise RecordError("expected the row of a session under the key sessions", source.path)
        session = source.child("sessions")
        if not self.is_first_header(source, "id", inside=session):
            return
        take_columns(session, self.run.columns, SESSION)
        summary = session.word("summary_message_id")
        for message in source.objects("messages"):
            self.message(message, summary)
        self.run.extra.update(source.rest())

    def message(self, message: SourceObject, summary: str) -> None:
        """A message, by its role; results of tools have a role of their own."""
        role, name = message.word("role"), message.word("id")
        self.run.constant(message, "session_id")
        parts = message.parsed_objects("parts")
        if role == "tool" and all(part.word("type") == "tool_result" for part in parts):
            message.drop("role")
            before = len(self.run.observations)
            for part in parts:
                self._result(part)
            results = self.run.observations[before:]
            if results:
                take_time(message, results[-1].columns, "created_at")
                merge_extra(results[-1].extra, {"message": message.rest()})
                return
        if role in ("user", "assistant", "system"):
            message.drop("role")
        step = self.begin_step(message, SOURCES.get(role, "user"))
        for part in parts:
            self._part(part, step)
        if step.columns["source"] == "agent":
            self.set_model(step, message.text("model"))
        is_summary = message.integer_at("is_summary_message") == 1 or (name and name == summary)
        merge_extra(step.extra, message.rest())
        if is_summary:
            self.run.summarised(step)

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
        self.blocks.take_text(data, draft.parts, "content")
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
