"""The output of ``codex exec --json``: items that start, change and are completed.

An item is a message, reasoning, or a call with its result; its id joins its lines. Source: the
types of ``codex-rs/exec/src/exec_events.rs``; early versions wrote ``item_type`` for ``type``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from msgspec import Raw

from adp.converters.kit.blocks import call_columns
from adp.converters.kit.drafts import CallDraft, merge_extra
from adp.converters.kit.session import LogReader, SessionLog, inner, word
from adp.converters.kit.source_object import SourceObject
from adp.converters.kit.usage import OPENAI, set_usage
from adp.converters.reading import BRACE
from adp_schema import jsontext
from adp_schema.model import Columns
from adp_schema.protocols import Match

ARGUMENTS = {
    "command_execution": ("command", "cwd"),
    "file_change": ("changes",),
    "web_search": ("query", "action"),
    "collab_tool_call": ("receiver_thread_ids", "prompt"),
}
"""Items that are calls -> the keys that say what was asked for."""

_CALLS = frozenset({*ARGUMENTS, "mcp_tool_call"})
_OPEN = frozenset({"in_progress", ""})
_LINES = frozenset({"item.started", "item.updated", "item.completed"})


class CodexPrinted(SessionLog):
    """What one run of ``codex exec --json`` printed."""

    agent: ClassVar[str | None] = "codex"
    handlers: ClassVar[Mapping[str, str]] = {
        "thread.started": "header",
        **dict.fromkeys(_LINES, "item"),
        "turn.completed": "turn",
        "turn.failed": "failure",
        "error": "failure",
    }
    kept: ClassVar[frozenset[str]] = frozenset({"turn.started"})

    def set_up(self) -> None:
        """The calls, by the id of their item, with what was asked for."""
        self._calls: dict[str, tuple[CallDraft | None, dict[str, bytes]]] = {}
        self._answered: set[str] = set()

    def header(self, source: SourceObject) -> None:
        """The first line."""
        if self.is_first_header(source, "thread_id"):
            merge_extra(self.run.extra, source.rest())

    def item(self, source: SourceObject) -> None:
        """A message, reasoning, a call, or any other item, which becomes an event."""
        item = source.child("item")
        key = "type" if "type" in item else "item_type"
        kind = item.word(key)
        is_over = self.kind == "item.completed"
        if kind in _CALLS:
            item.drop("type")
            self._call(source, item, kind, is_over=is_over)
        elif is_over and kind in ("agent_message", "assistant_message", "reasoning"):
            step = self.open_turn(source)
            item.drop("type")
            add = self.blocks.take_reasoning if kind == "reasoning" else self.blocks.take_text
            add(item, step.parts, "text")
            merge_extra(step.extra, source.rest())
        else:
            if kind not in ("todo_list", "error"):
                self.losses.unknown(f"item type {kind or 'without a type'}")
            self.keep(source)

    def _call(self, source: SourceObject, item: SourceObject, kind: str, *, is_over: bool) -> None:
        name = item.word("id")
        status = item.word("status")
        keys = ARGUMENTS.get(kind, ("arguments",))
        call, asked = self._calls.get(name, (None, {}))
        if call is None:
            asked = {key: bytes(item.values[key]) for key in keys if key in item}
            call = self.open_turn(source).call(self._columns(item, kind))
            if name:
                self._calls[name] = call, asked
        for key, raw in asked.items():  # a later line says it again
            if bytes(item.values.get(key, b"")) == raw:
                item.drop(key)
        item.drop_text("id", call.columns["call_id"])
        if status:
            call.columns["status"] = item.text("status")
        if (is_over or status not in _OPEN) and name not in self._answered:
            self._answered.add(name)
            self._result(item, kind, call, status)
        if left := source.rest():
            merge_extra(call.extra, left)

    def _columns(self, item: SourceObject, kind: str) -> Columns:
        if kind == "mcp_tool_call":
            name = item.text("tool") or kind
            return call_columns(name, item.word("id") or None, item.take("arguments"))
        asked = {key: item.take(key) for key in ARGUMENTS[kind] if key in item}
        arguments = jsontext.raw(jsontext.text_of(asked))
        return call_columns(kind, item.word("id") or None, arguments)

    def _result(self, item: SourceObject, kind: str, call: CallDraft, status: str) -> None:
        draft = self.run.observe({"name": call.columns["name"]}, answers=call.columns["call_id"],
                                 by_order=True)  # fmt: skip
        draft.columns["is_error"] = None if not status else status != "completed"
        draft.columns["exit_code"] = item.integer("exit_code", bits=32)
        self.blocks.take_text(item, draft.parts, "aggregated_output")
        if item.first("result") == BRACE:
            result = item.child("result")
            self.blocks.result(result.take("content"), draft, f"{result.path}.content")
            draft.columns["structured"] = result.json("structured_content")
        if item.first("error") == BRACE:
            self.blocks.take_text(item.child("error"), draft.parts, "message")

    def turn(self, source: SourceObject) -> None:
        """The end of a turn, with the tokens of the whole thread so far."""
        tokens: Columns = {}
        set_usage(source.copy().child("usage"), tokens, OPENAI)
        for name in ("tokens_in", "tokens_out", "tokens_cached"):
            self.run.columns[f"total_{name}"] = tokens.get(name)
        self.run.columns["terminated"] = True
        self.keep(source)

    def failure(self, source: SourceObject) -> None:
        """An error, which may have ended the turn."""
        text = source.word("message") or source.peek("error").word("message")
        self.run.columns["error_message"] = text or None
        if self.kind == "turn.failed":
            self.run.columns["terminated"] = False
        self.keep(source)


class CodexExecReader(LogReader):
    """The format ``codex_exec_json``."""

    name = "codex_exec_json"
    title = "The output of codex exec --json"
    recognised = "a line thread.started with a thread_id, or a line about an item with a type"
    versions = "reads versions 0.44 to 0.160, also those with item_type"
    log = CodexPrinted

    def sniff(self, record: Mapping[str, Raw]) -> Match:
        """A line with the keys of its type."""
        kind = word(record, "type")
        if kind == "thread.started":
            return Match.STAMP if word(record, "thread_id") else Match.NO
        item = inner(record, "item") if kind in _LINES else {}
        return Match.STAMP if word(item, "type") or word(item, "item_type") else Match.NO


CONVERTER = CodexExecReader()
