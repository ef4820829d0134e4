"""The outputs ``stream-json`` and ``json`` of Claude Code, and messages of the Claude Agent SDK.

The records are like those on disk, with ``session_id``, and without the chain of records. What a
subagent says stands in between, and names the call that started it (``parent_tool_use_id``). Qwen
Code prints the same, with an id for each block, and with prompt tokens that count cached ones, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

from msgspec import Raw

from adp.converters.kit.drafts import append_extra
from adp.converters.kit.session import LogReader, word
from adp.converters.kit.source_object import SourceObject
from adp.converters.kit.usage import ANTHROPIC, set_usage
from adp.converters.readers.claude_code.records import TRUE, words
from adp.converters.readers.claude_code.session import ClaudeSession
from adp.converters.reading import BRACE
from adp_schema.model import Columns
from adp_schema.protocols import Match

_KEPT = frozenset(
    {
        *("tool_progress", "auth_status", "rate_limit_event", "keep_alive"),
        *("tool_use_summary", "prompt_suggestion", "control_request", "control_response"),
        *("control_cancel_request", "streamlined_text", "streamlined_tool_use_summary"),
        *("summary", "transcript_mirror", "conversation_reset"),
    }
)


_QWEN_USAGE = replace(ANTHROPIC, apart=False)


class StreamSession(ClaudeSession):
    """What one run of ``claude -p`` wrote."""

    handlers: ClassVar[Mapping[str, str]] = {
        **ClaudeSession.handlers,
        "result": "result",
        "stream_event": "streamed",
    }
    _usage = ANTHROPIC
    _streamed = ""
    kept: ClassVar[frozenset[str]] = _KEPT

    def line(self, source: SourceObject) -> None:
        """Give the trajectory of a subagent its id and its link, and take the record."""
        call_id = source.word("parent_tool_use_id")
        if call_id and self.run.kind == "subagent" and "source_id" not in self.run.columns:
            target = f"{self.identity.session}/{call_id}"
            self.run.columns["source_id"] = target
            self.link_agent(call_id, target)
        self.run.constant(source, "parent_tool_use_id")
        super().line(source)

    def system(self, source: SourceObject) -> None:
        """What a run begins with, an edit of the context, or a note."""
        if source.word("subtype") == "init":
            if version := source.word("qwen_code_version"):
                self._usage = _QWEN_USAGE
                self.run.columns |= {"agent_name": "qwen-code", "agent_version": version}
            for key, column in (("model", "agent_model"), ("claude_code_version", "agent_version")):
                if text := source.word(key):
                    self.run.columns.setdefault(column, text)
            if self.identity.session.startswith("T-"):  # a thread of Amp
                self.run.columns["agent_name"] = "amp"
        super().system(source)

    def assistant(self, source: SourceObject) -> None:
        """A block of a response; those of Qwen Code belong together until one has tokens."""
        if self._usage is ANTHROPIC:
            super().assistant(source)
            return
        message = source.child("message")
        last = self.run.steps[-1] if self.run.steps else None
        if (
            last is not None
            and last.columns["kind"] == "llm_turn"
            and not last.observations
            and not last.columns.get("tokens_out")
        ):
            self._turns[id(self.run), message.word("id"), self.copied] = last
            append_extra(last.extra, "message_ids", message.word("id"))
        super().assistant(source)
        columns = self.run.steps[-1].columns
        if usage := columns.get("usage"):
            record = SourceObject(usage.encode(), "usage", self.losses)
            set_usage(record, columns, _QWEN_USAGE)

    def streamed(self, source: SourceObject) -> None:
        """A piece of a response; the last one has the tokens of all of it."""
        event = source.peek("event")
        if event.word("type") == "message_start":
            self._streamed = event.child("message").word("id")
        step = self._turns.get((id(self.run), self._streamed, self.copied))
        if step is not None and event.word("type") == "message_delta":
            written = event.child("usage").integer("output_tokens")
            if written is not None:
                step.columns["tokens_out"] = written
            reason = event.child("delta").text("stop_reason")
            if reason is not None and step.columns.get("stop_reason") is None:
                step.columns["stop_reason"] = reason
        self.keep(source)

    def result(self, source: SourceObject) -> None:
        """How a run, or one turn of it, ended; the event keeps all of it."""
        columns, subtype = self.run.columns, source.word("subtype")
        failed = source.first("is_error") == TRUE or subtype.startswith("error")
        columns["stop_reason"] = subtype or None
        columns["terminated"] = not failed
        columns["truncated"] = subtype.startswith("error_max") or None
        columns["final_answer"] = None if failed else source.word("result") or None
        columns["error_type"] = (subtype or "error") if failed else None
        texts = [*words(source.values.get("errors")), source.word("result")]
        columns["error_message"] = next(filter(None, texts), None) if failed else None
        copy = source.copy()
        columns["total_cost_usd"] = copy.number("total_cost_usd")
        self._totals(copy.child("usage"))
        if not failed and not any(step.columns["source"] == "agent" for step in self.run.steps):
            self.add_answer(source.word("result"))
        if source.first("modelUsage") == BRACE:
            columns["final_metrics"] = copy.json_object("modelUsage")
        self.keep(source)

    def add_answer(self, text: str) -> None:
        """Add the answer of a run of which nothing else was printed (``--output-format json``)."""
        if text:
            self.run.step("agent", "llm_turn").parts.text(self.builder.text(text))

    def _totals(self, usage: SourceObject) -> None:
        """The tokens of the run, when one record says them."""
        tokens: Columns = {}
        set_usage(usage, tokens, self._usage)
        columns = self.run.columns
        again = "total_tokens_in" in columns
        for name in ("tokens_in", "tokens_out", "tokens_cached"):
            columns[f"total_{name}"] = None if again else tokens.get(name)


_STAMPS = frozenset({"mcp_servers", "claude_code_version", "uuid"})
"""Keys of the system's lines that only Claude Code writes."""

_ENDS = frozenset({"num_turns", "total_cost_usd", "cost_usd", "modelUsage", "uuid"})
"""Keys of the last line that only Claude Code writes."""


def _shape(holds: object) -> Match:
    return Match.SHAPE if holds else Match.NO


class StreamReader(LogReader):
    """The format ``claude_stream_json``."""

    name = "claude_stream_json"
    title = "The outputs stream-json and json of Claude Code"
    recognised = "a record with a session_id and the type system, result or a message"
    versions = (
        "reads versions 1.0 to 2.1, what the Claude Agent SDK passes on, and what Qwen Code prints"
    )
    log = StreamSession

    def sniff(self, record: Mapping[str, Raw]) -> Match:
        """A record with a ``session_id`` and no ``sessionId``."""
        if not word(record, "session_id") or "sessionId" in record:
            return Match.NO
        kind = word(record, "type")
        if kind == "system":
            if not word(record, "subtype"):
                return Match.NO  # others print such lines too, without these keys
            return Match.STAMP if _STAMPS & record.keys() else Match.SHAPE
        if kind == "result":
            return Match.STAMP if _ENDS & record.keys() else _shape("is_error" in record)
        if kind in ("user", "assistant"):
            named = "message" in record and "parent_tool_use_id" in record
            return Match.STAMP if named else (Match.SHAPE if "message" in record else Match.NO)
        return Match.STAMP if kind == "stream_event" and "event" in record else Match.NO


CONVERTER = StreamReader()
