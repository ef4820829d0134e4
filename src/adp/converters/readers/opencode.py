"""Sessions of opencode: its database, ``opencode export``, and the lines of ``run --format json``.

All three hold parts that belong to messages: a part ``tool`` is a call with its result in one.
A message may be several turns of the model, each from ``step-start`` to ``step-finish``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from msgspec import Raw

from adp.converters.kit.blocks import call_columns
from adp.converters.kit.drafts import StepDraft, TrajectoryDraft, merge_extra
from adp.converters.kit.lines import log_lines
from adp.converters.kit.session import LogReader, SessionLog, inner, word
from adp.converters.kit.source_object import SourceObject
from adp.converters.kit.times import take_end, take_start, take_time
from adp.converters.kit.usage import UsageKeys, take_usage
from adp.converters.kit.written_names import NamedRun, opencode_id
from adp.converters.reading import BRACE
from adp_schema.builder import RowBuilder
from adp_schema.errors import RecordError
from adp_schema.losses import Losses
from adp_schema.model import Trajectory
from adp_schema.protocols import Match, RawRecord, SkipRecordError

USAGE = UsageKeys(
    prompt=("input",),
    written=("output",),
    cached=("cache.read",),
    cache_write=("cache.write",),
    reasoning=("reasoning",),
    apart=True,
)
EVENTS = frozenset({"step_start", "step_finish", "text", "tool_use", "reasoning", "error"})
_OUTSIDE_PARTS = frozenset({"step-start", "step-finish", "snapshot", "patch", "retry"})
"""Parts that say something about the turn, and that no model sees."""
_MODEL_PARTS = frozenset({"tool", "reasoning", "step-start", "step-finish"})
"""Parts of messages that a model wrote."""
_TRUE = 0x74
_OPAQUE_PARTS = frozenset({"agent", "subtask", "compaction"})


class OpencodeSession(SessionLog):
    """One session."""

    agent: ClassVar[str | None] = "opencode"
    kept: ClassVar[frozenset[str]] = frozenset({"error"})

    def __init__(self, record: RawRecord, builder: RowBuilder, losses: Losses) -> None:
        super().__init__(record, builder, losses)
        self.alone = False
        self.reverted = ""
        self.tail: tuple[str, StepDraft] | None = None

    def read_lines(self) -> None:
        """Take the lines, or the one document."""
        lines = list(log_lines(self.record, self.builder, self.losses))
        self.alone = len(lines) == 1
        for source, broken in lines:
            self.entry(source, broken)

    def line(self, source: SourceObject) -> None:
        """An export or the rows of a database; else an event."""
        if "source_id" in self.run.columns and {"messages", "message"} & set(source.values):
            self.other(source)
        elif source.first("messages"):
            self._header(source.take_child("info"))
            for message in source.objects("messages"):
                parts = message.objects("parts")
                step = self.message(message.take_child("info"), parts)
                merge_extra(step.extra, message.rest())
            self.run.extra.update(source.rest())
        elif source.first("message"):
            self._rows(source)
        elif source.word("sessionID") and source.first("part") == BRACE:
            self._event(source)
        elif self.alone and source.word("type") != "error":
            raise _refused(source)
        else:
            self._note_error(source.child("error"))
            super().line(source)

    def _header(self, info: SourceObject) -> None:
        columns = self.run.columns
        columns["source_id"] = columns["session_id"] = info.name("id")
        columns["agent_version"] = info.text("version")
        time = info.child("time")
        take_start(time or info, columns, "created", "time_created")
        take_end(time or info, columns, "updated", "time_updated")
        columns["total_cost_usd"] = info.number("cost")
        self.reverted = info.parsed("revert").word("messageID")
        self.run.extra.update(info.rest())

    def _rows(self, source: SourceObject) -> None:
        """Rows of the tables; of each message and part the row has ids, and ``data`` the rest."""
        self._header(source.take_child("session"))
        parts: dict[str, list[SourceObject]] = {}
        for row in _in_order(source.objects("part")):
            owner = row.word("message_id") or row.word("messageID")
            parts.setdefault(owner, []).append(_unfold(row))
        for row in _in_order(source.objects("message")):
            name = row.word("id")
            self.message(_unfold(row), parts.pop(name, []))
        for lonely in parts.values():
            self.message(SourceObject(None, source.path, self.losses), lonely)
        self.run.extra.update(source.rest())

    def _event(self, source: SourceObject) -> None:
        """A part of a message, as it was printed."""
        columns = self.run.columns
        if "source_id" not in columns:
            columns["source_id"] = columns["session_id"] = source.word("sessionID")
        self.run.constant(source, "sessionID")
        part = source.take_child("part")
        if source.word("type") not in EVENTS:
            self.losses.unknown(f"record type {source.word('type') or 'without a type'}")
        owner = part.word("messageID") or None
        step = self.run.steps[-1] if self.run.steps else None
        if step is None or step.columns.get("native_id") != owner or _is_over(step, part):
            step = self.run.step("agent", "llm_turn", native_id=owner)
            take_time(source, step.columns, "timestamp")
        kind = part.word("type").replace("-", "_")
        if source.word("type") == {"tool": "tool_use"}.get(kind, kind):
            source.drop("type")
        self._part(part, step)
        merge_extra(step.extra, source.rest())

    def message(self, info: SourceObject, parts: list[SourceObject]) -> StepDraft:
        """Add a message with its parts; returns its first step."""
        role = info.word("role")
        agent = role == "assistant" or (
            not role and any(part.word("type") in _MODEL_PARTS for part in parts)
        )
        if role in ("user", "assistant"):
            info.drop("role")
        if prompt := info.text("system"):
            self.run.step("system", text=prompt, visibility="llm")
        source, kind = ("agent", "llm_turn") if agent else ("user", "message")
        name = info.name("id")
        model = self._model(info) if agent else None
        steps = [self.run.step(source, kind, native_id=name, model=model)]
        self._times(info, steps[0])
        for part in parts:
            if _is_over(steps[-1], part):
                steps.append(self.run.step(source, kind, native_id=name, model=model))
            self._part(part, steps[-1])
        if agent and not any("usage" in step.columns for step in steps):
            _take_usage(info, steps[-1])
            steps[-1].columns["cost_usd"] = info.number("cost")
        if not steps[-1].columns.get("stop_reason"):
            steps[-1].columns["stop_reason"] = info.text("finish")
        self._note_error(info.child("error"))
        is_summary = info.flag("summary") if info.first("summary") == _TRUE else None
        self.run.constant(info, "sessionID", "session_id", "path")
        merge_extra(steps[0].extra, info.rest())
        if is_summary:
            self._replace(steps[-1])
        return steps[0]

    def _times(self, info: SourceObject, step: StepDraft) -> None:
        time = info.child("time")
        created, completed = time.integer_at("created"), time.integer_at("completed")
        take_time(time, step.columns, "created")
        if "timestamp" not in step.columns:
            take_time(info, step.columns, "time_created")
        if created is not None and completed is not None:
            step.columns["duration_ms"] = float(completed - created)

    def _model(self, info: SourceObject) -> str | None:
        model = info.text("modelID")
        if model is None:
            model = info.child("model").text("modelID", "id")
        if model is not None:
            self.run.columns["agent_model"] = model
        return model

    def _note_error(self, error: SourceObject) -> None:
        """The error of the last message or event is that of the run."""
        message = error.child("data").word("message") or error.word("message")
        self.run.columns["error_type"] = error.word("name") or None
        self.run.columns["error_message"] = message or None

    def _replace(self, written: StepDraft) -> None:
        """The message was a summary: it stands for what came before, but for a tail of that."""
        edit = self.run.step("system", "context_edit", edit_boundary="replace", synthetic=True)
        edit.columns["edit_summary"] = written.parts.columns().get("text")
        if self.tail is None:
            return
        start, request = self.tail
        known = (step for step in self.run.steps if step.columns.get("native_id") == start)
        if (first := next(known, None)) is not None:
            edit.columns["edit_from"], edit.columns["edit_to"] = first, request

    def finish(self) -> None:
        """Messages that the user took back leave the main line."""
        steps = self.run.steps
        names = [step.columns.get("native_id") for step in steps]
        if self.reverted and self.reverted in names[1:]:
            at = names.index(self.reverted)
            branch = TrajectoryDraft(steps=steps[at:], keeps=at, kind="rewind")
            shared = ("agent_name", "agent_version", "agent_model", "session_id")
            branch.columns = {key: self.run.columns.get(key) for key in shared}
            branch.links = [link for link in self.run.links if link.step in branch.steps]
            self.run.links = [link for link in self.run.links if link.step not in branch.steps]
            self.run.steps, self.run.branches = steps[:at], [branch]

    # ---- parts -----------------------------------------------------------------------------

    def _part(self, part: SourceObject, step: StepDraft) -> None:
        self.run.constant(part, "sessionID", "session_id")
        for key in ("messageID", "message_id"):
            if part.word(key) == step.columns.get("native_id"):
                part.drop(key)
        kind = part.word("type")
        if kind == "tool":
            self._tool(part, step)
        elif kind == "file":
            self._file(part, step)
        elif kind in _OUTSIDE_PARTS:
            if kind == "step-finish" and kind not in step.extra:
                _take_usage(part, step)
                step.columns["cost_usd"] = part.number("cost")
                step.columns["stop_reason"] = part.text("reason")
            part.drop("type")
            merge_extra(step.extra, {kind: part.rest()})
        elif kind in _OPAQUE_PARTS:
            if start := part.word("tail_start_id"):
                self.tail = start, step
            step.parts.opaque(part.rest())
        else:
            self.blocks.part(part, step.parts)

    def _file(self, part: SourceObject, step: StepDraft) -> None:
        url, mime = part.word("url"), part.word("mime") or None
        rest = {key: value for key, value in part.rest().items() if key != "url"}
        if not url or not self.blocks.reference(url, step.parts, rest, mime):
            step.parts.opaque(part.rest())

    def _tool(self, part: SourceObject, step: StepDraft) -> None:
        """A call, and its result when there is one."""
        part.drop("type")
        state = part.child("state")
        status, name, call_id = state.text("status"), part.text("tool"), part.name("callID")
        call = step.call(call_columns(name, call_id, state.take("input")))
        call.columns["status"] = status
        meta = SourceObject(state.values.get("metadata"), state.path, self.losses)
        time = state.child("time")
        start, end = time.integer_at("start"), time.integer_at("end")
        if start is not None and end is not None:
            call.columns["duration_ms"] = float(end - start)
        if child := meta.word("sessionId") or meta.word("sessionID"):
            self.run.link("subagent", step, call=len(step.calls) - 1, target_session_id=child)
        output = state.text("error", "output") if status == "error" else state.text("output")
        if output is not None or status in ("completed", "error"):
            columns = {"name": name, "is_error": None if status is None else status == "error"}
            draft = self.run.observe(columns, answers=call_id, by_order=True)
            draft.parts.text(self.builder.text(output or ""))
            draft.columns["exit_code"] = meta.integer_at("exit", bits=32)
            take_time(time, draft.columns, "end")
            draft.columns["structured"] = state.json_object("metadata")
            for attached in state.objects("attachments"):
                self._file(attached, StepDraft({}, draft.parts))
        call.extra = part.rest()


def _refused(source: SourceObject) -> Exception:
    """Why a lone document is no session."""
    if {"sessionID", "role"} <= set(source.values) or "messageID" in source:
        return SkipRecordError("one message or part of a session, which is a folder of files")
    if {"projectID", "directory"} <= set(source.values):
        return SkipRecordError("the header of a session; its messages are in other files")
    return RecordError("it is no session of opencode", source.path)


def _in_order(rows: list[SourceObject]) -> list[SourceObject]:
    """Rows by their time and id, as opencode reads them; as they came when one has no time."""
    times = [row.integer_at("time_created") for row in rows]
    if any(time is None for time in times):
        return rows
    return sorted(rows, key=lambda row: (row.integer_at("time_created") or 0, row.word("id")))


def _unfold(row: SourceObject) -> SourceObject:
    """A row with the values of its column ``data``."""
    for key, value in row.take_child("data").values.items():
        row.values[key if key not in row else f"data.{key}"] = value
    return row


def _is_over(step: StepDraft, part: SourceObject) -> bool:
    """Whether a part belongs to the next turn of the model."""
    kind = part.word("type")
    if kind == "step-start":
        return bool({"step-start", "step-finish"} & set(step.extra))
    return "step-finish" in step.extra and kind not in _OUTSIDE_PARTS


def _take_usage(source: SourceObject, step: StepDraft) -> None:
    """Tokens; those of reasoning are added when the total says that they were apart."""
    record = SourceObject(source.values.get("tokens"), source.path, source.losses)
    take_usage(source, "tokens", step.columns, USAGE)
    written, thought = step.columns.get("tokens_out"), step.columns.get("tokens_reasoning")
    total = record.integer_at("total")
    if (
        written is not None
        and thought
        and total == step.columns.get("tokens_in", 0) + written + thought
    ):
        step.columns["tokens_out"] = written + thought


class OpencodeReader(LogReader):
    """The format ``opencode``."""

    name = "opencode"
    title = "Sessions of opencode"
    recognised = "an export, the rows of a session, or printed events with a sessionID and a part"
    versions = (
        "Reads the database, `opencode export` and `run --format json` of version 1. Writes the "
        "document of the export; it was tried with `opencode import` of 1.18.33."
    )
    log = OpencodeSession

    def sniff(self, record: Mapping[str, Raw]) -> Match:
        """The three forms; lone files of the old folder are named, but not read."""
        keys = set(record)
        if {"session", "message", "part"} <= keys:
            return Match.STAMP
        info = inner(record, "info")
        if "messages" in keys and "id" in info and {"time", "directory", "projectID"} & set(info):
            return Match.STAMP
        if "sessionID" in keys and word(record, "type") in EVENTS and {"part", "error"} & keys:
            return Match.STAMP
        lone = ({"id", "sessionID", "role", "time"}, {"id", "sessionID", "messageID", "type"},
                {"id", "projectID", "directory", "time"})  # fmt: skip
        return Match.SHAPE if any(shape <= keys for shape in lone) else Match.NO

    def write(
        self, trajectory: Trajectory, losses: Losses, flavour: str | None = None
    ) -> list[dict[str, Any]]:
        """Convert a trajectory into the document of an export."""
        from adp.converters.readers.opencode_write import OpencodeWriter

        return OpencodeWriter(trajectory, losses).lines()

    def embeds(self, branch: Trajectory) -> bool:
        """Messages that were taken back stand at the end of their session."""
        return branch.branch_kind == "rewind" and branch.source_format == self.name

    def session_file(self, run: NamedRun) -> str:
        """``<session>.json``."""
        return f"{opencode_id(run)}.json"


CONVERTER = OpencodeReader()
