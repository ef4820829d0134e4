"""Sessions of Copilot CLI: the lines of ``events.jsonl``, with dotted types.

A call stands in the ``toolRequests`` of a message, its execution in two events of its own. What
a subagent does carries the id of the call that started it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import ClassVar

from msgspec import Raw

from adp.converters.kit.blocks import call_columns
from adp.converters.kit.drafts import CallDraft, StepDraft, TrajectoryDraft, merge_extra
from adp.converters.kit.session import LogReader, SessionLog, inner, word
from adp.converters.kit.source_object import SourceObject
from adp.converters.kit.times import take_start, take_time, time_of
from adp.converters.kit.usage import UsageKeys, set_usage
from adp_schema import jsontext
from adp_schema.builder import RowBuilder
from adp_schema.losses import Losses
from adp_schema.model import Columns
from adp_schema.protocols import Match, RawRecord

USAGE = UsageKeys(
    prompt=("inputTokens",),
    written=("outputTokens",),
    cached=("cacheReadTokens",),
    cache_write=("cacheWriteTokens",),
    reasoning=("reasoningTokens",),
)
_EXIT = re.compile(r"<(?:command )?exited with (?:exit )?code (-?\d{1,9})>\s*$")


class CopilotSession(SessionLog):
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
        "tool.execution_start": "execution",
        "tool.execution_complete": "result",
        "session.compaction_complete": "compaction",
        "session.truncation": "truncation",
        "session.shutdown": "shutdown",
    }
    kept: ClassVar[frozenset[str]] = frozenset({
        "session.resume", "session.model_change", "session.mode_changed", "session.info",
        "session.warning", "session.error", "session.task_complete", "session.usage_checkpoint",
        "session.usage_info", "session.auto_mode_resolved", "session.compaction_start",
        "session.context_changed", "session.handoff", "session.idle", "session.snapshot_rewind",
        "session.title_changed", "session.plan_changed", "session.workspace_file_changed",
        "session.remote_steerable_changed", "assistant.turn_start", "assistant.turn_end",
        "assistant.intent", "tool.execution_progress", "tool.execution_partial_result",
        "tool.user_requested", "subagent.started", "subagent.completed", "subagent.failed",
        "subagent.selected", "subagent.deselected", "hook.start", "hook.end", "skill.invoked",
        "system.notification", "permission.requested", "permission.completed", "abort",
    })  # fmt: skip

    def __init__(self, record: RawRecord, builder: RowBuilder, losses: Losses) -> None:
        super().__init__(record, builder, losses)
        self.main = self.run
        self.subagents: dict[str, TrajectoryDraft] = {}
        self.calls: dict[tuple[int, str], tuple[StepDraft, CallDraft]] = {}
        self.started: dict[int, datetime | None] = {}
        self.previous: str | None = None
        self.model: str | None = None
        self.thought: StepDraft | None = None
        self.message: tuple[int, str] | None = None

    def line(self, source: SourceObject) -> None:
        """Take one event, into the trajectory of the agent that it is about."""
        data = source.child("data")
        if source.word("parentId") == self.previous:
            source.drop("parentId")
        self.previous = source.word("id") or None
        self._enter(data.word("parentToolCallId") or source.word("agentId"))
        kind = source.word("type")
        if kind in ("session.model_change", "session.error", "session.task_complete"):
            self._note(kind, data)
        if kind == "subagent.started":
            self._start_subagent(data)
        super().line(source)
        self.run = self.blocks.run = self.main

    def _enter(self, owner: str) -> None:
        """Go to the trajectory of a subagent, which is made with its first event."""
        if not owner:
            return
        if owner not in self.subagents:
            draft = TrajectoryDraft(keeps=0, kind="subagent")
            draft.columns["agent_name"] = self.agent
            draft.columns["session_id"] = self.main.columns.get("session_id")
            draft.columns["source_id"] = owner
            self.subagents[owner] = draft
            self.main.branches.append(draft)
        self.run = self.blocks.run = self.subagents[owner]

    def _start_subagent(self, data: SourceObject) -> None:
        name = data.word("toolCallId")
        if (known := self.calls.get((id(self.run), name))) is None:
            self.run.link("subagent", target_id=name or None)
            return
        step, call = known
        place = next(number for number, other in enumerate(step.calls) if other is call)
        self.run.link("subagent", step, call=place, target_id=name)

    def _note(self, kind: str, data: SourceObject) -> None:
        """What an event says about the run; the event itself is kept."""
        columns = self.run.columns
        if kind == "session.model_change":
            self.model = data.word("newModel") or self.model
        elif kind == "session.error":
            columns["error_type"] = data.word("errorType") or None
            columns["error_message"] = data.word("message") or None
        else:
            columns["final_answer"] = data.word("summary") or None
            columns["terminated"] = True

    def header(self, source: SourceObject) -> None:
        """The first event, or that of another session joined to it."""
        if "source_id" in self.run.columns:
            self.other(source)
            return
        data, columns = source.child("data"), self.run.columns
        columns["source_id"] = columns["session_id"] = data.name("sessionId")
        columns["agent_version"] = data.text("copilotVersion")
        if data.integer_at("version") is not None:
            columns["source_version"] = data.name("version")
        self.model = data.word("selectedModel") or None
        columns["agent_model"] = self.model
        take_start(data, columns, "startTime")
        self.run.extra.update(source.rest())

    # ---- messages --------------------------------------------------------------------------

    def _step(self, source: SourceObject, who: str, kind: str = "message") -> StepDraft:
        step = self.run.step(who, kind, native_id=source.name("id"))
        take_time(source, step.columns, "timestamp")
        return step

    def system(self, source: SourceObject) -> None:
        """The system prompt; it is written again when the session goes on."""
        data = source.child("data")
        if data.word("role") == "system":
            data.drop("role")
        text = data.text("content")
        earlier = {it.columns.get("text") for it in self.run.steps
                   if it.columns["source"] == "system"}  # fmt: skip
        step = self._step(source, "system")
        step.columns["text"] = None if text is None else self.builder.text(text)
        if text is not None and step.columns["text"] in earlier:
            step.columns["is_copied_context"] = True
        step.extra.update(source.rest())

    def user(self, source: SourceObject) -> None:
        """What the user wrote; the text is what the model saw of it."""
        data = source.child("data")
        step = self._step(source, "user")
        seen = data.text("transformedContent")
        if seen is None or data.word("content") == seen:
            text = data.text("content")
            seen = text if seen is None else seen
        if seen is not None:
            step.parts.text(self.builder.text(seen))
        step.extra.update(source.rest())

    def reasoning(self, source: SourceObject) -> None:
        """Reasoning that comes before the message that it belongs to."""
        step = self._step(source, "agent", "llm_turn")
        text = source.child("data").text("content")
        if text is not None:
            step.parts.reasoning(self.builder.text(text))
        step.extra["assistant.reasoning"] = source.rest()
        self.thought = step

    def assistant(self, source: SourceObject) -> None:
        """A message of the model, whole or a piece of it."""
        data = source.child("data")
        last = self.run.steps[-1] if self.run.steps else None
        name = data.word("messageId")
        is_piece = "chunkIndex" in data and (id(self.run), name) == self.message
        if last is not None and (is_piece or last is self.thought):
            step = last
        else:
            step = self._step(source, "agent", "llm_turn")
        self.thought, self.message = None, (id(self.run), name)
        self._fill(source, data, step)

    def _fill(self, source: SourceObject, data: SourceObject, step: StepDraft) -> None:
        columns = step.columns
        model = data.text("model")
        columns["model"] = model or columns.get("model") or self.model
        if columns["model"] and self.run.columns.get("agent_model") is None:
            self.run.columns["agent_model"] = columns["model"]
        thought, text = data.text("reasoningText"), data.text("content")
        if thought is not None and thought != step.parts.columns().get("reasoning"):
            step.parts.reasoning(self.builder.text(thought))
        if text:
            step.parts.text(self.builder.text(text))
        for request in data.objects("toolRequests"):
            self._request(request, step)
        written = data.integer_at("outputTokens")
        if written is not None and columns.get("tokens_out") is None:
            columns["tokens_out"] = data.integer("outputTokens")
        merge_extra(step.extra, source.rest())

    def _request(self, request: SourceObject, step: StepDraft) -> None:
        name, call_id = request.text("name"), request.name("toolCallId")
        if request.word("type") == "function":
            request.drop("type")
        kind = "mcp" if request.word("mcpServerName") else "function"
        call = step.call(call_columns(name, call_id, request.take("arguments"), kind))
        call.extra = request.rest()
        if call_id is not None:
            self.calls[id(self.run), call_id] = step, call

    def usage(self, source: SourceObject) -> None:
        """Tokens of the model call before it."""
        turns = [step for step in self.run.steps if step.columns["kind"] == "llm_turn"]
        if not turns or "usage" in turns[-1].columns:
            self.other(source)
            return
        data = source.child("data")
        columns: Columns = {}
        set_usage(data, columns, USAGE)
        columns.update({k: v for k, v in turns[-1].columns.items() if v is not None})
        turns[-1].columns = columns
        turns[-1].columns["usage"] = jsontext.text_of(source.rest())

    # ---- calls -----------------------------------------------------------------------------

    def execution(self, source: SourceObject) -> None:
        """A call is carried out; one that no message has is a step of its own."""
        data = source.child("data")
        name = data.word("toolCallId")
        known = self.calls.get((id(self.run), name))
        if known is None:
            step = self._step(source, "agent", "llm_turn")
            step.columns["llm_call_count"] = 0
            columns = call_columns(data.text("toolName"), data.name("toolCallId"),
                                   data.take("arguments"))  # fmt: skip
            call = step.call(columns)
            self.calls[id(self.run), name] = step, call
        else:
            call = known[1]
            data.drop("toolCallId")
            _drop_repeated(data, call.columns)
        self.started[id(call)] = time_of(source.values.get("timestamp"))[0]
        merge_extra(call.extra, {"execution": source.rest()})

    def result(self, source: SourceObject) -> None:
        """A call is done, or has failed."""
        data = source.child("data")
        draft = self.run.observe({}, answers=data.name("toolCallId"), by_order=True)
        known = self.calls.get((id(self.run), draft.answers or ""))
        take_time(source, draft.columns, "timestamp")
        if known is not None:
            draft.columns["name"] = known[1].columns["name"]
            start, end = self.started.get(id(known[1])), draft.columns.get("timestamp")
            if start is not None and end is not None:
                known[1].columns["duration_ms"] = (end - start).total_seconds() * 1000
        success = data.flag("success")
        if success is not None:
            draft.columns["is_error"] = not success
        result, error = data.child("result"), data.child("error")
        if result.first("content") or result.first("contents"):
            key = "content" if result.first("content") else "contents"
            self.blocks.result(result.take(key), draft, result.path)
        elif error.word("message"):
            draft.parts.text(self.builder.text(error.text("message") or ""))
        draft.columns["error_type"] = error.text("code")
        ending = _EXIT.search(draft.parts.columns().get("text", ""))
        if ending is not None:
            draft.columns["exit_code"] = int(ending[1])
        draft.extra = source.rest()

    # ---- the context, and the end ----------------------------------------------------------

    def compaction(self, source: SourceObject) -> None:
        """A summary replaced what came before it, unless it failed."""
        data = source.child("data")
        if data.first("success") == ord("f"):
            self.other(source)
            return
        step = self._step(source, "system", "context_edit")
        step.columns["edit_boundary"] = "replace"
        step.columns["edit_summary"] = data.text("summaryContent", "summary")
        step.extra.update(source.rest())

    def truncation(self, source: SourceObject) -> None:
        """Older messages were cut off."""
        step = self._step(source, "system", "context_edit")
        step.columns["edit_boundary"] = "truncate"
        step.extra.update(source.rest())

    def shutdown(self, source: SourceObject) -> None:
        """The end, with the metrics of all model calls; a resumed session has another one."""
        columns = self.run.columns
        data = source.child("data")
        columns["stop_reason"] = data.word("shutdownType") or None
        metrics = SourceObject(data.values.get("modelMetrics"), data.path, self.losses)
        totals = [_model_usage(metrics, model) for model in metrics.values]
        for name in ("tokens_in", "tokens_out", "tokens_cached"):
            values = [total[name] for total in totals if name in total]
            columns[f"total_{name}"] = sum(values) if values else None
        earlier = columns.get("final_metrics")
        columns["final_metrics"] = jsontext.text_of(source.rest())
        if earlier is not None:
            merge_extra(self.run.extra, {"session.shutdown": jsontext.raw(earlier)})


def _model_usage(metrics: SourceObject, model: str) -> Columns:
    columns: Columns = {}
    record = SourceObject(metrics.values[model], metrics.path, metrics.losses)
    set_usage(
        SourceObject(record.values.get("usage"), metrics.path, metrics.losses), columns, USAGE
    )
    return columns


def _drop_repeated(data: SourceObject, columns: Columns) -> None:
    """Take from an event what the request of its call says, too."""
    if data.word("toolName") == columns.get("name"):
        data.drop("toolName")
    raw = data.values.get("arguments")
    if raw is not None and jsontext.one_line(raw) == columns.get("arguments"):
        data.drop("arguments")


class CopilotReader(LogReader):
    """The format ``copilot_cli``."""

    name = "copilot_cli"
    title = "Sessions of Copilot CLI"
    recognised = "events with a dotted type, data, an id and a parentId, such as session.start"
    versions = "reads the events of version 1, seen up to 1.0.77"
    log = CopilotSession

    def sniff(self, record: Mapping[str, Raw]) -> Match:
        """An event of a session, with its data."""
        kind = word(record, "type")
        if kind == "session.start" and "sessionId" in inner(record, "data"):
            return Match.STAMP
        known = kind in CopilotSession.handlers or kind in CopilotSession.kept
        return Match.STAMP if known and {"data", "id", "timestamp"} <= set(record) else Match.NO


CONVERTER = CopilotReader()
