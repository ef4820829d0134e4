"""Sessions of Qwen Code: a tree of records, like that of Claude Code, with parts of Gemini.

A rewind re-roots the records that follow; what was left becomes a branch. Sources: Qwen Code 0.18
to 0.21.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from typing import Any, ClassVar

from msgspec import Raw

from adp.converters.kit.drafts import ObservationDraft, StepDraft, merge_extra
from adp.converters.kit.gemini_contents import take_outcome
from adp.converters.kit.session import LogReader, TreeLog, inner
from adp.converters.kit.source_object import SourceObject
from adp.converters.kit.times import take_time
from adp.converters.kit.usage import GEMINI, take_usage
from adp.converters.reading import QUOTE
from adp_schema import jsontext
from adp_schema.protocols import Match

_INJECTED = frozenset({"notification", "cron", "agent_launch_prompt", "hook_context"})
"""Subtypes of messages of the user that the user has not written."""
_SUBTYPES = frozenset(
    {"attribution_snapshot", "ui_telemetry", "slash_command", "at_command", "custom_title",
     "rewind", "session_model", "parent_session", "agent_bootstrap", "agent_launch_prompt",
     "file_history_snapshot", "session_artifact_event", "session_artifact_snapshot",
     "notification", "goal_state", "cron", "mid_turn_user_message"}
)  # fmt: skip
_ROLES = frozenset({"user", "model"})


class QwenSession(TreeLog):
    """One session."""

    agent: ClassVar[str | None] = "qwen-code"
    id_key: ClassVar[str] = "uuid"
    parent_key: ClassVar[str] = "parentUuid"
    constants: ClassVar[tuple[str, ...]] = (
        "cwd", "gitBranch", "agentId", "isSidechain", "userType",
    )  # fmt: skip
    handlers: ClassVar[Mapping[str, str]] = {
        "user": "user",
        "assistant": "assistant",
        "tool_result": "result",
        "system": "system",
    }

    def set_up(self) -> None:
        """Make what is noted of earlier records for later ones."""
        self._telemetry: dict[str, SourceObject] = {}
        self._known: dict[bytes, str] = {}

    def line(self, source: SourceObject) -> None:
        """Take one record; what nearly all of them repeat stands with the trajectory."""
        columns = self.run.columns
        if "source_id" not in columns and "session_id" not in columns:
            self._begin_run(source)
        session = columns.get("session_id")
        if session:
            source.drop_text("sessionId", session)
        source.drop_text("version", columns.get("agent_version"))
        super().line(source)

    def _begin_run(self, source: SourceObject) -> None:
        columns = self.run.columns
        session, agent = source.word("sessionId"), source.word("agentId")
        if session:
            columns["source_id"] = agent or session
            columns["session_id"] = session
        if agent and session:
            self.link_parent(session)
        if source.word("version"):
            columns.setdefault("agent_version", source.word("version"))

    def begin_step(self, source: SourceObject, speaker: str, kind: str = "") -> StepDraft:
        """Add a step; a record that was copied from another session links that, once."""
        step = super().begin_step(source, speaker, kind)
        origin = source.peek("forkedFrom").word("sessionId")
        if origin and all(link.columns["kind"] != "fork" for link in self.run.links):
            self.run.link("fork", step, target_id=origin)
        return step

    def _read_parts(self, source: SourceObject, step: StepDraft) -> None:
        message = source.child("message")
        if message.word("role") in _ROLES:
            message.drop("role")
        raw = message.take("parts")
        if raw is not None and step.columns["native_id"]:
            self._known.setdefault(_digest(raw), step.columns["native_id"])
        self.blocks.content(raw, step, f"{source.path}.message.parts")

    def user(self, source: SourceObject) -> None:
        """A message of the user, or one in the name of the user."""
        step = self.begin_step(source, "user")
        if source.word("subtype") in _INJECTED:
            step.columns["synthetic"] = True
        self._read_parts(source, step)
        self.end_step(source, step)

    def assistant(self, source: SourceObject) -> None:
        """A turn of the model."""
        step = self.begin_step(source, "agent")
        self.set_model(step, source.text("model"))
        self._read_parts(source, step)
        take_usage(source, "usageMetadata", step.columns, GEMINI)
        event = self._telemetry.pop("api_response", None)
        if event is not None:
            step.columns["response_id"] = event.word("response_id") or None
            step.columns["duration_ms"] = event.number("duration_ms")
        self.end_step(source, step)

    def result(self, source: SourceObject) -> None:
        """The result of a call: what the model saw, and what the user was shown."""
        if not self.run.steps:
            self.run.event(SourceObject(None, source.path, self.losses))
        step = self.run.steps[-1]
        before = len(step.observations)
        message = source.child("message")
        raw = message.values.get("parts")
        if raw is not None and source.word("uuid"):
            self._known.setdefault(_digest(raw), source.word("uuid"))
        outcome = source.child("toolCallResult")
        parts = message.objects("parts")
        for part in sorted(parts, key=lambda part: "functionResponse" not in part):
            if "functionResponse" in part:
                self.blocks.block(part, step)
                continue
            if len(step.observations) == before:
                self.run.observe({}, answers=outcome.name("callId"), by_order=True)
            self.blocks.part(part, step.observations[before].parts)
        if len(step.observations) == before:
            self.run.observe({}, answers=outcome.name("callId"), by_order=True)
        draft = step.observations[before]
        take_time(source, draft.columns, "timestamp")
        _take_outcome(outcome, draft)
        event = self._telemetry.pop(f"tool_call {draft.columns.get('name')}", None)
        if event is not None:
            draft.columns["duration_ms"] = event.number("duration_ms")
        if message.word("role") == "user":
            message.drop("role")
        merge_extra(draft.extra, source.rest())

    def system(self, source: SourceObject) -> None:
        """What the program notes: telemetry, commands, a shorter history."""
        subtype = source.word("subtype")
        payload = source.child("systemPayload")
        if subtype == "chat_compression":
            self._compression(source, payload)
            return
        if subtype == "ui_telemetry":
            self._take_telemetry(payload)
        elif subtype == "parent_session":
            for key in ("parentSessionId", "sessionId"):
                if payload.word(key):
                    self.run.link("continuation", target_id=payload.word(key))
                    break
        elif subtype not in _SUBTYPES:
            self.losses.unknown(f"system record {subtype or 'without a subtype'}")
        step = self.begin_step(source, "environment", "event")
        step.columns["visibility"] = "none"
        step.extra["type"] = "system"
        self.end_step(source, step)

    def _take_telemetry(self, payload: SourceObject) -> None:
        """Keep times of a call of the model or of a tool for the record that follows."""
        event = payload.peek("uiEvent")
        name = event.word("event.name").rpartition(".")[2]
        if name == "api_response":
            self._telemetry[name] = event
        elif name == "tool_call":
            self._telemetry[f"{name} {event.word('function_name')}"] = event

    def _compression(self, source: SourceObject, payload: SourceObject) -> None:
        """The history was replaced; of the new one only what is new is stored."""
        step = self.context_edit(source, "replace")
        entries: list[Any] = []
        for content in payload.objects("compressedHistory"):
            raw = content.values.get("parts")
            known = None if raw is None else self._known.get(_digest(raw))
            if known is not None and set(content.values) <= {"parts", "role"}:
                entries.append({"uuid": known, "role": content.values.get("role")})
                continue
            if raw is not None and "edit_summary" not in step.columns:
                step.columns["edit_summary"] = _only_text(raw)
            entries.append(content.rest())
        if entries:
            step.extra["compressedHistory"] = entries
        self.end_step(source, step)


def _take_outcome(outcome: SourceObject, draft: ObservationDraft) -> None:
    """Take what the program says about a result beside what the model saw."""
    if draft.answers and outcome.word("callId") == draft.answers:
        outcome.drop("callId")
    take_outcome(outcome, draft, outcome.word("status"))
    if outcome.word("resultDisplay") == draft.parts.columns().get("text", 0):
        outcome.drop("resultDisplay")
        draft.extra["same_as_text"] = "resultDisplay"


def _digest(raw: Raw) -> bytes:
    return blake2b(bytes(raw), digest_size=16).digest()


def _only_text(raw: Raw) -> str | None:
    """The text of parts that are one text."""
    if jsontext.first_byte(raw) != 0x5B:
        return None
    parts = jsontext.decode_array(raw)
    values = jsontext.decode_object(parts[0]) if len(parts) == 1 else {}
    text = values.get("text", Raw(b"null"))
    return str(jsontext.decode_value(text)) if jsontext.first_byte(text) == QUOTE else None


class QwenReader(LogReader):
    """The format ``qwen_code``."""

    name = "qwen_code"
    title = "Sessions of Qwen Code"
    recognised = "a record with a uuid and a sessionId whose message has parts"
    versions = "reads versions 0.18 to 0.21; earlier ones write like Gemini CLI"
    log = QwenSession

    def sniff(self, record: Mapping[str, Raw]) -> Match:
        """The tree of Claude Code with messages of Gemini, or a payload of the system."""
        if not {"uuid", "sessionId", "type"} <= set(record):
            return Match.NO
        if "parts" in inner(record, "message") or "systemPayload" in record:
            return Match.STAMP
        return Match.NO


CONVERTER = QwenReader()
