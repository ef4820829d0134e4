"""Logs of the Agent Client Protocol: messages between an editor and an agent, a line each.

An agent tells what it does by ``session/update``: pieces of messages, and calls that later updates
change by their id. Version 2 also sets whole messages by their id.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from msgspec import Raw

from adp.converters.kit.blocks import call_columns
from adp.converters.kit.drafts import CallDraft, ObservationDraft, StepDraft, merge_extra
from adp.converters.kit.session import LogReader, SessionLog, inner, word
from adp.converters.kit.source_object import SourceObject
from adp.converters.kit.times import take_time, time_of
from adp.converters.kit.usage import UsageKeys, set_usage
from adp.converters.reading import BRACE, BRACKET, QUOTE
from adp_schema import jsontext
from adp_schema.builder import RowBuilder
from adp_schema.losses import Losses
from adp_schema.parts import Parts
from adp_schema.protocols import Match, RawRecord

USAGE = UsageKeys(
    prompt=("inputTokens",),
    written=("outputTokens",),
    cached=("cachedReadTokens",),
    cache_write=("cachedWriteTokens",),
    reasoning=("thoughtTokens",),
    apart=True,
)
_MESSAGES = {"user_message": "user", "agent_message": "agent", "agent_thought": "thought"}
_KNOWN = frozenset({
    "plan", "plan_update", "available_commands_update", "current_mode_update",
    "config_option_update", "session_info_update", "usage_update", "state_update",
})  # fmt: skip
_DONE = ("completed", "failed", "cancelled")
_METHODS = ("session/", "fs/", "terminal/", "initialize", "authenticate", "elicitation/")


@dataclass
class GrowingText:
    """A text that still grows: its pieces, and the step that it belongs to."""

    speaker: str
    name: str | None
    step: StepDraft
    pieces: list[str] = field(default_factory=list)


@dataclass
class GrowingCall:
    """A call with all that updates said of it so far."""

    call: CallDraft
    start: datetime | None
    result: ObservationDraft | None = None
    content: Raw | None = None


class AcpSession(SessionLog):
    """One log."""

    def __init__(self, record: RawRecord, builder: RowBuilder, losses: Losses) -> None:
        super().__init__(record, builder, losses)
        self.text: GrowingText | None = None
        self.calls: dict[str, GrowingCall] = {}
        self.messages: dict[tuple[str, str], StepDraft] = {}

    def line(self, source: SourceObject) -> None:
        """A notification, a request, or a response."""
        method = source.word("method")
        self.run.constant(source, "jsonrpc")
        if method.endswith("session/update") and source.first("params") == BRACE:
            self.run.constant(source, "method")
            self._update(source)
        elif method == "session/prompt":
            self._prompt(source)
        else:
            if not method and source.first("result") == BRACE:
                self._note_result(source.child("result"))
            elif not method.lstrip("_").startswith(_METHODS) and "error" not in source:
                self.losses.unknown(f"record type {method or 'without a type'}")
            self._close()
            self.other(source)

    def _note_session(self, params: SourceObject) -> None:
        if (name := params.word("sessionId")) and "source_id" not in self.run.columns:
            self.run.columns["source_id"] = self.run.columns["session_id"] = name
        self.run.constant(params, "sessionId")

    def _prompt(self, source: SourceObject) -> None:
        """What the user sent."""
        self._close()
        params = source.child("params")
        self._note_session(params)
        step = self.run.step("user")
        take_time(source, step.columns, "timestamp")
        self.blocks.content(params.take("prompt"), step, f"{params.path}.prompt")
        step.extra.update(source.rest())

    def _note_result(self, result: SourceObject) -> None:
        """The answer to a prompt says why the turn ended."""
        turns = [step for step in self.run.steps if step.columns["kind"] == "llm_turn"]
        if not turns or not result.word("stopReason"):
            return
        self.run.columns["stop_reason"] = result.word("stopReason")
        turns[-1].columns["stop_reason"] = result.word("stopReason")
        usage = SourceObject(result.values.get("usage"), result.path, self.losses)
        set_usage(usage, turns[-1].columns, USAGE)

    def _update(self, source: SourceObject) -> None:
        params = source.child("params")
        self._note_session(params)
        update = params.child("update")
        kind = update.word("sessionUpdate")
        speaker = _MESSAGES.get(kind.removesuffix("_chunk"))
        if speaker is not None:
            update.drop("sessionUpdate")
            if kind.endswith("_chunk"):
                self._chunk(speaker, source, update)
            else:
                self._set_message(speaker, source, update)
        elif kind in ("tool_call", "tool_call_update") and update.word("toolCallId"):
            update.drop("sessionUpdate")
            self._close()
            self._call(source, update)
        else:
            if kind not in _KNOWN:
                self.losses.unknown(f"session update {kind or 'without a type'}")
            self._close()
            self.other(source)

    # ---- messages --------------------------------------------------------------------------

    def _step(self, speaker: str, source: SourceObject, name: str | None) -> StepDraft:
        """The step that a message or a call belongs to: the open turn, or a new one."""
        last = self.run.steps[-1] if self.run.steps else None
        is_open = last is not None and last.columns["kind"] == "llm_turn" and not last.observations
        if last is not None and is_open and speaker != "user":
            return last
        kind = ("user", "message") if speaker == "user" else ("agent", "llm_turn")
        step = self.run.step(*kind, native_id=name)
        take_time(source, step.columns, "timestamp")
        return step

    def _close(self) -> None:
        """End the text that grows."""
        if self.text is not None:
            parts, text = self.text.step.parts, "".join(self.text.pieces)
            add = parts.reasoning if self.text.speaker == "thought" else parts.text
            if self.text.pieces:
                add(self.builder.text(text))
            self.text = None

    def _chunk(self, speaker: str, source: SourceObject, update: SourceObject) -> None:
        """A piece of a message."""
        name = update.name("messageId")
        grown = self.text
        if grown is None or (grown.speaker, grown.name) != (speaker, name):
            self._close()
            step = self._step(speaker, source, name)
            grown = self.text = GrowingText(speaker, name, step)
            if name is not None and step.columns.get("native_id") != name:
                merge_extra(step.extra, {f"{speaker}Id": name})
        content = update.child("content")
        if content.word("type") == "text" and set(content.values) == {"type", "text"}:
            content.drop("type")
            grown.pieces.append(content.text("text") or "")
        else:
            raw = update.take("content") if not content else jsontext.raw(
                jsontext.text_of(update.take_child("content").rest()))  # fmt: skip
            self._close()
            self.text = GrowingText(speaker, name, grown.step)
            self.blocks.content(raw, grown.step, content.path)
        if rest := source.rest():
            grown.step.extra.setdefault("chunks", []).append(rest)

    def _set_message(self, speaker: str, source: SourceObject, update: SourceObject) -> None:
        """A whole message; one with the id of an earlier one stands in its place."""
        self._close()
        name = update.name("messageId")
        step = self.messages.get((speaker, name or ""))
        if step is None:
            step = self._step(speaker, source, name)
            if name is not None:
                self.messages[speaker, name] = step
                if step.columns.get("native_id") != name:
                    merge_extra(step.extra, {f"{speaker}Id": name})
        elif not step.calls:
            merge_extra(step.extra, {"replaced": step.parts.columns()})
            step.parts = Parts()
        if "content" in update:
            raw = update.take("content")
            if speaker == "thought":
                holder = StepDraft({})
                self.blocks.content(raw, holder, update.path)
                columns = holder.parts.columns()
                step.parts.reasoning(columns.pop("text", ""))
                if columns:
                    merge_extra(step.extra, {"thought": columns})
            else:
                self.blocks.content(raw, step, update.path)
        merge_extra(step.extra, source.rest())

    # ---- calls -----------------------------------------------------------------------------

    def _call(self, source: SourceObject, update: SourceObject) -> None:
        call_id = update.text("toolCallId") or ""
        known = self.calls.get(call_id)
        if known is None:
            step = self._step("agent", source, None)
            name = _tool_name(update) or update.text("title")
            columns = call_columns(name, call_id, update.take("rawInput"))
            start = time_of(source.values.get("timestamp"))[0] or step.columns.get("timestamp")
            known = self.calls[call_id] = GrowingCall(step.call(columns), start)
        elif "rawInput" in update:
            self._change_input(known.call, update)
        columns, extra = known.call.columns, known.call.extra
        status = update.text("status")
        if status is not None:
            if columns.get("status") is not None:
                extra.setdefault("statuses", []).append(columns["status"])
            columns["status"] = status
        if update.first("content") == BRACKET:
            if known.content is not None:
                merge_extra(extra, {"content": known.content})
            known.content = update.take("content")
        if status in _DONE or update.first("rawOutput") not in (0, ord("n")):
            self._result(known, call_id, source, update)
        if rest := source.rest():
            merge_extra(extra, rest)

    def _change_input(self, call: CallDraft, update: SourceObject) -> None:
        changed = call_columns(None, None, update.take("rawInput"))
        keys = ("arguments", "arguments_raw", "arguments_kind")
        before = {key: call.columns.pop(key) for key in keys if key in call.columns}
        after = {key: changed[key] for key in keys if key in changed}
        call.columns.update(after)
        if before and before != after:
            merge_extra(call.extra, {"rawInput": before})

    def _result(
        self, known: GrowingCall, call_id: str, source: SourceObject, update: SourceObject
    ) -> None:
        if known.result is None:
            known.result = self.run.observe({"name": known.call.columns["name"]}, answers=call_id)
        columns = known.result.columns
        if "timestamp" not in columns:
            take_time(source, columns, "timestamp")
            if known.start is not None and columns.get("timestamp") is not None:
                took = columns["timestamp"] - known.start
                known.call.columns["duration_ms"] = took.total_seconds() * 1000
        output = SourceObject(update.values.get("rawOutput"), update.path, self.losses)
        for key in ("exit_code", "exitCode"):
            if (code := output.integer_at(key, bits=32)) is not None:
                columns["exit_code"] = code
        if known.call.columns.get("status") in _DONE:
            columns["is_error"] = known.call.columns["status"] == "failed"
        if update.first("rawOutput") in (0, ord("n")):
            return
        if columns.get("structured") is not None:
            before = jsontext.raw(columns["structured"])
            merge_extra(known.result.extra, {"rawOutput": before})
        columns["structured"] = update.json("rawOutput")

    def finish(self) -> None:
        """Give each result the content that its call had at the end."""
        self._close()
        for known in self.calls.values():
            result = known.result
            if result is None:
                if known.content is not None:
                    merge_extra(known.call.extra, {"content": known.content})
                continue
            for item in jsontext.decode_array(known.content) if known.content else []:
                self._content(SourceObject(item, "content", self.losses), item, result)
            if not known.content and (text := _printed(result.columns.get("structured"))):
                result.parts.text(self.builder.text(text))

    def _content(self, item: SourceObject, raw: Raw, result: ObservationDraft) -> None:
        """An item of the content of a call: content, a diff, or a terminal."""
        if item.word("type") == "content" and item.first("content") == BRACE:
            item.drop("type")
            self.blocks.part(item.take_child("content"), result.parts)
            merge_extra(result.extra, item.rest())
        elif item:
            result.parts.opaque(item.rest())
        else:
            result.parts.opaque(jsontext.raw(jsontext.one_line(raw)))


def _tool_name(update: SourceObject) -> str | None:
    """The name of a tool, which agents write beside the title that users see."""
    meta = SourceObject(update.values.get("_meta"), update.path, update.losses)
    for place in meta.values:
        tool = SourceObject(meta.values[place], update.path, update.losses)
        if name := tool.word("name") or tool.word("toolName"):
            return name
    return meta.word("toolName") or None


def _printed(structured: Any) -> str | None:
    """The text of a raw output that is one, or has one."""
    if structured is None:
        return None
    raw = jsontext.raw(structured)
    if jsontext.first_byte(raw) == QUOTE:
        return str(jsontext.decode_value(raw))
    output = SourceObject(raw, "rawOutput", Losses())
    names = ("text", "output", "content", "stdout", "message", "error")
    return next((text for name in names if (text := output.word(name))), None)


class AcpReader(LogReader):
    """The format ``acp``."""

    name = "acp"
    title = "Logs of the Agent Client Protocol"
    recognised = "a line with a method session/update, and an update with sessionUpdate"
    versions = "reads versions 1 and 2"
    log = AcpSession

    def sniff(self, record: Mapping[str, Raw]) -> Match:
        """A notification of an agent, or the prompt before it."""
        method = word(record, "method")
        params = inner(record, "params")
        if method.endswith("session/update") and "sessionUpdate" in inner(params, "update"):
            return Match.STAMP
        prompt = method == "session/prompt" and {"sessionId", "prompt"} <= set(params)
        return Match.SHAPE if prompt else Match.NO


CONVERTER = AcpReader()
