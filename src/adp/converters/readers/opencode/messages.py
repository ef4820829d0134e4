"""Messages of opencode and their parts, into turns, calls with their results, and media."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from msgspec import Raw

from adp.converters.kit.blocks import TRUE, call_columns
from adp.converters.kit.drafts import StepDraft, merge_extra
from adp.converters.kit.key_tables import exit_code
from adp.converters.kit.session import SessionLog, word
from adp.converters.kit.source_object import SourceObject
from adp.converters.kit.times import take_time
from adp.converters.kit.usage import UsageKeys, take_usage

USAGE = UsageKeys(
    prompt=("input",),
    written=("output",),
    cached=("cache.read",),
    cache_write=("cache.write",),
    reasoning=("reasoning",),
    apart=True,
    total=("total",),
)
_OUTSIDE_PARTS = frozenset({"step-start", "step-finish", "snapshot", "patch", "retry"})
"""Parts that say something about the turn, and that no model sees."""
_MODEL_PARTS = frozenset({"tool", "reasoning", "step-start", "step-finish"})
"""Parts of messages that a model wrote."""
_OPAQUE_PARTS = frozenset({"agent", "subtask", "compaction"})


class OpencodeMessages(SessionLog):
    """The messages of a session.

    Attributes:
        tail: id of the first message that a summary leaves as it is, and the step that asks for
            the summary.
    """

    agent: ClassVar[str | None] = "opencode"

    def set_up(self) -> None:
        """Make what a summary needs of the messages before it."""
        self.tail: tuple[str, StepDraft] | None = None

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
            if is_over(steps[-1], part):
                steps.append(self.run.step(source, kind, native_id=name, model=model))
            self.part(part, steps[-1])
        if agent and not any("usage" in step.columns for step in steps):
            take_usage(info, "tokens", steps[-1].columns, USAGE)
            if steps[-1].columns.get("cost_usd") is None:
                steps[-1].columns["cost_usd"] = info.number("cost")
        if not steps[-1].columns.get("stop_reason"):
            steps[-1].columns["stop_reason"] = info.text("finish")
        self.note_error(info.child("error"))
        is_summary = info.flag("summary") if info.first("summary") == TRUE else None
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

    def note_error(self, error: SourceObject) -> None:
        """The error of the last message or event is that of the run."""
        kind = message = None
        if error:
            kind = error.word("name") or None
            message = error.child("data").word("message") or error.word("message") or None
        self.run.columns["error_type"], self.run.columns["error_message"] = kind, message

    def _replace(self, written: StepDraft) -> None:
        """The message was a summary: it stands for what came before, but for a tail of that."""
        edit = self.run.summarised(written)
        if self.tail is None:
            return
        start, request = self.tail
        known = (step for step in self.run.steps if step.columns.get("native_id") == start)
        if (first := next(known, None)) is not None:
            edit.columns["edit_from"], edit.columns["edit_to"] = first, request

    def part(self, part: SourceObject, step: StepDraft) -> None:
        """Add a part of a message to its step."""
        self.run.constant(part, "sessionID", "session_id")
        for key in ("messageID", "message_id"):
            part.drop_text(key, step.columns.get("native_id"))
        kind = part.word("type")
        if kind == "tool":
            self._tool(part, step)
        elif kind == "file":
            self._file(part, step)
        elif kind in _OUTSIDE_PARTS:
            if kind == "step-finish" and kind not in step.extra:
                take_usage(part, "tokens", step.columns, USAGE)
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
        meta = state.peek("metadata")
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
            draft.columns["exit_code"] = exit_code(meta)
            take_time(time, draft.columns, "end")
            draft.columns["structured"] = state.json_object("metadata")
            for attached in state.objects("attachments"):
                self._file(attached, StepDraft({}, draft.parts))
        call.extra = part.rest()


def is_over(step: StepDraft, part: SourceObject) -> bool:
    """Whether a part belongs to the next turn of the model."""
    if not step.extra:
        return False
    kind = part.word("type")
    if kind == "step-start":
        return bool({"step-start", "step-finish"} & set(step.extra))
    return "step-finish" in step.extra and kind not in _OUTSIDE_PARTS


def is_info(record: Mapping[str, Raw]) -> bool:
    """Whether an object is what the old folder keeps of a session."""
    keys = set(record)
    early = {"version", "title", "time"} <= keys and word(record, "id").startswith("ses_")
    return early or {"id", "projectID", "directory", "time"} <= keys
