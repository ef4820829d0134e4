"""Messages of opencode that are written, and the parts in them."""

from __future__ import annotations

from typing import Any

from msgspec import Raw

from adp.converters.scalars import number_text
from adp.converters.session_writers.blocks import Block
from adp.converters.session_writers.log_writer import SessionLogWriter
from adp.converters.session_writers.names import uuid_of
from adp.converters.session_writers.values import Line, merged, object_at, text_at
from adp.converters.unwritten_columns import report_parts
from adp.converters.writing import parts_of, rows_of, string
from adp_schema import jsontext, media
from adp_schema.extra_column import original, unpack
from adp_schema.losses import Losses
from adp_schema.model import Observation, Step, ToolCall, Trajectory
from adp_schema.parts import JOINT

AROUND = frozenset({"step-start", "step-finish", "snapshot", "patch", "retry"})
"""Parts that say something about a turn, and that no model sees."""


class OpencodeParts(SessionLogWriter):
    """Messages of opencode that are written, and the parts in them."""

    def __init__(self, run: Trajectory, losses: Losses) -> None:
        super().__init__(run, losses)
        self._messages: list[Line] = []
        self._last = 0
        self._names: dict[tuple[int | None, int | None], str] = {}
        self._answers: dict[tuple[int | None, int | None], tuple[Observation, str]] = {}
        for row, path in rows_of(run):
            if isinstance(row, Observation) and row.call_step is not None:
                self._answers.setdefault((row.call_step, row.call), (row, path))

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

    def _open(self, info: Line, row: Step | Observation, fields: dict[str, Raw]) -> Line:
        """A new message without parts."""
        name = row.native_id if isinstance(row, Step) else None
        head = {"id": self._id("msg", name), "sessionID": self.session}
        if self.native and "path" in self.kept and info["role"] == "assistant":
            info["path"] = self.kept["path"]
        left = {key: raw for key, raw in fields.items() if key.split("#")[0] not in AROUND}
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
