"""Sessions of opencode that are written: the document of ``opencode export``.

A message a step, and a call is one part with its result. Ids grow with the order, since opencode
sorts by them and by time, and they differ between sessions, since its database has one table of
all. The system prompt stands with the message of the user that follows it.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import ClassVar

from msgspec import Raw

from adp.converters.readers.opencode.write_parts import AROUND, OpencodeParts
from adp.converters.scalars import number_text
from adp.converters.session_writers.names import (
    opencode_id,
    provider_of,
)
from adp.converters.session_writers.values import Line, merged, object_at
from adp.converters.writing import add_losses, string
from adp_schema import jsontext
from adp_schema.losses import Losses
from adp_schema.model import Observation, Step, Trajectory

_CONSTANT = frozenset({"sessionID", "session_id", "path"})
_NO_SUMMARY = "an edit of the context without a summary"


class OpencodeWriter(OpencodeParts):
    """Writes a session."""

    name: ClassVar[str] = "opencode"
    turn_columns: ClassVar[frozenset[str]] = frozenset(
        {"tokens_in", "tokens_out", "tokens_cached", "tokens_cache_write", "tokens_reasoning",
         "cost_usd", "stop_reason", "duration_ms"}
    )  # fmt: skip
    call_columns: ClassVar[frozenset[str]] = frozenset({"duration_ms"})
    result_columns: ClassVar[frozenset[str]] = frozenset({"is_error", "structured"})
    native_columns: ClassVar[frozenset[str]] = frozenset({
        *("agent_name", "agent_version", "started_at", "started_text", "ended_at", "ended_text"),
        *("time_zone_known", "total_cost_usd", "error_type", "error_message", "native_id", "usage"),
        *("synthetic", "visibility", "status", "exit_code", "name"),
    })  # fmt: skip

    def __init__(self, run: Trajectory, losses: Losses) -> None:
        super().__init__(run, losses)
        self._system: Step | None = None
        self._asked = ""
        self._ended = False
        self._summaries = {
            (step.step or 0) - 1 for step in run.steps if step.kind == "context_edit"
        }

    def session_name(self) -> str:
        """An id as opencode makes them."""
        return (self.native and self.run.source_id) or opencode_id(self.run)

    def lines(self) -> list[Line]:
        """One document."""
        self.report_run()
        start = self._ms(None)
        for branch in self.run.branches:
            self._written.add(id(branch))
        for _ in self.body():
            pass
        for number, branch in enumerate(self.run.branches):
            within = OpencodeWriter(branch, Losses())
            within.session, within.used, within._last = self.session, self.used, self._last
            within._messages = self._messages
            within.report_run()
            for _ in within.body():
                pass
            add_losses(self.losses, f"$.branches[{number}]", within.losses)
        info: Line = {"id": self.session, "slug": self.session[-12:].lower(), "projectID": "global",
                      "directory": string(self.cwd), "title": string(self._title()),
                      "version": string(self.run.agent_version or "0.0.0"),
                      "time": {"created": start, "updated": self._last}}  # fmt: skip
        if self.native:
            info["time"]["updated"] = self._milliseconds(self.run.ended_at, self._last)
            if self.run.total_cost_usd is not None:
                info["cost"] = jsontext.raw(number_text(self.run.total_cost_usd))
        kept = {key: raw for key, raw in self.kept.items() if key not in _CONSTANT}
        return [{"info": merged(info, kept), "messages": self._messages}]

    def _title(self) -> str:
        texts = (step.text for step in self.run.steps if step.source == "user" and step.text)
        return next(texts, "Session").split("\n")[0][:60]

    # ---- messages --------------------------------------------------------------------------

    def message(self, step: Step, path: str) -> Iterator[Line]:
        """A message of the user; a system prompt waits for the next one."""
        if step.source == "system" and self._is_said_later(step):
            self._system = step
            return
        if step.source == "system":
            self.losses.add(f"{path}.source", "system is written as the role user")
        model = self.model_of(step) or "unknown"
        used = {"providerID": provider_of(model), "modelID": string(model)}
        info: Line = {"role": "user", "time": {"created": self._ms(step, path)}, "agent": "build",
                      "model": used}  # fmt: skip
        if self._system is not None:
            info["system"] = string(self.text(self._system))
            self._system = None
        message = self._open(info, step, self.fields(step))
        self._asked = message["info"]["id"]
        self._fill(message, step, path)
        yield from ()

    def _is_said_later(self, step: Step) -> bool:
        """Whether the next step is a message of the user that a system prompt may stand with."""
        index = (step.step or 0) - (self.run.steps[0].step or 0) if self.run.steps else -1
        later = islice(self.run.steps, index + 1, None)
        after = next((it for it in later if it.kind != "event"), Step())
        plain = step.content is None and bool(step.text) and not step.observations
        if step.timestamp is not None and not self.native:
            self.losses.add(f"$.steps[{index}].timestamp", "it has the time of the next message")
        asks = after.kind == "message" and after.source in ("user", "environment")
        return plain and index >= 0 and asks

    def turn(self, step: Step, path: str) -> Iterator[Line]:
        """A turn of the model: a message, or a part of one that holds several turns."""
        fields = self.fields(step)
        message = self._messages[-1] if self._messages else None
        again = self._ended or "step-start" in fields
        if message is None or not again or message["info"]["id"] != step.native_id:
            message = self._open(self._answer(step, path), step, fields)
        self._ended = "step-finish" in fields
        for key in [key for key in fields if key.split("#")[0] == "step-start"]:
            self._add(message, {"type": "step-start"}, object_at(fields, key))
        self._fill(message, step, path)
        for key in [key for key in fields if key.split("#")[0] in AROUND - {"step-start"}]:
            kind = key.split("#")[0]
            more = self._spent(step, "reason") if key == "step-finish" else {}
            self._add(message, {"type": kind, **more}, object_at(fields, key))
        yield from ()

    def _answer(self, step: Step, path: str) -> Line:
        """What a message of the model says of itself."""
        model = self.model_of(step) or "unknown"
        created = self._ms(step, path)
        time = {"created": created}
        if step.duration_ms is not None:
            time["completed"] = created + round(step.duration_ms)
            if step.duration_ms != round(step.duration_ms):
                self.losses.add(f"{path}.duration_ms", "times are whole milliseconds")
        info: Line = {"role": "assistant", "time": time, "parentID": self._asked or "msg_0",
                      "modelID": string(model), "providerID": provider_of(model), "mode": "build",
                      "agent": "build",
                      "path": {"cwd": string(self.cwd), "root": string(self.cwd)}}  # fmt: skip
        if self.native and self._is_summary(step):
            info["summary"] = True
        apart = self.native and "step-finish" in self.fields(step)
        return {**info, **({} if apart else self._spent(step, "finish"))}

    def _is_summary(self, step: Step) -> bool:
        """Whether the turn wrote the summary that the edit after it puts in place."""
        return step.step in self._summaries

    def edit(self, step: Step, path: str) -> Iterator[Line]:
        """A compaction is a request and an answer."""
        if self.native:
            return
        if step.edit_summary is None or step.edit_boundary != "replace":
            yield from self.leave_out(step, path, _NO_SUMMARY)
            return
        carried = {"source", "kind", "edit_boundary", "edit_summary"}
        kept = self.first_of(step.edit_from)
        carried |= {"edit_from"} if kept is not None else set()
        carried |= {"edit_to"} if kept is not None and step.edit_to == step.step else set()
        self.report(step, frozenset(carried), path)
        self.losses.add(f"{path}.kind", "a compaction is a request and an answer")
        for _ in self.message(Step(source="user", timestamp=step.timestamp), path):
            pass
        tail = {} if kept is None else {"tail_start_id": kept}
        self._add(self._messages[-1], {"type": "compaction", "auto": True, **tail})
        text = Step(source="agent", text=step.edit_summary, stop_reason="stop", extra=step.extra)
        for _ in self.turn(text, path):
            pass
        self._messages[-1]["info"]["summary"] = True

    def noted(self, step: Step, fields: dict[str, Raw], path: str) -> Iterator[Line]:
        """Printed events have no place in an export."""
        for key in fields:
            self.losses.add(f"{path}.extra.{key}", "an export has messages only")
        yield from ()

    def result(self, row: Observation, answered: str, path: str) -> Iterator[Line]:
        """The result of a call stands with it; any other becomes a message."""
        if self._answers.get((row.call_step, row.call), ("",))[0] is row:
            if answered != self._names.get((row.call_step, row.call)):
                self.losses.add(f"{path}.call_id", "a result has the id of its call")
            if row.step != row.call_step:
                self.losses.add(f"{path}.step", "a result stands with its call")
            return
        self.losses.add(f"{path}.source", "another result is written as the role user")
        columns = {key: getattr(row, key) for key in ("text", "content", "timestamp", "extra")}
        yield from self.message(Step(source="user", kind="message", **columns), path)
