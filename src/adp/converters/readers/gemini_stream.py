"""The output ``stream-json`` of Gemini CLI: messages in pieces, calls, results, and totals.

Source: the types of ``packages/core/src/output`` in Gemini CLI, since 0.11.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from msgspec import Raw

from adp.converters.kit.blocks import call_columns
from adp.converters.kit.drafts import merge_extra
from adp.converters.kit.key_tables import take_columns
from adp.converters.kit.pieces import PrintedLog
from adp.converters.kit.session import LogReader, inner, word
from adp.converters.kit.source_object import SourceObject
from adp.converters.kit.usage import UsageKeys, set_usage
from adp.converters.reading import QUOTE
from adp_schema.model import Columns
from adp_schema.protocols import Match

USAGE = UsageKeys(prompt=("input_tokens",), written=("output_tokens",), cached=("cached",))


class GeminiPrinted(PrintedLog):
    """What one run of ``gemini -o stream-json`` printed."""

    agent: ClassVar[str | None] = "gemini-cli"
    handlers: ClassVar[Mapping[str, str]] = {
        "init": "header",
        "message": "message",
        "tool_use": "call",
        "tool_result": "result",
        "error": "error",
        "result": "end",
    }

    def header(self, source: SourceObject) -> None:
        """The first line."""
        if not self.is_first_header(source, "session_id"):
            return
        take_columns(source, self.run.columns, {"agent_model": "model", "started_at": "timestamp"})
        merge_extra(self.run.extra, source.rest())

    def message(self, source: SourceObject) -> None:
        """A message, or a piece of one."""
        role = source.word("role")
        if role in ("user", "assistant"):
            source.drop("role")
        is_piece = source.first("delta") == ord("t") and role == "assistant"
        if is_piece and source.first("content") == QUOTE:
            source.drop("delta")
            step = self.piece(source, source.text("content") or "")
            merge_extra(step.extra, source.rest())
            return
        self.join()
        draft = self.add_message(source, role, source.take("content"), f"{source.path}.content")
        merge_extra(draft.extra, source.rest())

    def call(self, source: SourceObject) -> None:
        """A call of a tool."""
        self.join()
        name, call_id = source.text("tool_name"), source.name("tool_id")
        call = self.open_turn(source).call(call_columns(name, call_id, source.take("parameters")))
        call.extra = source.rest()

    def result(self, source: SourceObject) -> None:
        """What a tool answered, or why it failed."""
        self.join()
        draft = self.begin_result(source, source.name("tool_id"))
        status = source.text("status")
        draft.columns["is_error"] = None if status is None else status == "error"
        error = source.child("error")
        draft.columns["error_type"] = error.text("type")
        self.blocks.result(source.take("output"), draft, f"{source.path}.output")
        if (text := error.text("message")) is not None:
            draft.parts.text(self.builder.text(text))
        draft.extra = {**source.rest(), **({} if status in (None, "success", "error")
                                           else {"status": status})}  # fmt: skip

    def error(self, source: SourceObject) -> None:
        """A warning, or an error that ends the run."""
        self.join()
        if source.word("severity") != "warning":
            self.run.columns["error_message"] = source.word("message") or None
        self.keep(source)

    def end(self, source: SourceObject) -> None:
        """How the run ended, with its tokens; the event keeps all of it."""
        self.join()
        columns, status = self.run.columns, source.word("status")
        columns["stop_reason"] = status or None
        columns["terminated"] = status == "success"
        copy = source.copy()
        if text := copy.child("error").word("message"):
            columns["error_message"] = text
        tokens: Columns = {}
        set_usage(copy.child("stats"), tokens, USAGE)
        for name in ("tokens_in", "tokens_out", "tokens_cached"):
            columns[f"total_{name}"] = tokens.get(name)
        self.keep(source)


class GeminiStreamReader(LogReader):
    """The format ``gemini_stream_json``."""

    name = "gemini_stream_json"
    title = "The output stream-json of Gemini CLI"
    recognised = "a line init with a session_id, a tool_use with a tool_id, or a result with stats"
    versions = "reads what gemini -o stream-json prints, since 0.11"
    log = GeminiPrinted

    def sniff(self, record: Mapping[str, Raw]) -> Match:
        """A line with the keys of its type."""
        kind, keys = word(record, "type"), set(record)
        if kind == "init" and {"session_id", "model", "timestamp"} <= keys:
            return Match.STAMP
        if kind == "tool_use" and {"tool_name", "tool_id", "parameters"} <= keys:
            return Match.STAMP
        if kind == "tool_result" and {"tool_id", "status"} <= keys:
            return Match.STAMP
        ended = kind == "result" and {"status", "stats"} <= keys and bool(inner(record, "stats"))
        return Match.STAMP if ended else Match.NO


CONVERTER = GeminiStreamReader()
