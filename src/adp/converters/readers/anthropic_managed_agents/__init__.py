"""Events of sessions of Anthropic's managed agents.

The lines are the events themselves, or pairs ``[method of the client, payload]`` that an SDK
recorded: what a client sends comes back as an event of the stream, with an id, and counts once.
Sources: the reference of the sessions API; tapes of an SDK.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from msgspec import Raw

from adp.converters.kit.blocks import call_columns
from adp.converters.kit.drafts import StepDraft, append_extra
from adp.converters.kit.lines import json_lines
from adp.converters.kit.session import LogReader, SessionLog, word
from adp.converters.kit.source_object import SourceObject, one_line
from adp.converters.kit.times import take_start, take_time
from adp.converters.kit.usage import ANTHROPIC, take_usage
from adp.converters.readers.anthropic_managed_agents.tape import PAIR, tape_events
from adp.converters.reading import BRACKET, NULL
from adp_schema import jsontext
from adp_schema.errors import RecordError
from adp_schema.model import Columns
from adp_schema.protocols import LIST_LINE, Match

_ANSWERS = ("tool_use_id", "mcp_tool_use_id", "custom_tool_use_id")


class ManagedSession(SessionLog):
    """One session."""

    agent: ClassVar[str | None] = "managed agent"
    id_key: ClassVar[str] = "id"
    time_keys: ClassVar[tuple[str, ...]] = ("processed_at", "created_at")
    handlers: ClassVar[Mapping[str, str]] = {
        "session": "header",
        "user.message": "user",
        "system.message": "user",
        "agent.message": "agent_message",
        "agent.thinking": "thinking",
        "agent.tool_use": "call",
        "agent.mcp_tool_use": "call",
        "agent.custom_tool_use": "call",
        "agent.tool_result": "result",
        "agent.mcp_tool_result": "result",
        "user.custom_tool_result": "result",
        "user.tool_result": "result",
        "user.tool_confirmation": "confirmation",
        "agent.thread_context_compacted": "compaction",
        "span.model_request_start": "request_start",
        "span.model_request_end": "request_end",
        "session.status_terminated": "terminated",
    }
    notes: ClassVar[Mapping[str, Mapping[str, str]]] = {
        "session.error": {"error_type": "error.type", "error_message": "error.message"},
        "session.status_idle": {"stop_reason": "stop_reason.type"},
    }
    kept: ClassVar[frozenset[str]] = frozenset(
        {"user.interrupt", "user.define_outcome", "agent.thread_message_sent",
         "agent.thread_message_received", "session.status_running", "session.status_rescheduled",
         "session.status_rescheduling", "session.thread_status_running", "session.deleted",
         "session.thread_status_idle", "session.thread_created", "session.thread_idle",
         "session.thread_status_terminated", "session.outcome_evaluated", "session.updated",
         "span.outcome_evaluation_start", "span.outcome_evaluation_end",
         "span.outcome_evaluation_ongoing"}
    )  # fmt: skip

    def read_lines(self) -> None:
        """Take events, or the pairs of a tape."""
        self.turn: StepDraft | None = None
        if jsontext.first_byte(self.record.data) != BRACKET:
            raise RecordError("expected lines")
        lines, broken = json_lines(self.record, self.builder, self.losses)
        events, sessions = tape_events(lines, self.losses)
        if not any("type" in event for event in events):
            raise RecordError("no line is an event")
        if sessions:
            self.run.columns["session_id"] = sessions[0]
            self.run.extra.update({"sessions": sessions} if len(sessions) > 1 else {})
        for event in events:
            self.line(event)
        for text in broken:
            self.entry(SourceObject(None, "$", self.losses), text)

    def header(self, source: SourceObject) -> None:
        """The session: its agent with model, system prompt and tools."""
        columns, agent = self.run.columns, source.child("agent")
        if columns.get("source_id") is not None:
            self.keep(source)
            return
        columns["source_id"] = source.name("id")
        columns.setdefault("session_id", columns["source_id"])
        columns["agent_name"] = agent.text("name") or columns["agent_name"]
        columns["agent_model"] = agent.child("model").text("id") or agent.text("model")
        columns["agent_version"] = agent.name("version")
        take_start(source, columns, "created_at")
        if agent.first("tools") == BRACKET:
            columns["tools"], columns["tools_origin"] = agent.json("tools"), "recorded"
        system = agent.text("system")
        if system is not None:
            self.run.step("system").parts.text(self.builder.text(system))
        self.run.extra.update(source.rest())

    def user(self, source: SourceObject) -> None:
        """A message of the user, or of the system."""
        self.turn = None
        step = self.begin_step(source, self.kind.partition(".")[0])
        self.blocks.content(source.take("content"), step, f"{source.path}.content")
        step.extra.update(source.rest())

    def _agent_turn(self, source: SourceObject) -> StepDraft:
        """The turn of the request that runs: each of its events has an id of its own."""
        if self.turn is None:
            self.turn = self.run.step("agent", "llm_turn")
            take_time(source, self.turn.columns, *self.time_keys)
        return self.turn

    def _add_event(self, source: SourceObject, turn: StepDraft) -> None:
        append_extra(turn.extra, "events", {"type": self.kind, **source.rest_lines()})

    def agent_message(self, source: SourceObject) -> None:
        """Text of the agent."""
        turn = self._agent_turn(source)
        self.blocks.content(source.take("content"), turn, f"{source.path}.content")
        if turn.columns.get("native_id") is None:
            turn.columns["native_id"] = source.name("id")
        if set(source.values) - {"processed_at"} or turn.columns.get("timestamp") is None:
            self._add_event(source, turn)
        elif "processed_at" in source:
            append_extra(turn.extra, "processed_at", one_line(source.take("processed_at")))

    def thinking(self, source: SourceObject) -> None:
        """That the agent thought; seldom what."""
        turn = self._agent_turn(source)
        text = source.text("thinking", "text")
        if text is not None:
            turn.parts.reasoning(self.builder.text(text))
        self._add_event(source, turn)

    def call(self, source: SourceObject) -> None:
        """A call of a tool of the platform, of an MCP server, or of the client."""
        turn = self._agent_turn(source)
        arguments = source.take("input") if source.first("input") not in (0, NULL) else None
        kind = "mcp" if "mcp_server_name" in source else "function"
        name = source.text("name")
        columns = call_columns(name, source.name("id"), arguments, kind)
        columns["status"] = source.text("evaluated_permission")
        turn.call(columns, source.rest())

    def result(self, source: SourceObject) -> None:
        """The result of a call; it ends the turn."""
        self.turn = None
        draft = self.begin_result(source, source.name(*_ANSWERS))
        draft.columns["is_error"] = source.flag("is_error")
        self.blocks.result(source.take("content"), draft, f"{source.path}.content")
        draft.extra = source.rest()

    def confirmation(self, source: SourceObject) -> None:
        """The user allows or denies a call."""
        columns: Columns = {"source": "user", "name": "user.tool_confirmation"}
        columns["text"] = source.text("deny_message") or source.text("result")
        if source.word("result") == "deny":
            columns["is_error"] = True
        draft = self.run.observe(columns, answers=source.name(*_ANSWERS))
        take_time(source, draft.columns, *self.time_keys)
        draft.extra = source.rest()

    def compaction(self, source: SourceObject) -> None:
        """The context was compacted; by what, the event does not say."""
        self.turn = None
        step = self.context_edit(source, "replace", "summary")
        step.extra.update(source.rest())

    def request_start(self, source: SourceObject) -> None:
        """A request to the model: what follows is a turn of its own."""
        self.turn = None
        self.keep(source)

    def request_end(self, source: SourceObject) -> None:
        """The tokens of the request; its turn is the last one, which has no other request."""
        if self.turn is None or "usage" in self.turn.columns:
            self.keep(source)
            return
        take_usage(source, "model_usage", self.turn.columns, ANTHROPIC)
        self._add_event(source, self.turn)

    def terminated(self, source: SourceObject) -> None:
        """The session is over."""
        self.run.columns["terminated"] = True
        self.keep(source)


class ManagedAgents(LogReader):
    """The format ``anthropic_managed_agents``."""

    name = "anthropic_managed_agents"
    title = "Events of sessions of Anthropic's managed agents"
    recognised = "pairs of a method of the sessions API and a payload, or events with dotted types"
    versions = "reads events, and tapes of a client"
    log = ManagedSession

    def sniff(self, record: Mapping[str, Raw]) -> Match:
        """An event with the time at which the platform took it, or a pair of a tape."""
        if LIST_LINE in record:
            pair = jsontext.decode_array(record[LIST_LINE])
            method = bytes(pair[0]) if len(pair) == PAIR else b""
            return Match.STAMP if method.startswith(b'"client.beta.sessions.') else Match.NO
        kind = word(record, "type")
        event = kind.startswith(("session.", "agent.", "user.", "span.")) and "." in kind
        return Match.STAMP if event and {"id", "processed_at"} <= set(record) else Match.NO


CONVERTER = ManagedAgents()
