"""Events of a Codex log about the execution of calls, joined to the calls.

An event has the id of its call, or an id of its own (``exec-<uuid>``). One of its own belongs to a
call that asks for the same, to the call that is being carried out (an event of the environment,
for code that runs several tools), or it is the only trace of a call, and then it becomes one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from msgspec import Raw

from adp.converters.kit.blocks import BlockReader
from adp.converters.kit.drafts import (
    CallDraft,
    ObservationDraft,
    StepDraft,
    TrajectoryDraft,
    append_extra,
    merge_extra,
)
from adp.converters.kit.source_object import SourceObject
from adp.converters.readers.codex.reports import command_of, outcome, output_of
from adp.converters.readers.codex.turns import rest_of
from adp.converters.reading import BRACE, QUOTE
from adp_schema import jsontext
from adp_schema.losses import Losses
from adp_schema.model import Columns

COMMANDS = frozenset({"exec_command", "shell", "shell_command", "local_shell", "container.exec",
                      "write_stdin"})  # fmt: skip
KINDS: dict[str, tuple[str, ...]] = {
    "exec_command_end": ("command", "cwd"),
    "CommandExecution": ("command", "cwd"),
    "patch_apply_end": ("changes",),
    "FileChange": ("changes",),
    "mcp_tool_call_end": (),
    "McpToolCall": (),
    "DynamicToolCall": (),
    "dynamic_tool_call_response": (),
    "web_search_end": ("query", "action"),
    "WebSearch": ("query", "action"),
    "Extension": ("query", "action"),
    "image_generation_end": (),
    "ImageGeneration": (),
    "view_image_tool_call": ("path",),
    "ImageView": ("path",),
    "CollabAgentToolCall": ("tool", "prompt"),
    **dict.fromkeys(
        (f"collab_{name}_end" for name in ("agent_spawn", "agent_interaction", "waiting", "close",
                                           "resume")), ("prompt",),
    ),
}  # fmt: skip
"""Kinds of events -> what of them are arguments, when one is the only trace of a call."""
_ALIKE = {
    "FileChange": "apply_patch",
    "patch_apply_end": "apply_patch",
    "web_search_end": "web_search",
    "WebSearch": "web_search",
    "image_generation_end": "image_generation",
    "ImageGeneration": "image_generation",
    "view_image_tool_call": "view_image",
    "ImageView": "view_image",
}
"""Kinds of events -> the call that they are about, when it has another id, or none."""
_HOSTED = frozenset({"web_search", "image_generation"})
"""Calls that are carried out elsewhere, and have no result of their own."""
_LOOK_BACK = 64
"""How many of the last calls an event without the id of a call may belong to."""


@dataclass(slots=True)
class KnownCall:
    """A call of the log, with what answers it.

    Attributes:
        step: where it stands.
        index: its place there.
        draft: the call.
        observation: its result.
        after: the step after which an event about it came.
        reports: what events said: columns of the result, and the rest.
        result: bytes of a result that an event may repeat.
    """

    step: StepDraft
    index: int
    draft: CallDraft
    observation: ObservationDraft | None = None
    after: StepDraft | None = None
    reports: list[tuple[str, Columns, dict[str, Any]]] = field(default_factory=list)
    result: bytes = b""


class Executions:
    """The calls of a log, and the events about their execution."""

    def __init__(self, run: TrajectoryDraft, blocks: BlockReader) -> None:
        self.calls: list[KnownCall] = []
        self._run = run
        self._blocks = blocks
        self._by_id: dict[str, KnownCall] = {}
        self._settled = 0

    def add(self, step: StepDraft, columns: Columns, extra: dict[str, Any]) -> KnownCall:
        """Add a call to a step."""
        call = KnownCall(step, len(step.calls), step.call(columns, extra))
        self.calls.append(call)
        if columns.get("call_id") is not None:
            self._by_id[columns["call_id"]] = call
        return call

    def of(self, call_id: str | None) -> KnownCall | None:
        """The call with an id."""
        return self._by_id.get(call_id) if call_id else None

    def take(self, kind: str, line: SourceObject, item: SourceObject) -> KnownCall | None:
        """Find the call that an event is about; None when there is none, or only one around it."""
        call = self.of(item.word("call_id") or item.word("callId") or item.word("id"))
        call = call or self._same(kind, item)
        if call is None:
            return None
        if call.result and bytes(item.values.get("result", b"")) == call.result:
            item.drop("result")
        call.after = call.after or self._run.steps[-1]
        call.reports.append((kind, outcome(item), {"type": kind, **rest_of(line)}))
        return call

    def end_turn(self) -> None:
        """The user's turn is over: nothing runs inside its calls any more."""
        self._settled = len(self.calls)

    def running(self) -> KnownCall | None:
        """The last call, when it has no result yet, and other tools may run inside it."""
        for call in reversed(self.calls[self._settled :]):
            if call.draft.columns.get("name") not in _HOSTED:
                return call if call.observation is None and not call.reports else None
        return None

    def add_from_event(
        self, kind: str, line: SourceObject, item: SourceObject, step: StepDraft
    ) -> KnownCall:
        """Add a call that only an event records."""
        columns: Columns = {"kind": "function", "name": kind, "call_id": None}
        columns["call_id"] = item.name("call_id", "callId", "id")
        if kind == "Extension" and item.word("kind"):
            columns["name"] = item.text("kind")
        inner = item.child("invocation") or item
        tool = inner.word("tool")
        if kind in ("McpToolCall", "mcp_tool_call_end", "DynamicToolCall") and tool:
            columns["name"] = inner.text("tool")
            columns["kind"] = "mcp" if "server" in inner else "function"
            columns["arguments"], columns["arguments_kind"] = inner.json("arguments"), "object"
        elif arguments := {key: item.values.pop(key) for key in KINDS[kind] if key in item}:
            columns["arguments"], columns["arguments_kind"] = jsontext.text_of(arguments), "object"
        call = self.add(step, columns, {})
        call.after = self._run.steps[-1]
        call.reports.append((kind, outcome(item), {"type": kind, **rest_of(line)}))
        return call

    def add_event(
        self, kind: str, line: SourceObject, item: SourceObject, around: KnownCall
    ) -> None:
        """Keep an event inside a call as a step that no model sees."""
        columns = outcome(item)
        step = self._run.step("environment", "event", visibility="none")
        step.columns["native_id"] = item.name("id", "call_id")
        text, extra = output_of(item)
        if text:
            step.parts.text(self._blocks.builder.text(text))
        if columns.get("duration_ms") is not None:
            step.columns["duration_ms"] = columns["duration_ms"]
        step.extra = {"type": kind, **rest_of(line), **extra}
        if around.draft.columns.get("call_id"):
            merge_extra(step.extra, {"call_id": around.draft.columns["call_id"]})

    def _same(self, kind: str, item: SourceObject) -> KnownCall | None:
        """A call that asks for what the event has carried out."""
        waiting = [call for call in self.calls[-_LOOK_BACK:] if not call.reports]
        names = [call.draft.columns.get("name") or "" for call in waiting]
        if kind in ("CommandExecution", "exec_command_end"):
            able = [it for it, name in zip(waiting, names, strict=True) if name in COMMANDS]
            command = command_of(item, "command")
            same = [it for it in able if command and _asked(it) == command]
            return next(iter(same), None) or next(
                (it for it in able if it.observation is None and not _asked(it)), None
            )
        alike = _ALIKE.get(kind)
        if alike is not None:
            able = [it for it, name in zip(waiting, names, strict=True) if name == alike]
            return next(iter(able), None)
        if kind in ("McpToolCall", "mcp_tool_call_end", "DynamicToolCall"):
            inner = item.peek("invocation") or item
            tool = inner.word("tool")
            able = [it for it, name in zip(waiting, names, strict=True)
                    if tool and (name == tool or name.endswith(f"__{tool}"))]  # fmt: skip
            return next(iter(able), None)
        return None

    def finish(self) -> None:
        """Add what events report to the results, or make the results that only events have."""
        for call in self.calls:
            for number, (_, columns, rest) in enumerate(call.reports):
                status = rest.get("status")
                if isinstance(status, Raw) and jsontext.first_byte(status) == QUOTE:
                    call.draft.columns.setdefault("status", jsontext.decode_value(status))
                if columns.get("duration_ms") is not None:
                    call.draft.columns.setdefault("duration_ms", columns["duration_ms"])
                observation = call.observation
                if observation is None:
                    observation = self._result(call, rest)
                for name, value in columns.items():
                    observation.columns.setdefault(name, value)
                if number or observation.columns.get("structured"):
                    append_extra(observation.extra, "events", rest)
                else:
                    observation.columns["structured"] = jsontext.text_of(rest)

    def _result(self, call: KnownCall, rest: dict[str, Any]) -> ObservationDraft:
        """The result of a call that only an event has."""
        draft = ObservationDraft(answers=call.draft.columns.get("call_id"))
        draft.by_order = draft.answers is None
        (call.after or call.step).observations.append(draft)
        call.observation = draft
        source = SourceObject(None, "$", self._blocks.losses)
        source.values = {key: raw for key, raw in rest.items() if isinstance(raw, Raw)}
        text, extra = output_of(source)
        if text:
            for key in [it for it in rest if isinstance(rest[it], Raw)]:
                if key not in source:
                    del rest[key]
            rest.update(extra)
            draft.parts.text(self._blocks.builder.text(text))
        return draft


def _asked(call: KnownCall) -> str:
    """The command that a call asks for."""
    text = call.draft.columns.get("arguments") or ""
    data = text.encode("utf-8", "surrogatepass")
    if not data or not jsontext.is_valid(data) or jsontext.first_byte(data) != BRACE:
        return ""
    return command_of(SourceObject(data, "$", Losses()), "cmd", "command")
