"""Writing: a trajectory into a row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Raw

from adp.converters.call_ids import CallIds
from adp.converters.openai_chat import keys as k
from adp.converters.openai_chat.content import write_content, write_foreign_content
from adp.converters.pairs import is_rejected_step
from adp.converters.scalars import Fields, write_fields, write_number
from adp.converters.unwritten_columns import REASON, report_columns
from adp.converters.via_atif import came_from, kept_extra
from adp.converters.writing import (
    arrange,
    in_order,
    is_seen,
    leave_out,
    report_beside,
    report_left_call,
    rows_of,
    string,
    write_string,
)
from adp_schema import jsontext, media
from adp_schema.extra_column import Extra, original, unpack
from adp_schema.losses import Losses
from adp_schema.model import Observation, Row, Step, ToolCall, Trajectory

_STEP = frozenset({"source", "kind", "actor", "text", "content", "reasoning", "loss_weight"})
_CALL = frozenset(
    {"call_id", "kind", "name", "arguments", "arguments_raw", "native_id", "requestor", "language"}
)
_RESULT = frozenset({"call_id", "native_call_id", "source", "name", "text", "content"})
_EXTRA = frozenset({"extra"})
_TAKEN = frozenset(
    {
        *("messages", "tools", "functions", *(n for _, names, _ in k.RECORD_FIELDS for n in names)),
        *("content", "name", "reasoning_content", "tool_calls", "weight"),
        *("tool_call_id", "type", "function"),
    }
)
"""Keys that a foreign trajectory is written under."""


def write_record(trajectory: Trajectory, losses: Losses) -> dict[str, Any]:
    """Convert one trajectory; what the format has no place for is reported."""
    writer = ChatWriter(trajectory, losses, native=trajectory.source_format == k.NAME)
    extra = writer.extra(trajectory)
    head = writer.head(k.RECORD_FIELDS, {"source_id": trajectory.trajectory_id})
    messages: Any = [message for _, message in writer.rows()]
    if (layout := extra.shape.get("messages")) is not None:
        messages = write_string(messages, layout)
    order = [*k.RECORD_FIELDS[0][1], "messages", "tools", "functions"]
    known = in_order({"messages": messages, **head}, order)
    return arrange(known, writer.kept(extra), extra.shape.get("keys"))


class ChatWriter:
    """Writes the messages of one trajectory.

    Args:
        trajectory: what is written.
        losses: takes what the format has no place for.
        native: whether the trajectory was read from the format that is written, so that its form
            is known.
    """

    name = k.NAME
    taken = _TAKEN

    def __init__(self, trajectory: Trajectory, losses: Losses, *, native: bool) -> None:
        self.trajectory = trajectory
        self.losses = losses
        self.native = native
        self._keeps = native or came_from(trajectory, self.name)
        self._ids = CallIds(trajectory, losses, native=native)
        self._left_out: set[tuple[int | None, int | None]] = set()

    def extra(self, row: Row) -> Extra:
        """A row's ``extra``; the form of another format means nothing here."""
        text: str | None = row.extra  # type: ignore[attr-defined]
        return unpack(text) if self.native else kept_extra(text, self.taken, native=self._keeps)

    def carried(self, columns: frozenset[str]) -> frozenset[str]:
        """Columns that are written; ``extra`` too when it is of this format."""
        return columns | _EXTRA if self._keeps else columns

    def kept(self, extra: Extra) -> dict[str, Raw]:
        """Keys of the source that go back as they were."""
        return extra.fields if self._keeps else {}

    def head(self, fields: Fields, defaults: Mapping[str, Any]) -> dict[str, Any]:
        """What columns say of the whole run; the others are reported.

        Args:
            fields: the columns and their keys.
            defaults: column -> value that a run of another format gets where it has none.
        """
        run, extra = self.trajectory, self.extra(self.trajectory)
        columns = {"tools", *(column for column, _, _ in fields)}
        report_columns(run, self.carried(frozenset(columns)), "$", self.losses)
        report_beside(run, self.losses)
        known = write_fields(fields, run, extra, {} if self.native else defaults)
        if run.tools is not None:
            text = original(run, "tools", extra)
            is_string = extra.shape.get("tools") == "string"
            tools = jsontext.string(text) if is_string else jsontext.raw(text)
            known[extra.shape.get("tools_key", "tools")] = tools
        return known

    def rows(self) -> Iterator[tuple[Step | Observation, dict[str, Any]]]:
        """Each step and observation in order, with its message.

        Steps that no model saw are left out: they would stand between a call and its result.
        """
        for row, path in rows_of(self.trajectory):
            if isinstance(row, Step) and not self._keeps and not is_seen(row):
                self._left_out.update((call.step, call.call) for call in row.calls)
                leave_out(row, path, self.losses)
                continue
            write: Any = self._step if isinstance(row, Step) else self._result
            yield row, write(row, path)

    def _step(self, step: Step, path: str) -> dict[str, Any]:
        extra = self.extra(step)
        weight = self._weight(step, path, extra)
        masked = _STEP | {"is_copied_context"} if step.source == "agent" else _STEP
        report_columns(step, self.carried(masked), path, self.losses)
        if step.kind in ("context_edit", "event"):
            self.losses.add(f"{path}.kind", f"a step of kind {step.kind} becomes a message")
        role = extra.shape.get("role", k.USUAL_ROLES[step.source or "user"])
        if step.source == "environment" and not self.native and "role" not in self.kept(extra):
            role = "user"
            self.losses.add(f"{path}.source", "environment is written as the role user")
        blobs = self.trajectory.media
        known: dict[str, Any] = {
            "role": string(role),
            "content": self._content(step, extra, path),
        }
        if known["content"] is None and not self._keeps and step.source != "agent":
            known["content"] = ""  # only an assistant's message may go without
        if step.actor is not None:
            known["name"] = string(original(step, "actor", extra))
        if step.reasoning is not None:
            reasoning = media.restore(original(step, "reasoning", extra), blobs)
            known[extra.shape.get("reasoning", "reasoning_content")] = string(reasoning)
        self.add_calls(step, path, extra, known)
        if weight is not None:
            known["weight"] = weight
        names = extra.shape.get("keys")
        if names is not None and "content" not in names and known["content"] is None:
            del known["content"]
        return arrange(known, self.kept(extra), names)

    def _weight(self, step: Step, path: str, extra: Extra) -> Any:
        """The weight of a message in the loss: 0 where its step is not to be trained."""
        weight = step.loss_weight
        if weight != 0 and self._not_trained(step):
            if weight is not None:
                self.losses.add(f"{path}.loss_weight", "what is not to be trained gets weight 0")
            return 0
        return write_number(weight, "weight", extra.shape)

    def _not_trained(self, step: Step) -> bool:
        """Whether a step of the agent is copied context, or preference pairs reject it."""
        name, pairs = self.trajectory.trajectory_id, self.trajectory.pairs
        if step.source != "agent" or step.is_copied_context or self.native:
            return step.source == "agent" and bool(step.is_copied_context)
        return any(is_rejected_step(pair, name, step.step) for pair in pairs)

    def _content(self, row: Step | Observation, extra: Extra, path: str) -> Any:
        blobs = self.trajectory.media
        if self.native:
            return write_content(row, extra, blobs)
        return write_foreign_content(row, extra, blobs, path, self.losses)

    def add_calls(
        self,
        step: Step,
        path: str,
        extra: Extra,
        known: dict[str, Any],
        carried: frozenset[str] = _CALL,
    ) -> None:
        """Add the calls of a step to its message; columns that are not carried are reported."""
        calls: list[Any] = []
        for index, call in enumerate(step.calls):
            form = self.extra(call)
            place = f"{path}.calls[{index}]"
            report_columns(call, self.carried(carried), place, self.losses)
            self._report_kind(step, call, carried, place)
            if form.shape.get("form") == "function_call":
                child = self._function(call, form)
                kept = self.kept(form)
                known["function_call"] = arrange(child, kept, form.shape.get("function"))
            else:
                calls.append(self._call(call, form, place))
        listed = extra.shape.get("tool_calls")
        if calls or listed is not None:
            known["tool_calls"] = calls
            if isinstance(listed, dict):
                known["tool_calls"] = write_string(calls, listed)
        if "function_call" in known and "tool_calls" in known:
            known["function_call"] = known.pop("function_call")

    def _report_kind(self, step: Step, call: ToolCall, carried: frozenset[str], path: str) -> None:
        """Report what a call of another format is beyond a function that the agent calls."""
        if self.native:
            return
        if call.kind not in (None, "function"):
            self.losses.add(f"{path}.kind", f"a call of kind {call.kind} becomes one of a function")
        if call.language is not None and (call.name is not None or call.kind != "code"):
            self.losses.add(f"{path}.language", REASON)
        if "requestor" in carried and call.requestor == "user" and step.source != "user":
            self.losses.add(f"{path}.requestor", "a call belongs to whom its message does")

    def _call(self, call: ToolCall, extra: Extra, path: str) -> dict[str, Any]:
        """A call as an object."""
        form = extra.shape.get("form", "function")
        kept = dict(self.kept(extra))
        child = self._function(call, extra)
        known: dict[str, Any] = {}
        call_id = self._ids.of(call, extra, path)
        if call_id is not None:
            known["id"] = string(call_id)
        if form == "flat":
            if "type" in extra.shape.get("keys", []) and "type" not in kept:
                known["type"] = string(extra.shape.get("type", "function"))
            return arrange({**known, **child}, kept, extra.shape.get("keys"))
        known["type"] = string(extra.shape.get("type", "function"))
        inner_kept = jsontext.decode_exact(kept.pop(form)) if form in kept else {}
        known[form] = arrange(child, inner_kept, extra.shape.get("function"))
        names = extra.shape.get("keys")
        if names is not None and "type" not in names:
            del known["type"]
        return arrange(known, kept, names)

    def _function(self, call: ToolCall, extra: Extra) -> dict[str, Any]:
        child: dict[str, Any] = {}
        name = original(call, "name", extra)
        if name is None and not self.native:
            name = call.language or ("" if call.kind == "function" else call.kind)
        if name is not None:
            child["name"] = string(name)
        key = "input" if extra.shape.get("form") == "custom" else "arguments"
        value = self._arguments(call, extra)
        if value is not None:
            child[key] = value
        return child

    def _arguments(self, call: ToolCall, extra: Extra) -> Any:
        text = original(call, "arguments", extra)
        loose = original(call, "arguments_raw", extra)
        if self.native and call.arguments_kind == "object":
            written = text if text is not None else loose
            return None if written is None else jsontext.raw(written)
        if text is not None:
            return jsontext.string(text)
        if loose is not None and not self.native and call.arguments_kind == "text":
            key = "code" if call.kind == "code" else "input"
            return jsontext.text_of({key: string(media.restore(loose, self.trajectory.media))})
        if loose is None:
            return None if self.native else "{}"
        return jsontext.string(loose)

    def answered(self, row: Observation, extra: Extra, path: str) -> str | None:
        """The id of the call that a result answers, as the target writes it; None without it."""
        if row.call_step is not None and (row.call_step, row.call) in self._left_out:
            report_left_call(row, path, self.losses)
            return None
        answered = self._ids.answered(row, extra, path)
        if not self.native and answered is not None and row.call_step is None:
            column = "call_id" if row.call_id is not None else "native_call_id"
            self.losses.add(f"{path}.{column}", "no call before it has this id")
        return answered

    def _result(self, row: Observation, path: str) -> dict[str, Any]:
        extra = self.extra(row)
        known: dict[str, Any] = {"role": string(extra.shape.get("role", "tool"))}
        answered = None if extra.shape.get("by_order") else self.answered(row, extra, path)
        if answered is not None:
            known["tool_call_id"] = string(answered)
        elif not self.native:
            known["role"] = "user"
            self.losses.add(f"{path}.source", "a result without a call gets the role user")
        if row.name is not None:
            known["name"] = string(original(row, "name", extra))
        content = self._content(row, extra, path)
        if content is None and not self.native:
            content = ""
        known["content"] = content
        if not self.native and row.source not in (None, "environment"):
            self.losses.add(
                f"{path}.source", f"{row.source} is written as the role {known['role']}"
            )
        tree_written = row.text is None and not self.native
        carried = _RESULT | {"axtree"} if tree_written else _RESULT
        report_columns(row, self.carried(carried), path, self.losses)
        names = extra.shape.get("keys")
        if names is not None and "content" not in names and content is None:
            del known["content"]
        return arrange(known, self.kept(extra), names)
