"""Sessions of Hermes Agent: its exports, its JSON documents, and rows of its database.

Messages are those of OpenAI's chat, with the reasoning beside them. A message that was taken
back, or that a compaction replaced, stays with ``active`` 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from msgspec import Raw

from adp.converters.files.sqlite import SqliteShape
from adp.converters.kit.blocks import call_columns
from adp.converters.kit.chat import SOURCES
from adp.converters.kit.drafts import StepDraft, merge_extra
from adp.converters.kit.key_tables import KeyTable, take_columns, take_tools
from adp.converters.kit.session import LogReader, SessionLog, inner
from adp.converters.kit.source_object import SourceObject
from adp.converters.reading import BRACE, BRACKET, QUOTE
from adp_schema import jsontext
from adp_schema.errors import RecordError
from adp_schema.protocols import Match

_AS_JSON = "\x00json:"
"""Before content that is no plain text, in the database."""


SESSION: KeyTable = {
    "agent_model": "model",
    "started_at": ("started_at", "session_start"),
    "ended_at": ("ended_at", "last_updated"),
    "stop_reason": "end_reason",
    "total_tokens_out": "output_tokens",
    "total_cost_usd": ("actual_cost_usd", "estimated_cost_usd"),
}
TURN = {"stop_reason": "finish_reason", "tokens_out": "token_count"}


class HermesSession(SessionLog):
    """One session."""

    agent: ClassVar[str | None] = "hermes-agent"
    id_key: ClassVar[str] = "id"

    def line(self, source: SourceObject) -> None:
        """An export, a document, or rows."""
        if "source_id" in self.run.columns:
            self.other(source)
            return
        rows = source.first("sessions") == BRACE
        session = source.take_child("sessions") if rows else source
        messages = source.objects("messages")
        if not rows and not messages and source.first("messages") != BRACKET:
            raise RecordError("expected a list of messages", f"{source.path}.messages")
        self._header(session, source)
        for message in messages:
            self.message(message)
        merge_extra(self.run.extra, session.rest())
        if rows:
            merge_extra(self.run.extra, source.rest())

    def _header(self, session: SourceObject, source: SourceObject) -> None:
        columns = self.run.columns
        columns["source_id"] = columns["session_id"] = session.name("id", "session_id")
        take_columns(session, columns, SESSION)
        if parent := session.word("parent_session_id"):
            self.run.link("continuation", target_session_id=parent)
        prompt = [session.integer_at(f"{kind}_tokens")
                  for kind in ("input", "cache_read", "cache_write")]  # fmt: skip
        if prompt[0] is not None:
            columns["total_tokens_in"] = sum(number or 0 for number in prompt)
        columns["total_tokens_cached"] = prompt[1]
        take_tools(session, columns)
        session.parsed("model_config")
        text = session.text("system_prompt")
        for row in source.objects("system_prompts") if source is not session else []:
            known = row.word("hash")
            if text is None and known and known == session.word("system_prompt_hash"):
                text = row.text("content", "prompt", "text")
            merge_extra(self.run.extra, {"system_prompts": row.rest()})
        if text:
            self.run.step("system", text=self.builder.text(text))

    def message(self, message: SourceObject) -> None:
        """A message by its role."""
        empty = [key for key in message.values if message.first(key) == ord("n")]
        self.run.constant(message, "session_id", "active", "observed", "compacted", *empty)
        role = message.word("role")
        if role == "tool":
            self._result(message)
            return
        if role in ("user", "assistant", "system"):
            message.drop("role")
        step = self.begin_step(message, SOURCES.get(role, "user"))
        if step.columns["source"] == "agent":
            self._turn(message, step)
        self._content(message, step)
        for call in message.parsed_objects("tool_calls"):
            self._call(call, step)
        if message.integer_at("active") == 0 and message.integer_at("compacted") != 1:
            step.columns["visibility"] = "none"
        merge_extra(step.extra, message.rest())

    def _turn(self, message: SourceObject, step: StepDraft) -> None:
        thought = message.text("reasoning_content", "reasoning")
        if thought:
            step.parts.reasoning(self.builder.text(thought))
        if message.word("reasoning") and message.word("reasoning") == thought:
            message.drop("reasoning")
        take_columns(message, step.columns, TURN)
        step.columns["model"] = message.text("model") or self.run.columns.get("agent_model")

    def _content(self, message: SourceObject, step: StepDraft) -> None:
        raw = message.take("content")
        if raw is not None and jsontext.first_byte(raw) == QUOTE:
            text = jsontext.decode_value(raw)
            if text.startswith(_AS_JSON) and jsontext.is_valid(text[len(_AS_JSON) :]):
                raw = jsontext.raw(text[len(_AS_JSON) :])
            elif not text:
                return
        self.blocks.content(raw, step, f"{message.path}.content")

    def _call(self, call: SourceObject, step: StepDraft) -> None:
        function = call.child("function")
        where = function or call
        if call.word("type") == "function":
            call.drop("type")
        call_id = call.name("id", "call_id")
        if call_id is not None and call.word("call_id") == call_id:
            call.drop("call_id")
        columns = call_columns(where.text("name"), call_id, where.take("arguments"))
        step.call(columns, call.rest())

    def _result(self, message: SourceObject) -> None:
        message.drop("role")
        draft = self.begin_result(message, message.name("tool_call_id"))
        take_columns(message, draft.columns, {"name": ("tool_name", "name")})
        raw = message.take("content")
        self.blocks.result(raw, draft, f"{message.path}.content")
        draft.extra = message.rest()


class HermesReader(LogReader):
    """The format ``hermes_agent``."""

    name = "hermes_agent"
    title = "Sessions of Hermes Agent"
    container = "jsonl"
    recognised = "messages beside a system_prompt and a source, or beside a platform and a session"
    versions = "reads exports, JSON documents, and the tables up to schema 30"
    log = HermesSession
    database = SqliteShape(
        root="sessions",
        key="id",
        children={"messages": "session_id"},
        order={"messages": ("id",)},
        shared=("system_prompts",),
        needs=("sessions.source", "messages.session_id", "messages.role", "messages.tool_calls"),
    )

    def sniff(self, record: Mapping[str, Raw]) -> Match:
        """An export, a document, or rows."""
        keys = set(record)
        if "messages" not in keys:
            return Match.NO
        if {"id", "source", "model", "system_prompt"} <= keys:
            return Match.STAMP
        if {"session_id", "model", "platform", "session_start"} <= keys:
            return Match.STAMP
        session = set(inner(record, "sessions"))
        rows = "source" in session and {"system_prompt", "system_prompt_hash"} & session
        return Match.STAMP if rows else Match.NO


CONVERTER = HermesReader()
