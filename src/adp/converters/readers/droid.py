"""Sessions of Droid (Factory): the files that it keeps, and ``droid exec -o stream-json``.

Both write lines of the type ``message``: a kept one has an Anthropic-like message inside, a
printed one has its text beside its role.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from msgspec import Raw

from adp.converters.kit.blocks import call_columns
from adp.converters.kit.chat import SOURCES
from adp.converters.kit.drafts import ObservationDraft, StepDraft, merge_extra
from adp.converters.kit.key_tables import KeyTable, exit_code, take_columns, take_tools
from adp.converters.kit.session import LogReader, SessionLog, first_item, inner, word
from adp.converters.kit.source_object import SourceObject
from adp.converters.kit.times import take_time
from adp.converters.kit.usage import ANTHROPIC, set_totals, take_usage
from adp.converters.reading import BRACE
from adp_schema.protocols import Match

VISIBILITY = {"llm_only": "llm", "user_only": "user"}
TURN: KeyTable = {"model": ("model", "modelId"), "response_id": "openaiMessageId",
        "stop_reason": ("stopReason", "stop_reason")}  # fmt: skip
_PRINTED = {"message": {"role", "text"}, "tool_call": {"toolName", "parameters"},
            "tool_result": {"toolCallId", "value"}, "completion": {"finalText"}}  # fmt: skip


class DroidSession(SessionLog):
    """One session."""

    agent: ClassVar[str | None] = "droid"
    id_key: ClassVar[str] = "id"
    handlers: ClassVar[Mapping[str, str]] = {
        "session_start": "header",
        "message": "message",
        "system": "start",
        "tool_call": "call",
        "tool_result": "result",
        "completion": "completion",
        "error": "error",
    }
    edits: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "compaction_state": ("replace", "summaryText", "summary")
    }
    kept: ClassVar[frozenset[str]] = frozenset({"todo_state", "session_end"})
    previous = ""

    def header(self, source: SourceObject) -> None:
        """The first line; another one begins a session that was joined to it."""
        if not self.is_first_header(source, "id"):
            return
        columns = self.run.columns
        if source.word("version"):
            columns["agent_version"] = source.text("version")
        elif source.integer_at("version") is not None:
            columns["source_version"] = source.name("version")
        if parent := source.word("parentSessionId") or source.word("parent"):
            self.run.link("continuation", target_session_id=parent)
        self.previous = columns["source_id"] or ""
        self.run.extra.update(source.rest())

    def message(self, source: SourceObject) -> None:
        """A message of the user, with results of tools, or of the model."""
        if source.first("message") != BRACE:
            self._printed(source)
            return
        message = source.child("message")
        role = message.word("role")
        if role in ("user", "assistant"):
            message.drop("role")
        content = message.take("content")
        if source.word("parentId") and source.word("parentId") == self.previous:
            source.drop("parentId")
        self.previous = source.word("id")
        draft = self.add_message(source, role, content, message.path)
        if role == "assistant":
            self._finish_turn(message, draft)
        if isinstance(draft, StepDraft) and message.word("visibility") in VISIBILITY:
            draft.columns["visibility"] = VISIBILITY[message.word("visibility")]
        merge_extra(draft.extra, source.rest())

    def _finish_turn(self, message: SourceObject, step: StepDraft | ObservationDraft) -> None:
        thought = message.word("chatCompletionReasoningContent")
        if thought and thought == step.parts.columns().get("reasoning"):
            message.drop("chatCompletionReasoningContent")
        take_columns(message, step.columns, TURN)
        take_usage(message, "usage", step.columns, ANTHROPIC)
        if model := step.columns.get("model"):
            self.run.columns["agent_model"] = model

    def _session(self, source: SourceObject) -> None:
        columns = self.run.columns
        if name := source.word("session_id"):
            columns.setdefault("source_id", name)
            columns.setdefault("session_id", name)
        self.run.constant(source, "session_id")

    def start(self, source: SourceObject) -> None:
        """The line before the first message."""
        self._session(source)
        columns = self.run.columns
        columns["agent_model"] = source.word("model") or columns.get("agent_model")
        take_tools(source, columns)
        self.keep(source)

    def _printed(self, source: SourceObject) -> None:
        self._session(source)
        role = source.word("role")
        if role in ("user", "assistant"):
            source.drop("role")
        step = self.begin_step(source, SOURCES.get(role, "user"))
        self.blocks.take_text(source, step.parts, "text")
        step.extra.update(source.rest())

    def call(self, source: SourceObject) -> None:
        """A call of the turn before it, or of one that says nothing."""
        self._session(source)
        turn = self.open_turn(source)
        call_id = source.name("toolCallId" if source.word("toolCallId") else "id")
        columns = call_columns(source.text("toolName"), call_id, source.take("parameters"))
        turn.call(columns, source.rest())

    def result(self, source: SourceObject) -> None:
        """A result: a text, or an object with what a command printed."""
        self._session(source)
        key = "toolCallId" if source.word("toolCallId") else "id"
        draft = self.run.observe({"name": source.text("toolName")}, answers=source.name(key))
        take_time(source, draft.columns, "timestamp")
        value = source.peek("value")
        code = exit_code(value)
        draft.columns["exit_code"] = code
        error = source.flag("isError", "is_error")
        draft.columns["is_error"] = bool(code) if error is None and code is not None else error
        if value:
            printed = [value.word(key) for key in ("stdout", "stderr", "text", "error")]
            text = "\n".join(word for word in printed if word)
            if text:
                draft.parts.text(self.builder.text(text))
            draft.columns["structured"] = source.json_object("value")
        else:
            self.blocks.result(source.take("value"), draft, source.path)
        draft.extra = source.rest()

    def completion(self, source: SourceObject) -> None:
        """The end, with the answer, which may stand nowhere else."""
        self._session(source)
        answer = source.text("finalText")
        columns = self.run.columns
        columns["final_answer"], columns["terminated"] = answer, True
        last = next((it for it in reversed(self.run.steps)
                     if it.columns["source"] == "agent"), None)  # fmt: skip
        if answer and (last is None or last.parts.columns().get("text") != answer):
            step = self.run.step("agent", "llm_turn")
            step.parts.text(self.builder.text(answer))
        set_totals(source.peek("usage"), columns, ANTHROPIC)
        self.keep(source)

    def error(self, source: SourceObject) -> None:
        """What stopped the run."""
        self._session(source)
        self.run.columns["error_message"] = source.word("message") or None
        self.run.columns["error_type"] = source.word("source") or "error"
        self.keep(source)


class DroidReader(LogReader):
    """The format ``droid``."""

    name = "droid"
    title = "Sessions of Droid (Factory)"
    recognised = "a line session_start with an id, its messages, or printed lines with a session_id"
    versions = "reads kept sessions of version 2 and before, and stream-json"
    log = DroidSession

    def sniff(self, record: Mapping[str, Raw]) -> Match:
        """A header, or a printed line with keys that others do not use."""
        kind = word(record, "type")
        if kind == "session_start" and "id" in record:
            return Match.STAMP
        printed = _PRINTED.get(kind)
        if printed is not None and printed | {"session_id"} <= set(record):
            return Match.STAMP
        message = inner(record, "message") if kind == "message" else {}
        entry = {"id", "timestamp"} <= set(record) and not {"uuid", "sessionId"} & set(record)
        plain = {"role", "content"} <= set(message) and not _OTHERS & set(message)
        return Match.SHAPE if entry and plain and _has_blocks(message) else Match.NO


_OTHERS = frozenset({"timestamp", "api", "provider", "stopReason", "toolCallId"})
"""Keys of messages of Pi, whose lines are alike."""


def _has_blocks(message: Mapping[str, Raw]) -> bool:
    """Whether a content is a list of Anthropic's blocks."""
    kind = word(first_item(message, "content"), "type")
    return kind in ("text", "thinking", "tool_use", "tool_result", "image")


CONVERTER = DroidReader()
