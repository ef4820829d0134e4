"""Logs of the Agent Client Protocol: its JSON-RPC messages, a line each (Grok, Zed and others).

Chunks of a message follow each other and are one text. A call and its updates have one id; what an
update says replaces what was said before. Source: schema 1.21 of the protocol, version 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from msgspec import Raw

from adp.converters.kit.blocks import call_columns
from adp.converters.kit.drafts import CallDraft, ObservationDraft, StepDraft, merge_extra
from adp.converters.kit.session import LogReader, SessionLog, inner, word
from adp.converters.kit.source_object import SourceObject
from adp.converters.kit.times import take_time
from adp.converters.reading import BRACE, NULL
from adp_schema import jsontext
from adp_schema.builder import RowBuilder
from adp_schema.losses import Losses
from adp_schema.protocols import Match, RawRecord

_CHUNKS = {"user_message_chunk": "user", "agent_message_chunk": "agent",
           "agent_thought_chunk": "thought"}  # fmt: skip
_EVENTS = frozenset(
    {"plan", "available_commands_update", "current_mode_update", "config_option_update",
     "session_info_update", "usage_update", "state_update"}
)  # fmt: skip


@dataclass
class _Stream:
    """Chunks of one message: the step that they go to, and the text so far."""

    kind: str
    step: StepDraft
    texts: list[str] = field(default_factory=list)


@dataclass
class _UpdatedCall:
    """A call, and what its updates have said."""

    step: StepDraft
    draft: CallDraft
    observation: ObservationDraft | None = None
    content: Raw | None = None


class AcpSession(SessionLog):
    """The messages of one session."""

    type_key: ClassVar[str] = "method"
    time_keys: ClassVar[tuple[str, ...]] = ("timestamp", "time", "ts")

    def __init__(self, record: RawRecord, builder: RowBuilder, losses: Losses) -> None:
        super().__init__(record, builder, losses)
        self._stream: _Stream | None = None
        self._agent: StepDraft | None = None
        self._calls: dict[str, _UpdatedCall] = {}

    def line(self, source: SourceObject) -> None:
        """Take one message: an update, a prompt, or what else was said."""
        method, params = source.word("method"), source.child("params")
        if session := params.word("sessionId"):
            self.run.columns.setdefault("source_id", session)
            self.run.columns.setdefault("session_id", session)
            if session == self.run.columns["session_id"]:
                params.drop("sessionId")
        self.run.constant(source, "jsonrpc")
        if method.endswith("session/update") and params.first("update") == BRACE:
            self._update(source, params.child("update"))
        elif method == "session/prompt":
            self._prompt(source, params)
        else:
            result = inner(source.values, "result")
            reason = word(result, "stopReason")
            if reason:
                self.run.columns["stop_reason"] = reason
                if self._agent is not None:
                    self._agent.columns["stop_reason"] = reason
                self._end_turn()
            elif not method and not result and "error" not in source:
                self.losses.unknown("message without a method")
            self.other(source)

    def _end_turn(self) -> None:
        self._close()
        self._agent = None

    def _close(self) -> None:
        """Put the chunks of a message together."""
        stream, self._stream = self._stream, None
        if stream is not None and stream.texts:
            text = self.builder.text("".join(stream.texts))
            parts = stream.step.parts
            (parts.reasoning if stream.kind == "thought" else parts.text)(text)

    def _prompt(self, source: SourceObject, params: SourceObject) -> None:
        """What the user asks."""
        self._end_turn()
        step = self.run.step("user")
        take_time(source, step.columns, *self.time_keys)
        self.blocks.content(params.take("prompt"), step, f"{source.path}.params.prompt")
        step.extra.update(source.rest())

    def _update(self, source: SourceObject, update: SourceObject) -> None:
        kind = update.word("sessionUpdate")
        if kind in _CHUNKS:
            self._chunk(_CHUNKS[kind], source, update)
            return
        self._close()
        if kind in ("tool_call", "tool_call_update") and update.word("toolCallId"):
            self._call(source, update)
            return
        if kind not in _EVENTS:
            self.losses.unknown(f"session update {kind or 'without a kind'}")
        self.other(source)

    def _turn(self, source: SourceObject) -> StepDraft:
        """The turn of the model; the results of its calls end it."""
        if self._agent is None or self._agent.observations:
            self._close()
            self._agent = self.run.step("agent", "llm_turn")
            held = SourceObject(None, source.path, self.losses)
            held.values = dict(source.values)
            take_time(held, self._agent.columns, *self.time_keys)
        return self._agent

    def _chunk(self, kind: str, source: SourceObject, update: SourceObject) -> None:
        if kind == "user" and (self._stream is None or self._stream.kind != "user"):
            self._end_turn()
        if self._stream is None or self._stream.kind != kind:
            self._close()
            if kind == "user":
                step = self.run.step("user")
                take_time(source, step.columns, *self.time_keys)
            else:
                step = self._turn(source)
            self._stream = _Stream(kind, step)
        stream = self._stream
        content = update.child("content")
        text = content.text("text") if content.word("type") == "text" else None
        if text is not None:
            stream.texts.append(text)
            content.drop("type")
        elif content:
            self._close()
            self.blocks.block(content, stream.step)
            content.values.clear()
        self._rest(stream.step, "chunks", source)

    def _rest(self, step: StepDraft, key: str, source: SourceObject) -> None:
        """Keep what is left of an update; its method stands with the trajectory."""
        self.run.constant(source, "method")
        rest = source.rest()
        params = rest.pop("params", None)
        if isinstance(params, dict) and isinstance(params.get("update"), dict):
            rest |= params.pop("update")
        if params:
            rest["params"] = params
        if rest:
            step.extra.setdefault(key, []).append(rest)

    def _call(self, source: SourceObject, update: SourceObject) -> None:
        """A call, or news of one; a call that was not announced begins here."""
        name = update.word("toolCallId")
        call = self._calls.get(name)
        if call is None:
            step = self._turn(source)
            columns = call_columns(_tool_name(update), name, None)
            call = self._calls[name] = _UpdatedCall(step, step.call(columns))
            if update.word("title") == columns["name"]:
                update.drop("title")
        update.drop("toolCallId")
        self._take_columns(call, update)
        if update.first("rawOutput") not in (0, NULL) or update.first("content") not in (0, NULL):
            self._result(call, source, update)
        rest: dict[str, list[Any]] = {}
        holder = StepDraft({}, extra=rest)
        self._rest(holder, "updates", source)
        merge_extra(call.draft.extra, {"updates": [*call.draft.extra.pop("updates", []),
                                                   *rest.get("updates", [])]})  # fmt: skip

    def _take_columns(self, call: _UpdatedCall, update: SourceObject) -> None:
        """The arguments, once they are there, and the last status."""
        columns = call.draft.columns
        if update.first("rawInput") not in (0, NULL) and "arguments_kind" not in columns:
            raw = update.take("rawInput")
            columns |= {key: value for key, value in call_columns(None, None, raw).items()
                        if key.startswith("arguments")}  # fmt: skip
        status = update.word("status")
        if status:
            columns["status"] = status

    def _result(self, call: _UpdatedCall, source: SourceObject, update: SourceObject) -> None:
        """What a call has given; a later update replaces it, and what it said stays in extra."""
        status = update.word("status")
        draft = call.observation
        if draft is None:
            draft = call.observation = ObservationDraft(answers=call.draft.columns["call_id"])
            call.step.observations.append(draft)
        elif draft.columns.get("structured") or draft.parts.columns():
            before = {key: draft.columns.pop(key) for key in ("structured",)
                      if draft.columns.get(key)}  # fmt: skip
            draft.extra.setdefault("earlier", []).append({**before, **draft.parts.columns()})
            draft.parts = ObservationDraft().parts
        held = SourceObject(None, source.path, self.losses)
        held.values = dict(source.values)
        take_time(held, draft.columns, *self.time_keys)
        output = inner(update.values, "rawOutput")
        code = SourceObject(update.values.get("rawOutput"), "$", Losses()).integer_at(
            "exit_code", 32)  # fmt: skip
        if code is not None:
            draft.columns["exit_code"] = code
        if status in ("completed", "failed"):
            draft.columns["is_error"] = status == "failed"
        for block in update.objects("content"):
            self._block(block, draft)
        if not draft.parts.columns() and word(output, "text"):
            draft.parts.text(self.builder.text(word(output, "text")))
        draft.columns["structured"] = update.json("rawOutput")

    def _block(self, block: SourceObject, draft: ObservationDraft) -> None:
        """A block of the content of a call: content, a diff, a terminal."""
        content = block.child("content")
        if block.word("type") == "content" and content and set(block.values) <= {"type"}:
            self.blocks.part(content, draft.parts)
        else:
            draft.parts.opaque(jsontext.raw(jsontext.text_of(block.rest())))

    def finish(self) -> None:
        """Put the last message together."""
        self._close()


def _tool_name(update: SourceObject) -> str | None:
    """The name of a tool, which agents keep in ``_meta``; or the title of the call."""
    meta = inner(update.values, "_meta")
    for key, name in (("x.ai/tool", "name"), ("claudeCode", "toolName")):
        if title := word(inner(meta, key), name):
            return title
    return update.word("title") or None


class AcpReader(LogReader):
    """The format ``acp``."""

    name = "acp"
    title = "Logs of the Agent Client Protocol"
    recognised = "a session/update with a sessionUpdate"
    versions = "reads version 1 of the protocol"
    log = AcpSession

    def sniff(self, record: Mapping[str, Raw]) -> Match:
        """An update, a prompt, or the call that begins a connection."""
        method, params = word(record, "method"), inner(record, "params")
        if method.endswith("session/update") and "sessionUpdate" in inner(params, "update"):
            return Match.STAMP
        if method in ("session/prompt", "session/new", "session/load") and params:
            return Match.STAMP
        return Match.SHAPE if method == "initialize" and "protocolVersion" in params else Match.NO


CONVERTER = AcpReader()
