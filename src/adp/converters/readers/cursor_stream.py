"""The outputs ``stream-json`` and ``json`` of Cursor's command line.

With ``--stream-partial-output`` a text comes in pieces, which have a time, and then whole: with a
``model_call_id`` before a call, and without a time at the end. A call is printed when it starts
and when it is over; the key of its object says the tool.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from msgspec import Raw

from adp.converters.kit.blocks import call_columns
from adp.converters.kit.drafts import CallDraft, StepDraft, merge_extra
from adp.converters.kit.key_tables import exit_code, take_columns
from adp.converters.kit.pieces import PrintedLog
from adp.converters.kit.session import LogReader, inner, word
from adp.converters.kit.source_object import SourceObject
from adp.converters.kit.usage import UsageKeys, set_usage
from adp.converters.reading import BRACE, BRACKET
from adp_schema import jsontext
from adp_schema.model import Columns
from adp_schema.protocols import Match

USAGE = UsageKeys(
    prompt=("inputTokens",),
    written=("outputTokens",),
    cached=("cacheReadTokens",),
    cache_write=("cacheWriteTokens",),
)
_TEXTS = ("content", "stdout", "output", "interleavedOutput", "errorMessage", "error", "message",
          "reason")  # fmt: skip
"""Keys of what a tool answered, in the object under ``success``, ``error``, ``rejected``."""


class CursorPrinted(PrintedLog):
    """What one run of ``cursor-agent -p`` printed."""

    agent: ClassVar[str | None] = "cursor"
    handlers: ClassVar[Mapping[str, str]] = {
        "system": "header",
        "user": "message",
        "assistant": "message",
        "thinking": "thinking",
        "tool_call": "tool",
        "result": "end",
    }
    constants: ClassVar[tuple[str, ...]] = ("session_id",)
    time_keys: ClassVar[tuple[str, ...]] = ("timestamp_ms",)

    def set_up(self) -> None:
        """The calls that were started, by their id, with their turn."""
        super().set_up()
        self._calls: dict[str, tuple[StepDraft, CallDraft]] = {}
        self._turns: dict[str, StepDraft] = {}

    def line(self, source: SourceObject) -> None:
        """Any line names the session."""
        if "source_id" not in self.run.columns and (name := source.word("session_id")):
            self.run.columns["source_id"] = self.run.columns["session_id"] = name
        super().line(source)

    def header(self, source: SourceObject) -> None:
        """The first line; any other of the system is a note."""
        self.join()
        if source.word("subtype") != "init" or "agent_model" in self.run.columns:
            self.keep(source)
            return
        take_columns(source, self.run.columns, {"agent_model": "model"})
        source.drop("subtype")
        merge_extra(self.run.extra, source.rest())

    def message(self, source: SourceObject) -> None:
        """A message, a piece of one, or the text of the pieces before it."""
        role, message = self.kind, source.child("message")
        message.drop_text("role", role)
        text = _only_text(message) if role == "assistant" else None
        if text is not None and self.is_repeated(text):
            step = self.open_turn(source)
            message.drop("content")
            self.losses.add(source.path, "the text of the pieces before it, again")
            source.drop(*self.time_keys)
            self.join()
        elif text is not None and "timestamp_ms" in source and "model_call_id" not in source:
            step = self.piece(source, text)
            message.drop("content")
        else:
            self.join()
            path = f"{message.path}.content"
            if role == "assistant":
                step = self.open_turn(source)
                self.blocks.content(message.take("content"), step, path)
            else:
                draft = self.add_message(source, role, message.take("content"), path)
                merge_extra(draft.extra, source.rest())
                return
        merge_extra(step.extra, source.rest())

    def thinking(self, source: SourceObject) -> None:
        """A piece of reasoning, or its end."""
        text = source.text("text")
        if source.word("subtype") == "delta":
            source.drop("subtype")
            step = self.piece(source, text or "", reasoning=True)
        else:
            if text and not self.is_repeated(text):
                step = self.piece(source, text, reasoning=True)
            step = self.open_turn(source)
            self.losses.add(source.path, "the end of reasoning that is there")
            source.drop(*self.time_keys)
            if source.word("subtype") == "completed":
                source.drop("subtype")
            self.join()
        merge_extra(step.extra, source.rest())

    def tool(self, source: SourceObject) -> None:
        """A call that starts, or is over."""
        self.join()
        tool = source.child("tool_call")
        name = next((key for key in tool.values if _is_call(tool, key)), None)
        body = tool.child(name) if name else tool
        call_id = source.name("call_id") or tool.name("toolCallId")
        tool.drop_text("toolCallId", call_id)
        if name == "function" and body.word("name"):
            name = body.text("name")
        is_over = source.word("subtype") == "completed"
        if source.word("subtype") in ("started", "completed"):
            source.drop("subtype")
        self._call(source, body, name, call_id, is_over=is_over)
        if is_over:
            self._result(source, body, name, call_id)

    def _call(
        self,
        source: SourceObject,
        body: SourceObject,
        name: str | None,
        call_id: str | None,
        *,
        is_over: bool,
    ) -> None:
        """Add a call, or find the one that a line says is over: by its id, or by its tool."""
        key = call_id or f" {name}"
        arguments = body.take("args") or body.take("arguments")
        known = self._calls.get(key)
        if known is not None and is_over:
            columns = known[1].columns
            again = call_columns(name, call_id, arguments)
            if arguments is not None and any(columns.get(it) != again[it] for it in again):
                merge_extra(known[1].extra, {"completed": arguments})
            if call_id is None:
                del self._calls[key]
            return
        model_call = source.word("model_call_id")
        step = self._turns.get(model_call) or self.open_turn(source)
        if model_call:
            self._turns[model_call] = step
        call = step.call(call_columns(name, call_id, arguments))
        if not is_over:
            call.extra = source.rest()
            self._calls[key] = step, call

    def _result(
        self, source: SourceObject, body: SourceObject, name: str | None, call_id: str | None
    ) -> None:
        draft = self.begin_result(source, call_id, name=name)
        result = body.child("result")
        kinds = [key for key in result.values if result.first(key) == BRACE]
        draft.columns["is_error"] = kinds[0] != "success" if kinds else None
        if not kinds:
            self.blocks.result(body.take("result"), draft, f"{body.path}.result")
        for kind in kinds[:1]:
            answer = result.child(kind)
            draft.columns["exit_code"] = exit_code(answer)
            for text in (answer.text(*_TEXTS), answer.text("stderr")):
                if text:
                    draft.parts.text(self.builder.text(text))
        draft.extra = source.rest()

    def end(self, source: SourceObject) -> None:
        """How the run ended, with its tokens; the event keeps all of it."""
        self.join()
        columns, failed = self.run.columns, source.first("is_error") == ord("t")
        columns["stop_reason"] = source.word("subtype") or None
        columns["terminated"] = not failed
        column = "error_message" if failed else "final_answer"
        columns[column] = source.word("result") or None
        alone = not any(step.columns["source"] == "agent" for step in self.run.steps)
        if columns.get("final_answer") and alone:  # --output-format json prints nothing else
            self.run.step("agent", "llm_turn").parts.text(self.builder.text(source.word("result")))
        tokens: Columns = {}
        set_usage(source.copy().child("usage"), tokens, USAGE)
        for name in ("tokens_in", "tokens_out", "tokens_cached"):
            columns[f"total_{name}"] = tokens.get(name)
        self.keep(source)


def _only_text(message: SourceObject) -> str | None:
    """The text of a message that is nothing but one text."""
    if message.first("content") != BRACKET:
        return None
    blocks = message.copy().objects("content")
    if len(blocks) != 1 or set(blocks[0].values) - {"type", "text"}:
        return None
    if blocks[0].word("type") != "text" and "type" in blocks[0]:
        return None
    text = blocks[0].text("text")
    return None if text is None or jsontext.has_mark(text) else text


def _is_call(tool: SourceObject, key: str) -> bool:
    """Whether a key names the tool of a call, with its arguments or its result."""
    if tool.first(key) != BRACE:
        return False
    return key.endswith("ToolCall") or not {"args", "arguments", "result"}.isdisjoint(
        tool.peek(key).values
    )


class CursorStreamReader(LogReader):
    """The format ``cursor_stream_json``."""

    name = "cursor_stream_json"
    title = "The outputs stream-json and json of Cursor"
    recognised = "a line tool_call with a tool_call, thinking with a subtype, or Cursor's init"
    versions = "reads what cursor-agent -p --output-format stream-json prints, also in pieces"
    log = CursorPrinted

    def sniff(self, record: Mapping[str, Raw]) -> Match:
        """A line that Cursor alone prints; its others are like those of Claude Code."""
        kind, subtype = word(record, "type"), word(record, "subtype")
        if kind == "tool_call" and subtype in ("started", "completed"):
            return Match.STAMP if inner(record, "tool_call") else Match.NO
        if kind == "thinking" and subtype in ("delta", "completed"):
            return Match.STAMP
        if kind == "system" and subtype == "init" and "apiKeySource" in record:
            return Match.NO if {"tools", "uuid", "mcp_servers"} & set(record) else Match.STAMP
        named = "request_id" in record or "inputTokens" in inner(record, "usage")
        if kind == "result" and "is_error" in record and named:
            return Match.NO if {"num_turns", "uuid"} & set(record) else Match.STAMP
        return Match.NO


CONVERTER = CursorStreamReader()
