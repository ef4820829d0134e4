"""Workflows of Claude Code: the journal of a run, and the record of a run.

``<sid>/subagents/workflows/<run>/journal.jsonl`` has the start and the result of each agent;
``<sid>/workflows/<run>.json`` is the run. Both become events with links to the agents.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any, ClassVar

from msgspec import Raw

from adp.converters.kit.drafts import StepDraft
from adp.converters.kit.session import LogReader, SessionLog, word
from adp.converters.kit.source_object import SourceObject
from adp.converters.kit.times import take_start, take_time
from adp.converters.reading import BRACKET
from adp_schema.protocols import Match


class WorkflowLog(SessionLog):
    """A journal, or the record of a run."""

    agent: ClassVar[str | None] = "claude-code"
    handlers: ClassVar[Mapping[str, str]] = {"started": "agent_line", "result": "agent_line"}

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._linked: set[str] = set()
        folders = PurePosixPath(self.record.source_file).parts[:-1]
        inside = "subagents" in folders[1:]
        mark = "subagents" if inside else "workflows"
        self.session = folders[folders.index(mark) - 1] if mark in folders[1:] else ""
        self._agents = "" if inside else "../subagents/workflows/"
        self.run.columns["session_id"] = self.session or None
        if inside:
            self.run.columns["source_id"] = self._id(f"workflow-{folders[-1]}/journal")

    def _id(self, name: str) -> str:
        return f"{self.session}/{name}" if self.session else name

    def line(self, source: SourceObject) -> None:
        """A line of a journal, or the whole record of a run."""
        if "runId" in source and "key" not in source:
            self._run(source)
        else:
            super().line(source)

    def agent_line(self, source: SourceObject) -> None:
        """An agent began, or has a result."""
        step = self.run.step("environment", "event", visibility="none")
        take_time(source, step.columns, "timestamp")
        step.columns["text"] = source.text("result")
        self._link(source, step, "")
        step.extra.update(source.rest())

    def _run(self, source: SourceObject) -> None:
        """The record of a run: its columns, and an event for each entry of its progress."""
        columns, run_id = self.run.columns, source.name("runId") or ""
        columns["source_id"] = self._id(f"workflow-{run_id}")
        columns["agent_model"] = source.text("defaultModel")
        columns["stop_reason"] = source.text("status")
        columns["error_message"] = source.text("error")
        columns["final_answer"] = source.text("result")
        take_start(source, columns, "timestamp", "startTime")
        for item in source.objects("workflowProgress"):
            step = self.run.step("environment", "event", visibility="none")
            take_time(item, step.columns, "startedAt")
            step.columns["text"] = item.text("label", "title")
            step.columns["model"] = item.text("model")
            step.columns["duration_ms"] = item.number("durationMs")
            self._link(item, step, f"{self._agents}{run_id}/")
            step.extra.update(item.rest())
        self.run.extra.update(source.rest())

    def _link(self, source: SourceObject, step: StepDraft, folder: str) -> None:
        """Link an agent, once; its id stays in the step."""
        name = source.word("agentId")
        if name and name not in self._linked:
            self._linked.add(name)
            columns = {"target_path": f"{folder}agent-{name}.jsonl"}
            if self.session:
                columns |= {
                    "target_id": self._id(f"agent-{name}"),
                    "target_session_id": self.session,
                }
            self.run.link("subagent", step, **columns)


class WorkflowReader(LogReader):
    """The format ``claude_workflow``."""

    name = "claude_workflow"
    title = "Workflows of Claude Code: journals and records of runs"
    recognised = "a record with a runId and workflowProgress, or a line with a key and an agentId"
    versions = "reads version 2.1"
    log = WorkflowLog

    def sniff(self, record: Mapping[str, Raw]) -> Match:
        """The record of a run, or a line of a journal, which has no id of a session."""
        if word(record, "runId") and {"workflowName", "workflowProgress"} & record.keys():
            listed = record.get("workflowProgress", Raw(b"[]"))
            return Match.STAMP if bytes(listed)[:1] == _LIST else Match.NO
        journal = word(record, "type") in ("started", "result") and word(record, "key")
        named = journal and word(record, "agentId") and "sessionId" not in record
        return Match.SHAPE if named else Match.NO


_LIST = bytes([BRACKET])
CONVERTER = WorkflowReader()
