"""Sessions of Droid (Factory): the files that it keeps, and ``droid exec -o stream-json``.

Both write lines of the type ``message``: a kept one has an Anthropic-like message inside, a
printed one has its text beside its role.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from msgspec import Raw

from adp.converters.kit.blocks import call_columns
from adp.converters.kit.drafts import StepDraft, merge_extra
from adp.converters.kit.session import LogReader, SessionLog, word
from adp.converters.kit.source_object import SourceObject
from adp.converters.kit.times import take_time
from adp.converters.kit.usage import ANTHROPIC, set_usage, take_usage
from adp.converters.reading import BRACE, BRACKET
from adp_schema.model import Columns
from adp_schema.protocols import Match

VISIBILITY = {"llm_only": "llm", "user_only": "user"}
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
        "compaction_state": "compaction",
        "error": "error",
    }
    kept: ClassVar[frozenset[str]] = frozenset({"todo_state", "session_end"})
    previous = ""

    def header(self, source: SourceObject) -> None:
        """The first line; another one begins a session that was joined to it."""
        columns = self.run.columns
        if "source_id" in columns:
            self.other(source)
            return
        columns["source_id"] = columns["session_id"] = source.name("id")
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
        if role == "assistant":
            step = self.run.step("agent", "llm_turn", native_id=source.name("id"))
            self.blocks.content(content, step, message.path)
            self._finish_turn(source, message, step)
            return
        who = "system" if role == "system" else "user"
        draft = self.blocks.user_content(
            content, message.path, lambda: self.run.step(who, native_id=source.name("id"))
        )
        take_time(source, draft.columns, "timestamp")
        if isinstance(draft, StepDraft) and message.word("visibility") in VISIBILITY:
            draft.columns["visibility"] = VISIBILITY[message.word("visibility")]
        merge_extra(draft.extra, source.rest())

    def _finish_turn(self, source: SourceObject, message: SourceObject, step: StepDraft) -> None:
        take_time(source, step.columns, "timestamp")
        thought = message.word("chatCompletionReasoningContent")
        if thought and thought == step.parts.columns().get("reasoning"):
            message.drop("chatCompletionReasoningContent")
        step.columns["model"] = message.text("model", "modelId")
        step.columns["response_id"] = message.text("openaiMessageId")
        step.columns["stop_reason"] = message.text("stopReason", "stop_reason")
        if message.word("visibility") in VISIBILITY:
            step.columns["visibility"] = VISIBILITY[message.word("visibility")]
        take_usage(message, "usage", step.columns, ANTHROPIC)
        if step.columns["model"]:
            self.run.columns["agent_model"] = step.columns["model"]
        merge_extra(step.extra, source.rest())

    def compaction(self, source: SourceObject) -> None:
        """A summary stands for what came before."""
        step = self.run.step("system", "context_edit", native_id=source.name("id"))
        take_time(source, step.columns, "timestamp")
        step.columns["edit_boundary"] = "replace"
        step.columns["edit_summary"] = source.text("summaryText", "summary")
        step.extra.update(source.rest())

    # ---- what stream-json prints -----------------------------------------------------------

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
        if columns.get("tools") is None and source.first("tools") == BRACKET:
            columns["tools"], columns["tools_origin"] = source.json_list("tools"), "recorded"
        self.other(source)

    def _printed(self, source: SourceObject) -> None:
        self._session(source)
        role = source.word("role")
        if role in ("user", "assistant"):
            source.drop("role")
        agent = role == "assistant"
        who, kind = ("agent", "llm_turn") if agent else ("user", "message")
        step = self.run.step("system" if role == "system" else who, kind)
        step.columns["native_id"] = source.name("id")
        take_time(source, step.columns, "timestamp")
        if (text := source.text("text")) is not None:
            step.parts.text(self.builder.text(text))
        step.extra.update(source.rest())

    def call(self, source: SourceObject) -> None:
        """A call of the turn before it, or of one that says nothing."""
        self._session(source)
        last = self.run.steps[-1] if self.run.steps else None
        if last is None or last.columns["kind"] != "llm_turn" or last.observations:
            last = self.run.step("agent", "llm_turn")
            take_time(source, last.columns, "timestamp")
        call_id = source.name("toolCallId" if source.word("toolCallId") else "id")
        columns = call_columns(source.text("toolName"), call_id, source.take("parameters"))
        last.call(columns, source.rest())

    def result(self, source: SourceObject) -> None:
        """A result: a text, or an object with what a command printed."""
        self._session(source)
        key = "toolCallId" if source.word("toolCallId") else "id"
        draft = self.run.observe({"name": source.text("toolName")}, answers=source.name(key))
        take_time(source, draft.columns, "timestamp")
        value = SourceObject(source.values.get("value"), source.path, self.losses)
        code = value.integer_at("exitCode", bits=32)
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
        usage: Columns = {}
        record = SourceObject(source.values.get("usage"), source.path, self.losses)
        set_usage(record, usage, ANTHROPIC)
        for name in ("tokens_in", "tokens_out", "tokens_cached"):
            columns[f"total_{name}"] = usage.get(name)
        self.other(source)

    def error(self, source: SourceObject) -> None:
        """What stopped the run."""
        self._session(source)
        self.run.columns["error_message"] = source.word("message") or None
        self.run.columns["error_type"] = source.word("source") or "error"
        self.other(source)


class DroidReader(LogReader):
    """The format ``droid``."""

    name = "droid"
    title = "Sessions of Droid (Factory)"
    recognised = "a line session_start with an id, or printed lines with a session_id"
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
        return Match.NO


CONVERTER = DroidReader()
