"""Sessions of opencode that are written: the document of ``opencode export``.

A message a step, and a call is one part with its result. Ids grow with the order, since opencode
sorts by them and by time, and they differ between sessions, since its database has one table of
all. The system prompt stands with the message of the user that follows it.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, ClassVar

from msgspec import Raw

from adp.converters.kit.written import Line, SessionLogWriter, merged
from adp.converters.kit.written_blocks import Block
from adp.converters.kit.written_names import object_at, opencode_id, provider_of, text_at, uuid_of
from adp.converters.scalars import number_text
from adp.converters.unwritten_columns import report_parts
from adp.converters.writing import parts_of, rows_of, string
from adp_schema import jsontext, media
from adp_schema.extra_column import original, unpack
from adp_schema.losses import Losses
from adp_schema.model import Observation, Step, ToolCall, Trajectory
from adp_schema.parts import JOINT

_AROUND = frozenset({"step-start", "step-finish", "snapshot", "patch", "retry"})
_CONSTANT = frozenset({"sessionID", "session_id", "path"})
_NO_SUMMARY = "an edit of the context without a summary"


class OpencodeWriter(SessionLogWriter):
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
        self._messages: list[Line] = []
        self._system: Step | None = None
        self._asked = ""
        self._ended = False
        self._summaries = {
            (step.step or 0) - 1 for step in run.steps if step.kind == "context_edit"
        }
        self._last = 0
        self._names: dict[tuple[int | None, int | None], str] = {}
        self._answers: dict[tuple[int | None, int | None], tuple[Observation, str]] = {}
        for row, path in rows_of(run):
            if isinstance(row, Observation) and row.call_step is not None:
                self._answers.setdefault((row.call_step, row.call), (row, path))

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
            for _ in within.body():
                pass
            if not self.native:
                self.losses.add(f"$.branches[{number}].branch_kind", "it follows the run")
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

    # ---- ids and times ---------------------------------------------------------------------

    def _id(self, prefix: str, given: str | None = None) -> str:
        """An id that comes after all before it; that of the source where it has one."""
        if self.native and given and given.startswith(prefix) and given not in self.used:
            self.used[given] = None
            return given
        number = len(self.used) + 1
        name = f"{prefix}_{number:012x}{uuid_of(self.session, prefix, number)[-12:]}00"
        self.used[name] = None
        return name

    @staticmethod
    def _milliseconds(time: Any, other: int) -> int:
        return other if time is None else int(time.timestamp() * 1000)

    def _ms(self, row: Step | Observation | None, path: str = "") -> int:
        """The time of a row; messages are sorted by it, so it never goes back."""
        time = self.time(row)
        exact = int(time.timestamp()) * 1000 + time.microsecond // 1000
        made = exact if self.native and row is not None else max(exact, self._last, 0)
        known = row is not None and row.timestamp is not None
        if known and (made != exact or time.microsecond % 1000):
            self.losses.add(f"{path}.timestamp", "times are whole milliseconds, in order")
        self._last = max(made, self._last)
        return made

    # ---- messages --------------------------------------------------------------------------

    def _open(self, info: Line, row: Step | Observation, fields: dict[str, Raw]) -> Line:
        """A new message without parts."""
        name = row.native_id if isinstance(row, Step) else None
        head = {"id": self._id("msg", name), "sessionID": self.session}
        if self.native and "path" in self.kept and info["role"] == "assistant":
            info["path"] = self.kept["path"]
        left = {key: raw for key, raw in fields.items() if key.split("#")[0] not in _AROUND}
        message: Line = {"info": merged({**head, **info}, left), "parts": []}
        message["info"]["id"] = head["id"]
        self.previous = head["id"]
        self._messages.append(message)
        return message

    def _add(self, message: Line, part: Line, fields: dict[str, Raw] | None = None) -> None:
        fields = fields or {}
        head = {"id": self._id("prt", text_at(fields, "id")),
                "sessionID": self.session, "messageID": message["info"]["id"]}  # fmt: skip
        message["parts"].append({**merged({**head, **part}, fields), "id": head["id"]})

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
        for key in [key for key in fields if key.split("#")[0] in _AROUND - {"step-start"}]:
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

    def _spent(self, step: Step, reason: str) -> Line:
        """Cost and tokens, of which opencode needs all; unknown ones are zero."""
        thought = step.tokens_reasoning or 0
        cached, cache_write = step.tokens_cached or 0, step.tokens_cache_write or 0
        given = (step.tokens_in or 0) - cached - cache_write
        tokens: Any = {"input": given, "output": (step.tokens_out or 0) - thought,
                       "reasoning": thought,
                       "cache": {"read": cached, "write": cache_write}}  # fmt: skip
        if thought:
            tokens["total"] = (step.tokens_in or 0) + (step.tokens_out or 0)
        if self.native and step.usage is not None:
            tokens = jsontext.raw(original(step, "usage", unpack(step.extra)))
        cost = jsontext.raw(number_text(step.cost_usd or 0))
        why = {} if step.stop_reason is None else {reason: string(step.stop_reason)}
        return {"cost": cost, "tokens": tokens, **why}

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

    # ---- parts -----------------------------------------------------------------------------

    def _fill(self, message: Line, row: Step | Observation, path: str) -> None:
        for block in self.blocks(row, path):
            if block.kind == "opaque":
                self._add(message, {}, object_at({"it": block.value}, "it"))
            elif block.kind == "call":
                self._call(message, block.call, path)
            elif block.kind == "media":
                self._add(message, self._file(block), block.extra)
            else:
                more = {"time": {"start": self._last}} if block.kind == "reasoning" else {}
                part = {"type": block.kind, "text": string(block.text), **more}
                self._add(message, part, block.extra)

    def _file(self, block: Block) -> Line:
        mime = block.blob.mime or "image/png"
        return {"type": "file", "mime": string(mime),
                "url": string(media.reference_of_media(block.blob, mime))}  # fmt: skip

    def _call(self, message: Line, call: ToolCall, path: str) -> None:
        """A call with its result."""
        fields, place = self.fields(call), (call.step, call.call)
        self._names[place] = self.call_id(call, path)
        part: Line = {"type": "tool", "callID": string(self._names[place]),
                      "tool": string(self.call_name(call))}  # fmt: skip
        state: Line = {"status": "pending", "input": self.arguments_object(call, path), "raw": ""}
        if place in self._answers:
            state = self._result(call, state["input"], message)
        elif call.status == "running":
            state = {"status": "running", "input": state["input"], "time": {"start": self._last}}
        self._add(message, {**part, "state": state}, fields)

    def _result(self, call: ToolCall, given: Any, message: Line) -> Line:
        """The state of a call that came to its end."""
        row, path = self._answers[call.step, call.call]
        blocks = self.blocks(row, path)
        texts = [block.text for block in blocks if block.kind in ("text", "reasoning")]
        report_parts(parts_of(row, row.text, unpack(row.extra)), path, self.losses, "text")
        end = self._ms(row, path)
        start = end - round(call.duration_ms or 0)
        failed = bool(row.is_error)
        state: Line = {"status": "error" if failed else "completed", "input": given,
                       "error" if failed else "output": string(JOINT.join(texts))}  # fmt: skip
        if not failed:
            state["title"] = ""
        state |= {"metadata": {}, "time": {"start": start, "end": end}}
        if row.structured is not None and row.structured[:1] != "{":
            self.losses.add(f"{path}.structured", "it is no object")
        elif row.structured is not None:
            state["metadata"] = jsontext.raw(original(row, "structured", unpack(row.extra)))
        files = [block for block in blocks if block.kind == "media"]
        for block in files if failed else ():
            self.losses.add(block.path, "the result of a failed call is a text only")
        if files and not failed:
            head = {"sessionID": self.session, "messageID": message["info"]["id"]}
            state["attachments"] = [
                merged({"id": self._id("prt"), **head, **self._file(block)}, block.extra)
                for block in files
            ]
        return state

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
