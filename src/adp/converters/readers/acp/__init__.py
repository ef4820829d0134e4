"""Logs of the Agent Client Protocol: messages between an editor and an agent, a line each.

An agent tells what it does by ``session/update``: pieces of messages, and calls that later updates
change by their id. Version 2 also sets whole messages by their id.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from msgspec import Raw

from adp.converters.kit.drafts import StepDraft, append_extra, merge_extra
from adp.converters.kit.session import LogReader, SessionLog, inner, word
from adp.converters.kit.source_object import SourceObject
from adp.converters.kit.usage import UsageKeys, set_usage
from adp.converters.readers.acp.calls import UpdatedCalls
from adp.converters.reading import BRACE
from adp_schema import jsontext
from adp_schema.parts import Parts
from adp_schema.protocols import Match

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
_METHODS = ("session/", "fs/", "terminal/", "initialize", "authenticate", "elicitation/")


@dataclass
class GrowingText:
    """A text that still grows: its pieces, and the step that it belongs to."""

    speaker: str
    name: str | None
    step: StepDraft
    pieces: list[str] = field(default_factory=list)


class AcpSession(SessionLog):
    """One log."""

    constants: ClassVar[tuple[str, ...]] = ("jsonrpc",)

    def set_up(self) -> None:
        """Make what updates change: the text that grows, calls and messages by their ids."""
        self.text: GrowingText | None = None
        self.calls = UpdatedCalls(self)
        self.messages: dict[tuple[str, str], StepDraft] = {}

    def line(self, source: SourceObject) -> None:
        """A notification, a request, or a response."""
        self.run.constant(source, *self.constants)
        method = source.word("method")
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
        step = self.begin_step(source, "user")
        self.blocks.content(params.take("prompt"), step, f"{params.path}.prompt")
        step.extra.update(source.rest())

    def _note_result(self, result: SourceObject) -> None:
        """The answer to a prompt says why the turn ended."""
        turns = [step for step in self.run.steps if step.columns["kind"] == "llm_turn"]
        if not turns or not result.word("stopReason"):
            return
        self.run.columns["stop_reason"] = result.word("stopReason")
        turns[-1].columns["stop_reason"] = result.word("stopReason")
        set_usage(result.peek("usage"), turns[-1].columns, USAGE)

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
            self.calls.update(source, update, lambda: self._step("agent", source, None))
        else:
            if kind not in _KNOWN:
                self.losses.unknown(f"session update {kind or 'without a type'}")
            self._close()
            self.other(source)

    def _step(self, speaker: str, source: SourceObject, name: str | None) -> StepDraft:
        """The step that a message or a call belongs to: the open turn, or a new one."""
        steps = len(self.run.steps)
        step = self.begin_step(source, "user") if speaker == "user" else self.open_turn(source)
        if len(self.run.steps) > steps:
            step.columns["native_id"] = name
        return step

    def _close(self) -> None:
        """End the text that grows."""
        if self.text is not None:
            parts = self.text.step.parts
            add = parts.reasoning if self.text.speaker == "thought" else parts.text
            if self.text.pieces:
                add(self.builder.text("".join(self.text.pieces)))
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
            append_extra(grown.step.extra, "chunks", rest)

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

    def finish(self) -> None:
        """End the text that grows, and complete the calls."""
        self._close()
        self.calls.finish()


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
