"""Writing: a trajectory into the lines of a session."""

from __future__ import annotations

import functools
import json
from datetime import UTC, datetime, timedelta
from typing import Any

from adp.converters.openai_chat.content import write_content, write_foreign_content
from adp.converters.openai_chat.write import ChatWriter
from adp.converters.sts import keys as k
from adp.converters.unwritten_columns import report_columns
from adp.converters.writing import arrange, string
from adp_schema import jsontext, media
from adp_schema.extra_column import Extra, original
from adp_schema.losses import Losses
from adp_schema.model import Observation, Step, Trajectory
from adp_schema.parts import JOINT

Line = dict[str, Any]

_STEP = frozenset({"source", "kind", "text", "content", "reasoning", "model"})
_TIME = frozenset({"timestamp", "timestamp_text"})
_CALL = frozenset(
    {"call_id", "kind", "name", "arguments", "arguments_raw", "native_id", "language"}
)
_RESULT = frozenset({"call_id", "native_call_id", "source", "text", "content"})
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def write_session(trajectory: Trajectory, losses: Losses) -> list[Line]:
    """Convert one trajectory into a header and a line for each message."""
    writer = SessionWriter(trajectory, losses, native=trajectory.source_format == k.NAME)
    return [writer.header(), *(line for _, line in writer.rows())]


class SessionWriter(ChatWriter):
    """Writes the header and the messages of one trajectory."""

    name = k.NAME
    taken = k.TAKEN

    lists = True
    """Whether several texts of a message are written as a list."""

    def header(self) -> Line:
        """The first line."""
        run = self.trajectory
        extra = self.extra(run)
        defaults = {"agent_name": k.HARNESS, "source_id": run.trajectory_id}
        known = {"type": "session", **self.head(k.HEADER_FIELDS, defaults)}
        return arrange(known, self.kept(extra), extra.shape.get("keys"))

    def _step(self, step: Step, path: str) -> Line:
        extra = self.extra(step)
        carried = self.carried(_STEP) | self._time_columns(step)
        report_columns(step, carried, path, self.losses)
        if extra.shape.get("whole_line"):
            line: Line = write_content(step, extra, self.trajectory.media)
            return line
        if step.kind in ("context_edit", "event"):
            self.losses.add(f"{path}.kind", f"a step of kind {step.kind} becomes a message")
        role = extra.shape.get("role", k.USUAL_ROLES.get(step.source or "", "user"))
        if step.source == "environment" and not self.native and "role" not in self.kept(extra):
            self.losses.add(f"{path}.source", "environment is written as the role user")
        known: Line = {"role": string(role), "content": self._text(step, extra, path)}
        if step.reasoning is not None:
            reasoning = media.restore(original(step, "reasoning", extra), self.trajectory.media)
            known["reasoningContent"] = string(reasoning)
        calls = self._tool_calls(step, path, extra)
        if calls is not None:
            known["toolCalls"] = calls
        self._add_time(step, extra, path, known)
        if step.model is not None:
            known["model"] = string(original(step, "model", extra))
        return self._enveloped(known, extra)

    def _tool_calls(self, step: Step, path: str, extra: Extra) -> list[Any] | None:
        written: Line = {}
        # A call belongs to whom the message does.
        others = step.source != "user" and any(call.requestor == "user" for call in step.calls)
        carried = _CALL if others else _CALL | {"requestor"}
        self.add_calls(step, path, extra, written, carried)
        calls: list[Any] | None = written.get("tool_calls")
        for call in calls or ():
            if not self.native:
                del call["type"]
        return calls

    def _result(self, row: Observation, path: str) -> Line:
        extra = self.extra(row)
        known: Line = {"role": "tool"}
        answered = self.answered(row, extra, path)
        if answered is not None:
            known["toolCallId"] = string(answered)
        known["content"] = self._text(row, extra, path)
        if not self.native and row.source not in (None, "environment"):
            self.losses.add(f"{path}.source", f"{row.source} is written as the role tool")
        carried = _RESULT | {"axtree"} if row.text is None and not self.native else _RESULT
        self._add_time(row, extra, path, known)
        report_columns(row, self.carried(carried) | self._time_columns(row), path, self.losses)
        return self._enveloped(known, extra)

    def name_of_call(self, row: Observation) -> str | None:
        """The name of the call that a result answers: the format gives it there."""
        return self._call_names.get((row.call_step, row.call))

    @functools.cached_property
    def _call_names(self) -> dict[tuple[int | None, int | None], str | None]:
        calls = [call for step in self.trajectory.steps for call in step.calls]
        return {(call.step, call.call): call.name for call in calls}

    def _text(self, row: Step | Observation, extra: Extra, path: str) -> Any:
        """The content; a string, but for what was read from this format as something else."""
        blobs = self.trajectory.media
        if self.native:
            return write_content(row, extra, blobs)
        content = write_foreign_content(row, extra, blobs, path, self.losses)
        if content is None:
            return ""
        if not isinstance(content, list):
            return content
        parts = json.loads(row.content or "[]")
        texts = [part for part in parts if part["type"] == "text"]
        if self.lists and len(texts) == len(content):
            return content
        for index, part in enumerate(parts):
            if part["type"] == "media":
                reason = "an image or a sound becomes its address in the text"
                self.losses.add(f"{path}.content[{index}]", reason)
        if len(texts) > 1:
            self.losses.add(f"{path}.content", "the texts become one, joined by a blank line")
        return string(JOINT.join(map(_words, content)))

    @staticmethod
    def _time_columns(row: Step | Observation) -> frozenset[str]:
        return _TIME if row.timestamp is not None else frozenset()

    def _add_time(self, row: Step | Observation, extra: Extra, path: str, known: Line) -> None:
        """The time in milliseconds, in the digits of the source while they say the same."""
        if row.timestamp is None:
            return
        stamp = row.timestamp if row.timestamp.tzinfo else row.timestamp.replace(tzinfo=UTC)
        text = extra.shape.get("exact", {}).get("timestamp")
        if text is None or time_of(text) != stamp:
            text = digits_of(stamp)
            if time_of(text) != stamp:
                self.losses.add(f"{path}.timestamp", "a time is written in whole milliseconds")
        known["timestamp"] = jsontext.raw(text)

    def _enveloped(self, known: Line, extra: Extra) -> Line:
        """The line around a message."""
        kept = dict(self.kept(extra))
        names = extra.shape.get("line")
        # A run that came through another format has its keys, but not how its lines looked.
        extra_keys = [f"line.{name}" for name in names] if names is not None else list(kept)
        around = {
            name.removeprefix("line."): kept.pop(name)
            for name in extra_keys
            if name.startswith("line.") and name in kept
        }
        keys = extra.shape.get("keys")
        if keys is not None and "content" not in keys and known["content"] is None:
            del known["content"]
        message = arrange(known, kept, keys)
        return arrange({"type": "message", "message": message}, around, names)


def digits_of(time: datetime) -> str:
    """A time as milliseconds since 1970."""
    return str((time - _EPOCH) // timedelta(milliseconds=1))


def time_of(text: str) -> datetime | None:
    """The time that a number of milliseconds since 1970 stands for; None when it is too far."""
    try:
        return _EPOCH + timedelta(milliseconds=float(text))
    except (ValueError, OverflowError):
        return None


def _words(part: Any) -> str:
    """A part of a content list as text."""
    plain = json.loads(jsontext.encode(part))
    if isinstance(plain, str):
        return plain
    if "image_url" in plain:
        url = plain["image_url"]
        return f"![image]({url['url'] if isinstance(url, dict) else url})"
    if "input_audio" in plain:
        audio = plain["input_audio"]
        return f"![audio](data:audio/{audio['format']};base64,{audio['data']})"
    return str(plain.get("text", ""))
