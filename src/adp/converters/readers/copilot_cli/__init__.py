"""Sessions of Copilot CLI: the lines of ``events.jsonl``, with dotted types.

A call stands in the ``toolRequests`` of a message, its execution in two events of its own. What
a subagent does carries the id of the call that started it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import ClassVar

from msgspec import Raw

from adp.converters.kit.blocks import call_columns
from adp.converters.kit.chat_messages import ChatMessages
from adp.converters.kit.drafts import TrajectoryDraft, merge_extra
from adp.converters.kit.key_tables import take_columns
from adp.converters.kit.session import LogReader, inner, word
from adp.converters.kit.source_object import SourceObject
from adp.converters.kit.times import time_of
from adp.converters.kit.usage import add_totals, set_usage
from adp.converters.readers.copilot_cli.messages import USAGE, CopilotMessages
from adp.converters.reading import BRACKET
from adp_schema import jsontext
from adp_schema.model import Columns
from adp_schema.protocols import Match

HEADER = {"agent_version": "copilotVersion", "source_version": "version",
          "started_at": "startTime"}  # fmt: skip
_EXIT = re.compile(r"<(?:command )?exited with (?:exit )?code (-?\d{1,9})>\s*$")


class CopilotSession(CopilotMessages):
    """One session."""

    agent: ClassVar[str | None] = "copilot-cli"
    id_key: ClassVar[str] = "id"
    handlers: ClassVar[Mapping[str, str]] = {
        "session.start": "header",
        "system.message": "system",
        "user.message": "user",
        "assistant.reasoning": "reasoning",
        "assistant.message": "assistant",
        "assistant.usage": "usage",
        "session.usage_record": "usage_record",
        "tool.execution_start": "execution",
        "tool.execution_complete": "result",
        "session.compaction_complete": "compaction",
        "session.shutdown": "shutdown",
    }
    kept: ClassVar[frozenset[str]] = frozenset({
        "session.resume", "session.model_change", "session.mode_changed", "session.info",
        "session.warning", "session.task_complete", "session.usage_checkpoint",
        "session.usage_info", "session.auto_mode_resolved", "session.compaction_start",
        "session.context_changed", "session.handoff", "session.idle", "session.snapshot_rewind",
        "session.title_changed", "session.plan_changed", "session.workspace_file_changed",
        "session.remote_steerable_changed", "assistant.turn_start", "assistant.turn_end",
        "assistant.intent", "tool.execution_progress", "tool.execution_partial_result",
        "tool.user_requested", "subagent.started", "subagent.completed", "subagent.failed",
        "subagent.selected", "subagent.deselected", "hook.start", "hook.end", "skill.invoked",
        "system.notification", "permission.requested", "permission.completed", "abort",
        "assistant.message_delta", "assistant.reasoning_delta", "assistant.tool_call_delta",
        "assistant.streaming_delta", "result", "assistant.idle", "assistant.message_start",
        "model.call_start", "model.call_finished", "model.call_final_result",
        "session.background_tasks_changed", "session.mcp_servers_loaded", "session.skills_loaded",
        "session.tools_updated", "subagent.configured", "tool.shell_output",
    })  # fmt: skip

    notes: ClassVar[Mapping[str, Mapping[str, str]]] = {
        "session.error": {"error_type": "data.errorType", "error_message": "data.message"},
        "session.task_complete": {"final_answer": "data.summary"},
    }
    edits: ClassVar[Mapping[str, tuple[str, ...]]] = {"session.truncation": ("truncate",)}

    def set_up(self) -> None:
        """Make what tells whose event it is: the main trajectory, and those of subagents."""
        super().set_up()
        self.main = self.run
        self.subagents: dict[str, TrajectoryDraft] = {}
        self.previous: str | None = None

    def line(self, source: SourceObject) -> None:
        """Take one event, into the trajectory of the agent that it is about."""
        if source.first("chatMessages") == BRACKET:
            self._document(source)
            return
        data = source.child("data")
        source.drop_text("parentId", self.previous)
        self.previous = source.word("id") or None
        self._enter(data.word("parentToolCallId") or source.word("agentId"))
        kind = source.word("type")
        if kind == "session.model_change":
            self.model = data.word("newModel") or self.model
        elif kind == "session.task_complete":
            self.run.columns["terminated"] = True
        elif kind == "subagent.started":
            self._start_subagent(data)
        super().line(source)
        self.run = self.main

    def _enter(self, owner: str) -> None:
        """Go to the trajectory of a subagent, which is made with its first event."""
        if not owner:
            return
        if owner not in self.subagents:
            columns = {"agent_name": self.agent, "source_id": owner,
                       "session_id": self.main.columns.get("session_id")}  # fmt: skip
            self.subagents[owner] = self.main.branch(0, "subagent", **columns)
        self.run = self.subagents[owner]

    def _start_subagent(self, data: SourceObject) -> None:
        name = data.word("toolCallId")
        if (call := self.calls.of(self.run, name)) is None:
            self.run.link("subagent", target_id=name or None)
        else:
            call.link_subagent(target_id=name)

    def _document(self, source: SourceObject) -> None:
        """A session of the first versions: the messages of its requests, and what was shown."""
        columns = self.run.columns
        columns["source_id"] = columns["session_id"] = source.name("sessionId")
        columns["agent_model"] = source.word("selectedModel") or None
        take_columns(source, columns, {"started_at": "startTime"})
        ChatMessages(self.blocks).messages(source.objects("chatMessages"))
        self.run.extra.update(source.rest())

    def header(self, source: SourceObject) -> None:
        """The first event, or that of another session joined to it."""
        data, columns = source.child("data"), self.run.columns
        if not self.is_first_header(source, "sessionId", inside=data):
            return
        take_columns(data, columns, HEADER)
        self.model = data.word("selectedModel") or None
        columns["agent_model"] = self.model
        self.run.extra.update(source.rest())

    def execution(self, source: SourceObject) -> None:
        """A call is carried out; one that no message has is a step of its own."""
        data = source.child("data")
        call = self.calls.of(self.run, data.word("toolCallId"))
        if call is None:
            step = self.begin_step(source, "agent")
            step.columns["llm_call_count"] = 0
            columns = call_columns(data.text("toolName"), data.name("toolCallId"),
                                   data.take("arguments"))  # fmt: skip
            call = self.calls.add(self.run, step, step.call(columns))
        else:
            data.drop("toolCallId")
            call.drop_repeated(data, "toolName", "arguments")
        call.started = time_of(source.values.get("timestamp"))[0]
        merge_extra(call.draft.extra, {"execution": source.rest()})

    def result(self, source: SourceObject) -> None:
        """A call is done, or has failed."""
        data = source.child("data")
        draft = self.begin_result(source, data.name("toolCallId"))
        if call := self.calls.of(self.run, draft.answers):
            draft.columns["name"] = call.draft.columns["name"]
            call.set_duration(draft.columns.get("timestamp"))
        success = data.flag("success")
        if success is not None:
            draft.columns["is_error"] = not success
        result, error = data.child("result"), data.child("error")
        for key in ("content", "contents"):
            if result.first(key):
                self.blocks.result(result.take(key), draft, result.path)
                break
        else:
            if text := error.text("message"):
                draft.parts.text(self.builder.text(text))
        draft.columns["error_type"] = error.text("code")
        ending = _EXIT.search(draft.parts.columns().get("text", ""))
        if ending is not None:
            draft.columns["exit_code"] = int(ending[1])
        draft.extra = source.rest()

    def compaction(self, source: SourceObject) -> None:
        """A summary replaced what came before it, unless it failed."""
        data = source.child("data")
        if data.first("success") == ord("f"):
            self.keep(source)
            return
        step = self.context_edit(source, "replace")
        step.columns["edit_summary"] = data.text("summaryContent", "summary")
        step.extra.update(source.rest())

    def shutdown(self, source: SourceObject) -> None:
        """The end, with the metrics of all model calls; a resumed session has another one."""
        columns = self.run.columns
        data = source.child("data")
        columns["stop_reason"] = data.word("shutdownType") or None
        metrics, totals = data.peek("modelMetrics"), Counter[str]()
        for model in metrics.values:
            numbers: Columns = {}
            set_usage(metrics.peek(model).peek("usage"), numbers, USAGE)
            totals.update(numbers)
        add_totals(totals, columns)
        earlier = columns.get("final_metrics")
        columns["final_metrics"] = jsontext.text_of(source.rest())
        if earlier is not None:
            merge_extra(self.run.extra, {"session.shutdown": jsontext.raw(earlier)})


class CopilotReader(LogReader):
    """The format ``copilot_cli``."""

    name = "copilot_cli"
    title = "Sessions of Copilot CLI"
    recognised = "events with a dotted type, data, an id and a parentId, such as session.start"
    versions = "reads events of version 1, seen up to 1.0.102, and documents of 0.0.3xx"
    log = CopilotSession

    def sniff(self, record: Mapping[str, Raw]) -> Match:
        """An event of a session, with its data."""
        kind = word(record, "type")
        if "chatMessages" in record and word(record, "sessionId"):
            return Match.STAMP
        if kind == "session.start" and "sessionId" in inner(record, "data"):
            return Match.STAMP
        known = CopilotSession.knows(kind) and {"data", "id", "timestamp"} <= set(record)
        if known:
            return Match.STAMP
        return Match.SHAPE if kind in _CHAT and inner(record, "data") else Match.NO


_CHAT = frozenset(
    {"user.message", "assistant.message", "tool.execution_start", "tool.execution_complete"}
)
"""Events that are of this format also where a program has passed on nothing but their data."""


CONVERTER = CopilotReader()
