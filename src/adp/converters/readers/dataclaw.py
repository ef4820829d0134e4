"""Exports of DataClaw: a session of another agent a row, as its authors share them on the Hub.

A message has a text, reasoning or calls; the result of a call is kept inside it.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Raw

from adp.converters.kit.blocks import call_columns
from adp.converters.kit.drafts import StepDraft, merge_extra
from adp.converters.kit.session import LogReader, SessionLog
from adp.converters.kit.source_object import SourceObject
from adp.converters.kit.times import take_end, take_start, take_time
from adp.converters.reading import BRACE, BRACKET
from adp_schema.errors import RecordError
from adp_schema.protocols import Match

_AGENTS = {"claude": "claude-code", "gemini": "gemini-cli", "kimi": "kimi-cli",
           "hermes": "hermes-agent"}  # fmt: skip
_ROLES = {"user": "user", "assistant": "agent", "system": "system"}
_ERRORS = {"success": False, "completed": False, "error": True}


class DataclawSession(SessionLog):
    """One session."""

    def line(self, source: SourceObject) -> None:
        """The row."""
        if source.first("messages") != BRACKET:
            raise RecordError("expected a list of messages", f"{source.path}.messages")
        columns = self.run.columns
        if "source_id" in columns:
            self.other(source)
            return
        columns["source_id"] = columns["session_id"] = source.name("session_id")
        agent = source.word("source")
        columns["agent_name"] = _AGENTS.get(agent, agent) or None
        columns["agent_model"] = source.text("model")
        take_start(source, columns, "start_time")
        take_end(source, columns, "end_time")
        stats = source.child("stats")
        columns["total_tokens_in"] = stats.integer("input_tokens")
        columns["total_tokens_out"] = stats.integer("output_tokens")
        for message in source.objects("messages"):
            self.message(message)
        merge_extra(self.run.extra, source.rest())

    def message(self, message: SourceObject) -> None:
        """A message, by its role."""
        role = message.word("role")
        if role in _ROLES:
            message.drop("role")
        else:
            self.losses.unknown(f"role {role or 'missing'}")
        agent = role == "assistant"
        step = self.run.step(_ROLES.get(role, "environment"), "llm_turn" if agent else "message")
        take_time(message, step.columns, "timestamp")
        if agent:
            step.columns["model"] = message.text("model") or self.run.columns.get("agent_model")
        if (thought := message.text("thinking")) is not None:
            step.parts.reasoning(self.builder.text(thought))
        self.blocks.content(message.take("content"), step, f"{message.path}.content")
        parts = message.take("content_parts")
        self.blocks.content(parts, step, f"{message.path}.content_parts")
        for use in message.objects("tool_uses"):
            self._use(use, step)
        step.extra.update(message.rest())

    def _use(self, use: SourceObject, step: StepDraft) -> None:
        """A call with what came back; a call without both a result and a status has none."""
        name, call_id = use.text("tool", "name"), use.name("id", "tool_use_id", "call_id")
        call = step.call(call_columns(name, call_id, use.take("input")))
        status = use.word("status")
        call.columns["status"] = use.text("status")
        if use.first("output") or status in _ERRORS:
            where = {} if call_id else {"call_step": step, "call": len(step.calls) - 1}
            draft = self.run.observe({"name": name, **where}, answers=call_id)
            draft.columns["is_error"] = _ERRORS.get(status)
            if use.first("output") == BRACE:
                output = use.take_child("output")
                text = output.text("text", "output")
                if text is not None:
                    draft.parts.text(self.builder.text(text))
                draft.columns["exit_code"] = output.integer("exit_code", bits=32)
                draft.columns["structured"] = output.json("raw")
                draft.extra = output.rest()
            else:
                self.blocks.result(use.take("output"), draft, f"{use.path}.output")
        call.extra = use.rest()


class DataclawReader(LogReader):
    """The format ``dataclaw``."""

    name = "dataclaw"
    title = "Sessions that DataClaw exports"
    container = "jsonl"
    recognised = "a row with a session_id, a project, a source, stats and messages"
    versions = "reads rows with and without the results of calls"
    log = DataclawSession

    def sniff(self, record: Mapping[str, Raw]) -> Match:
        """A row, by its keys."""
        keys = {"session_id", "project", "source", "stats", "messages"}
        return Match.STAMP if keys <= set(record) else Match.NO


CONVERTER = DataclawReader()
