"""Recordings of Kimi CLI by themselves: ``wire.jsonl``, what happened in a session.

Beside ``context.jsonl``, which has the messages, the file belongs to that one (`kimi_cli`). What a
subagent does stands in events of its parent, and is a branch. Source: protocol 1.1 to 1.10.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from msgspec import Raw

from adp.converters.kit.chat import add_call
from adp.converters.kit.drafts import StepDraft, TrajectoryDraft, append_extra, merge_extra
from adp.converters.kit.session import SHARED, LogReader, SessionLog, inner, word
from adp.converters.kit.source_object import SourceObject
from adp.converters.kit.usage import take_usage
from adp.converters.readers.kimi_cli.wire import USAGE
from adp.converters.reading import BRACE
from adp_schema import jsontext
from adp_schema.protocols import Match

_OF_SUBAGENTS = ("parent_tool_call_id", "task_tool_call_id", "agent_id", "subagent_type")


class KimiWireSession(SessionLog):
    """One session."""

    agent: ClassVar[str | None] = "kimi-cli"
    handlers: ClassVar[Mapping[str, str]] = {
        "metadata": "header",
        "TurnBegin": "prompt",
        "SteerInput": "prompt",
        "StepBegin": "begin",
        "ContentPart": "part",
        "ToolCall": "call",
        "ToolResult": "result",
        "StatusUpdate": "status",
        "SubagentEvent": "subagent",
    }
    kept: ClassVar[frozenset[str]] = frozenset(
        {"TurnEnd", "StepInterrupted", "StepRetry", "CompactionBegin", "CompactionEnd",
         "ApprovalRequest", "ApprovalResponse", "ApprovalRequestResolved", "ToolCallRequest",
         "QuestionRequest", "Notification", "HookTriggered", "HookResolved", "HookRequest",
         "MCPLoadingBegin", "MCPLoadingEnd", "PlanDisplay", "BtwBegin", "BtwEnd"}
    )  # fmt: skip

    def set_up(self) -> None:
        """The folder is the session; nothing has begun."""
        folders = self.record.source_file.split("/")[:-1]
        if folders:
            self.run.columns["source_id"] = self.run.columns["session_id"] = folders[-1]
        self._turns: dict[int, StepDraft] = {}
        self._subagents: dict[str, TrajectoryDraft] = {}

    def kind_of(self, source: SourceObject) -> str:
        """The type of the message; that of the line in the header."""
        return source.child("message").word("type") or super().kind_of(source)

    def header(self, source: SourceObject) -> None:
        """The version of the protocol."""
        columns = self.run.columns
        if columns.get("source_version") is None:
            columns["source_version"] = source.text("protocol_version")
        source.drop_text("protocol_version", columns["source_version"])
        merge_extra(self.run.extra, source.rest())

    def prompt(self, source: SourceObject) -> None:
        """What the user said."""
        step, payload = self.begin_step(source, "user"), self._payload(source)
        self.blocks.content(payload.take("user_input"), step, f"{payload.path}.user_input")
        self.end_step(source, step)
        self._turns.pop(id(self.run), None)

    def begin(self, source: SourceObject) -> None:
        """A turn of the model begins."""
        step = self._turns[id(self.run)] = self.begin_step(source, "agent")
        self._payload(source)
        self.end_step(source, step)

    def _payload(self, source: SourceObject) -> SourceObject:
        """What the message is about; its type decides what comes of the line, and is dropped."""
        message = source.child("message")
        message.drop("type")
        return message.child("payload")

    def _turn(self, source: SourceObject) -> StepDraft:
        """The turn that is under way; a log that was cut has one without its beginning."""
        step = self._turns.get(id(self.run))
        if step is None:
            step = self._turns[id(self.run)] = self.begin_step(source.copy(), "agent")
        return step

    def _add_event(self, source: SourceObject, step: StepDraft) -> None:
        append_extra(step.extra, "events", source.rest())

    def part(self, source: SourceObject) -> None:
        """A part of what the model said or thought."""
        step = self._turn(source)
        part = source.child("message").take_child("payload")
        if part:
            self.blocks.block(part, step)
        self._add_event(source, step)

    def call(self, source: SourceObject) -> None:
        """A call."""
        step = self._turn(source)
        add_call(source.child("message").take_child("payload"), step)
        self._add_event(source, step)

    def result(self, source: SourceObject) -> None:
        """What came back; a message to the model stands for an output that is empty."""
        payload = self._payload(source)
        value = payload.child("return_value")
        draft = self.begin_result(source, payload.name("tool_call_id"))
        draft.columns["is_error"] = value.flag("is_error")
        key = "output" if value.word("output") or value.first("output") != ord('"') else "message"
        self.blocks.result(value.take(key), draft, f"{value.path}.{key}")
        draft.extra = source.rest()

    def status(self, source: SourceObject) -> None:
        """Tokens of a turn; a later one has the final numbers."""
        step = self._turns.get(id(self.run))
        payload = source.child("message").child("payload")
        if step is None or payload.first("token_usage") != BRACE:
            self.keep(source)
            return
        if "usage" not in step.columns:
            take_usage(payload, "token_usage", step.columns, USAGE)
            step.columns["response_id"] = payload.text("message_id")
        self._add_event(source, step)

    def subagent(self, source: SourceObject) -> None:
        """An event of a subagent, whose run leaves the parent at the call that started it."""
        payload = source.child("message").child("payload")
        if not payload.peek("event").word("type"):
            self.keep(source)
            return
        parent, raw = self.run, payload.values.pop("event")
        call_id = payload.word("parent_tool_call_id") or payload.word("task_tool_call_id")
        name = payload.word("agent_id") or call_id
        if name not in self._subagents:
            self._subagents[name] = self._branch(name, call_id)
        self.run = self._subagents[name]
        self.run.constant(payload, *_OF_SUBAGENTS)
        self._payload(source)
        inside = SourceObject(None, source.path, self.losses)
        inside.values = {**source.values, "message": raw}
        if rest := source.child("message").rest():
            merge_extra(inside.values, {"around": jsontext.raw(jsontext.text_of(rest))})
        self.line_of_kind(inside, self.kind_of(inside))
        self.run = parent

    def _branch(self, name: str, call_id: str) -> TrajectoryDraft:
        columns = self.run.columns
        branch = self.run.branch(
            len(self.run.steps), "subagent", **{key: columns.get(key) for key in SHARED}
        )
        branch.columns["source_id"] = f"{columns.get('source_id') or 'session'}/{name}"
        for step in reversed(self.run.steps):
            ids = [call.columns.get("call_id") for call in step.calls]
            if call_id and call_id in ids:
                target = branch.columns["source_id"]
                self.run.link("subagent", step, call=ids.index(call_id), target_id=target)
                break
        return branch


class KimiWireReader(LogReader):
    """The format ``kimi_wire``."""

    name = "kimi_wire"
    title = "Recordings of Kimi CLI by themselves (wire.jsonl)"
    recognised = "lines of a message with a type such as TurnBegin and a payload"
    versions = "reads protocol 1.1 to 1.10, where no context.jsonl lies beside it"
    log = KimiWireSession

    def sniff(self, record: Mapping[str, Raw]) -> Match:
        """A line of a known event."""
        message = inner(record, "message")
        known = KimiWireSession.knows(word(message, "type")) and "payload" in message
        return Match.STAMP if known and "timestamp" in record else Match.NO


CONVERTER = KimiWireReader()
