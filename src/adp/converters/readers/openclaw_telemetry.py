"""Telemetry of OpenClaw: events of all sessions of a gateway in one file of lines.

The start of a run repeats the history so far, with calls and their results. Other events say
that a prompt came in, a tool started or ended, or an answer went out; they are joined to the
messages that say the same, and become steps where no message does, as at the end of a session.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from msgspec import Raw

from adp.converters.exchanges.conversations import message_key
from adp.converters.kit.blocks import call_columns
from adp.converters.kit.drafts import CallDraft, StepDraft, TrajectoryDraft, emit, merge_extra
from adp.converters.kit.session import LogReader, word
from adp.converters.kit.source_object import SourceObject
from adp.converters.kit.times import take_time
from adp.converters.readers.pi import PiSession
from adp.converters.reading import BRACE, BRACKET
from adp_schema import jsontext
from adp_schema.errors import RecordError
from adp_schema.protocols import Match

_TEXTS = {
    "message.in": ("user", "content"),
    "agent.start": ("user", "prompt"),
    "message.sending": ("agent", "content"),
    "message.out": ("agent", "content"),
}
"""Kinds of events with a text: who says it, and its key."""
_KINDS = frozenset({*_TEXTS, "agent.end", "tool.start", "tool.end"})
_SUBAGENT = ":subagent:"


@dataclass
class GatewaySession:
    """A session while its events are read.

    Attributes:
        run: its trajectory.
        history: keys of the messages that it has.
        pending: events that wait for a message that says the same, with what they are.
        calls: calls of messages, by tool and arguments, with their steps and places in order;
            those that an event started are taken away.
        open: calls that have started, by session key and tool.
    """

    run: TrajectoryDraft
    history: list[bytes] = field(default_factory=list)
    pending: list[tuple[str, SourceObject]] = field(default_factory=list)
    calls: dict[tuple[Any, Any], list[tuple[StepDraft, int]]] = field(default_factory=dict)
    open: dict[tuple[str, str], list[tuple[StepDraft, int, bool]]] = field(default_factory=dict)


class TelemetryLog(PiSession):
    """The events of a file."""

    def set_up(self) -> None:
        """Make the sessions of the file."""
        self.sessions: dict[str, GatewaySession] = {}
        self.main: GatewaySession | None = None

    def read(self) -> None:
        """Read all events and write a trajectory for each session."""
        for source, broken in self.sources():
            if broken:
                self._of("").run.event(source).extra["line"] = broken
            else:
                self._take(source)
        for session in self.sessions.values():
            self._settle(session)
        self._link_subagents()
        runs = [it.run for it in self.sessions.values() if it.run.steps or it.run.early]
        if not runs:
            raise RecordError("the file holds no event")
        for run in runs:
            emit(run, self.builder)

    def _of(self, key: str, agent: str = "") -> GatewaySession:
        """The session of a key; channels of an agent share the one that it starts its runs with."""
        if not key and self.main is not None:
            return self.main
        name = key if _SUBAGENT in key else f"agent:{agent or 'main'}"
        session = self.sessions.get(name)
        if session is None:
            columns = {"agent_name": "openclaw", "source_id": name, "session_id": name}
            session = self.sessions[name] = GatewaySession(TrajectoryDraft(columns))
        if _SUBAGENT not in key:
            self.main = session
        return session

    def _take(self, source: SourceObject) -> None:
        kind = source.word("type")
        session = self._of(source.word("sessionKey"), source.word("agentId"))
        if kind not in _KINDS:
            self.losses.unknown(f"record type {kind or 'without a type'}")
        if kind == "agent.start" and source.first("messages") == BRACKET:
            self._history(source, session)
            kind = "agent.start with its history"
        session.pending.append((kind, source))

    def _history(self, source: SourceObject, session: GatewaySession) -> None:
        """The messages of a run so far: those that are new, or all, when others were dropped."""
        messages = jsontext.decode_array(source.values["messages"])
        source.drop("messages")
        keys = [message_key(message) for message in messages]
        known = len(session.history)
        self.run = session.run
        seen: set[bytes] = set()
        if keys[:known] != session.history:
            session.run.step("system", "context_edit", edit_boundary="replace", synthetic=True)
            seen, known = set(session.history), 0
        for number in range(known, len(messages)):
            self._message(messages[number], f"{source.path}.messages[{number}]", session,
                          keys[number] in seen)  # fmt: skip
        session.history = keys

    def _message(self, raw: Raw, path: str, session: GatewaySession, copied: bool) -> None:
        before = len(session.run.steps)
        if jsontext.first_byte(raw) != BRACE:
            step = session.run.step("environment", "event", visibility="none")
            step.extra["message"] = raw
            return
        message, line = SourceObject(raw, path, self.losses), SourceObject(None, path, self.losses)
        if (time := message.take("timestamp")) is not None:
            line.values["timestamp"] = time
        line.adopt("message", message)
        self.message(line)
        for step in session.run.steps[before:]:
            step.columns["is_copied_context"] = copied or None
            for place, call in enumerate(step.calls if not copied else []):
                session.calls.setdefault(_key_of(call.columns), []).append((step, place))

    def _settle(self, session: GatewaySession) -> None:
        """Join the events of a session to its messages; the others become steps, in their order."""
        by_text: dict[tuple[str, str], list[StepDraft]] = {}
        fresh = [it for it in session.run.steps if not it.columns.get("is_copied_context")]
        for step in fresh:
            text = step.parts.columns().get("text") or ""
            by_text.setdefault((str(step.columns["source"]), text), []).append(step)
        self.run = session.run
        counts: Counter[tuple[str, str]] = Counter()
        for label, event in session.pending:
            kind = event.word("type")
            if kind == "tool.start":
                self._start(event, session)
            elif kind == "tool.end":
                self._end_of_tool(event, session)
            elif kind in _TEXTS:
                who, key = _TEXTS[kind]
                text = event.word(key)
                place, steps = counts[(label, text)], by_text.setdefault((who, text), [])
                counts[(label, text)] += 1
                if place >= len(steps):
                    steps.append(self.run.step(who, "llm_turn" if who == "agent" else "message"))
                    if text:
                        steps[-1].parts.text(self.builder.text(text))
                self._join(event, key, steps[place])
            else:
                self.run.event(event)

    def _join(self, event: SourceObject, key: str, step: StepDraft) -> None:
        """Put an event beside the step that says the same."""
        event.text(key)
        if step.columns.get("timestamp") is None:
            take_time(event, step.columns, "timestamp")
        kind = event.word("type")
        event.drop("type")
        merge_extra(step.extra, {kind: event.rest()})

    def _start(self, event: SourceObject, session: GatewaySession) -> None:
        name, raw = event.word("toolName"), event.take("params")
        columns = call_columns(name or None, None, raw)
        same = session.calls.get(_key_of(columns))
        is_message = bool(same)
        if same:
            step, place = same.pop(0)
        else:
            step = self.run.step("agent", "llm_turn")
            step.call(columns)
            place = 0
        key = (event.word("sessionKey"), name)
        session.open.setdefault(key, []).append((step, place, is_message))
        event.drop("type")
        event.drop_text("toolName", name)
        merge_extra(step.calls[place].extra, {"tool.start": event.rest()})

    def _end_of_tool(self, event: SourceObject, session: GatewaySession) -> None:
        """The end of a tool: how long its call took, or all that is known of its result."""
        name = event.word("toolName")
        started = session.open.get((event.word("sessionKey"), name))
        if not started:
            self.run.event(event)
            return
        step, place, is_message = started.pop(0)
        event.drop("type")
        event.drop_text("toolName", name)
        call: CallDraft = step.calls[place]
        call.columns["duration_ms"] = event.number("durationMs")
        if is_message:
            merge_extra(call.extra, {"tool.end": event.rest()})
            return
        success = event.flag("success")
        draft = self.run.observe({"name": name or None, "call_step": step, "call": place})
        draft.columns["is_error"] = None if success is None else not success
        self.blocks.result(event.take("result"), draft, f"{event.path}.result")
        draft.extra = event.rest()

    def _link_subagents(self) -> None:
        """Join a subagent to the call whose task stands in its prompt."""
        subagents = [(name, it) for name, it in self.sessions.items() if _SUBAGENT in name]
        for session in self.sessions.values():
            for step in session.run.steps:
                for place, call in enumerate(step.calls):
                    data = (call.columns.get("arguments") or "").encode("utf-8", "replace")
                    task = SourceObject(data, "$", self.losses).word("task")
                    for name, other in subagents if task else []:
                        first = other.run.steps[0].parts.columns().get("text") or ""
                        if task in first:
                            session.run.link("subagent", step, call=place, target_id=name)


def _key_of(columns: dict[str, Any]) -> tuple[Any, Any]:
    """What calls are compared by: the tool, and the arguments however they are written."""
    text = columns.get("arguments")
    raw = columns.get("arguments_raw")
    return columns.get("name"), raw if text is None else message_key(jsontext.raw(text))


class TelemetryReader(LogReader):
    """The format ``openclaw_telemetry``."""

    name = "openclaw_telemetry"
    title = "Telemetry of OpenClaw"
    recognised = "lines of a type such as tool.start, with a sessionKey or a channel"
    versions = "reads the events of messages, runs and tools"
    log = TelemetryLog

    def sniff(self, record: Mapping[str, Raw]) -> Match:
        """An event of a session or of a channel."""
        known = word(record, "type") in _KINDS and {"sessionKey", "channel"} & set(record)
        return Match.STAMP if known else Match.NO


CONVERTER = TelemetryReader()
