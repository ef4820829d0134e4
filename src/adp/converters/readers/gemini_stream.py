"""What ``gemini -o`` prints.

``stream-json`` is lines with messages in pieces, calls, results and totals; ``json`` is an object
with the answer and the totals. Source: the types of ``packages/core/src/output``
in Gemini CLI, since 0.11.
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
from adp.converters.kit.usage import UsageKeys, add_totals, set_usage
from adp.converters.reading import QUOTE
from adp_schema.model import Columns
from adp_schema.protocols import Match

USAGE = UsageKeys(prompt=("input_tokens",), written=("output_tokens",), cached=("cached",))

MODEL_USAGE = UsageKeys(
    prompt=("prompt", "input"),
    written=("candidates",),
    cached=("cached",),
    reasoning=("thoughts",),
    total=("total",),
)
ANSWER = "$answer"
"""What a line without a type is: the object of the output ``json``."""


class GeminiPrinted(PrintedLog):
    """What one run of ``gemini -o stream-json``, or of ``-o json``, printed."""

    agent: ClassVar[str | None] = "gemini-cli"
    handlers: ClassVar[Mapping[str, str]] = {
        "init": "header",
        "message": "message",
        "tool_use": "call",
        "tool_result": "result",
        "error": "error",
        "result": "end",
        ANSWER: "answer",
    }

    def kind_of(self, source: SourceObject) -> str:
        """The type of a line; the object of the output ``json`` has none."""
        return source.word("type") or (ANSWER if _is_answer(source.values) else "")

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

    def answer(self, source: SourceObject) -> None:
        """The object of the output ``json``: an answer, or an error, with the totals of the run."""
        columns, error = self.run.columns, source.peek("error")
        first = "source_id" not in columns and not self.run.steps
        if first:
            columns["source_id"] = columns["session_id"] = source.name("session_id")
        if source.first("response") == QUOTE:
            step = self.begin_step(source, "agent")
            self.blocks.take_text(source, step.parts, "response")
            columns["final_answer"] = step.parts.columns().get("text")
        columns["terminated"] = not error
        columns["error_type"] = error.word("type") or None
        columns["error_message"] = error.word("message") or None
        if first:
            self._models(source.peek("stats").child("models"))
            columns["final_metrics"] = source.json_object("stats")
        if source:
            self.keep(source)

    def _models(self, models: SourceObject) -> None:
        """The tokens of a run, and the model that took most of them."""
        sums: Columns = {}
        most = -1
        for name in list(models.values):
            tokens: Columns = {}
            set_usage(models.child(name).child("tokens"), tokens, MODEL_USAGE)
            for column, number in tokens.items():
                sums[column] = sums.get(column, 0) + number
            if tokens.get("tokens_in", 0) > most:
                most, self.run.columns["agent_model"] = tokens.get("tokens_in", 0), name
        add_totals(sums, self.run.columns)


def _is_answer(record: Mapping[str, Raw]) -> bool:
    """Whether a record is the object of the output ``json``."""
    if "type" in record or not set(record) <= {"session_id", "response", "stats", "error"}:
        return False
    stats, error = inner(record, "stats"), inner(record, "error")
    failed = "session_id" in record and {"type", "message"} <= set(error)
    return failed or ("response" in record and "models" in stats)


class GeminiStreamReader(LogReader):
    """The format ``gemini_stream_json``."""

    name = "gemini_stream_json"
    title = "The outputs stream-json and json of Gemini CLI"
    recognised = (
        "a line init with a session_id, a tool_use with a tool_id, a result with stats, or an "
        "object with response and stats"
    )
    versions = "reads what gemini -o stream-json and -o json print, since 0.11"
    log = GeminiPrinted

    def sniff(self, record: Mapping[str, Raw]) -> Match:
        """A line with the keys of its type."""
        kind, keys = word(record, "type"), set(record)
        if not kind and _is_answer(record):
            return Match.STAMP if "stats" in keys else Match.SHAPE
        if kind == "init" and {"session_id", "model", "timestamp"} <= keys:
            return Match.STAMP
        if kind == "tool_use" and {"tool_name", "tool_id", "parameters"} <= keys:
            return Match.STAMP
        if kind == "tool_result" and {"tool_id", "status"} <= keys:
            return Match.STAMP
        ended = kind == "result" and {"status", "stats"} <= keys and bool(inner(record, "stats"))
        return Match.STAMP if ended else Match.NO


CONVERTER = GeminiStreamReader()
