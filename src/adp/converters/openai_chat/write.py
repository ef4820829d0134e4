"""Writing: a trajectory into a row."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import Raw

from adp.converters.call_ids import written_ids
from adp.converters.openai_chat import keys as k
from adp.converters.openai_chat.content import write_content, write_foreign_content
from adp.converters.pairs import is_rejected_step
from adp.converters.scalars import write_field, write_number
from adp.converters.unwritten_columns import REASON, RENUMBERED, report_columns
from adp.converters.via_atif import came_from, kept_extra
from adp_schema import jsontext, media
from adp_schema.extra_column import Extra, original, unpack
from adp_schema.losses import Losses
from adp_schema.model import Observation, Row, Step, ToolCall, Trajectory

_RECORD = frozenset({"source_id", "task_id", "agent_model", "success", "reward", "tools"})
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
    report_columns(trajectory, writer.carried(_RECORD), "$", losses)
    for index, link in enumerate(trajectory.links):
        report_columns(link, frozenset(), f"$.links[{index}]", losses)
    if trajectory.task is not None:
        report_columns(trajectory.task, frozenset(), "$.task", losses)
    messages: Any = list(writer.messages())
    if (layout := extra.shape.get("messages")) is not None:
        messages = jsontext.string(k.write_string(messages, layout))
    known: dict[str, Any] = {"messages": messages}
    for column, names, kind in k.RECORD_FIELDS:
        key = extra.shape.get("fields", {}).get(column, names[0])
        value = original(trajectory, column, extra)
        if column == "source_id" and value is None and not writer.native:
            value = trajectory.trajectory_id
        if value is not None:
            known[key] = write_field(value, kind, key, extra)
    if trajectory.tools is not None:
        text = original(trajectory, "tools", extra)
        is_string = extra.shape.get("tools") == "string"
        tools: Any = jsontext.string(text) if is_string else jsontext.raw(text)
        known[extra.shape.get("tools_key", "tools")] = tools
    order = [*k.RECORD_FIELDS[0][1], "messages", "tools", "functions"]
    rank = {name: index for index, name in enumerate(order)}
    known = dict(sorted(known.items(), key=lambda item: rank.get(item[0], len(rank))))
    return arrange(known, writer.kept(extra), extra.shape.get("keys"))


def arrange(known: dict[str, Any], kept: dict[str, Raw], names: list[str] | None) -> dict[str, Any]:
    """Put the keys of an object in the order of the source.

    Args:
        known: values that come from columns.
        kept: keys of the source that ``extra`` holds.
        names: keys of the source in order, when they are not the usual ones; one that has no
            value was null.
    """
    if names is None:
        return {**known, **kept}
    full = {**known, **kept}
    ordered = {name: full.pop(name, None) for name in names}
    return {**ordered, **{name: value for name, value in full.items() if value is not None}}


def _string(value: Any) -> Any:
    return jsontext.string(value) if isinstance(value, str) else value


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
        self._ids = {} if native else written_ids(trajectory)

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

    def messages(self) -> Iterator[dict[str, Any]]:
        """All messages in order."""
        for index, observation in enumerate(self.trajectory.early_observations):
            yield self._result(observation, f"$.early_observations[{index}]")
        for index, step in enumerate(self.trajectory.steps):
            path = f"$.steps[{index}]"
            yield self._step(step, path)
            for order, observation in enumerate(step.observations):
                yield self._result(observation, f"{path}.observations[{order}]")

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
            "role": _string(role),
            "content": self._content(step, extra, path),
        }
        if step.actor is not None:
            known["name"] = _string(original(step, "actor", extra))
        if step.reasoning is not None:
            reasoning = media.restore(original(step, "reasoning", extra), blobs)
            known[extra.shape.get("reasoning", "reasoning_content")] = _string(reasoning)
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
        return None if weight is None else write_number(weight, "weight", extra)

    def _not_trained(self, step: Step) -> bool:
        """Whether a step of the agent is copied context, or preference pairs reject it."""
        name, pairs = self.trajectory.trajectory_id, self.trajectory.pairs
        if step.source != "agent" or step.is_copied_context or self.native:
            return step.source == "agent" and bool(step.is_copied_context)
        return any(is_rejected_step(pair, name, step.step) for pair in pairs)

    def _content(self, row: Step | Observation, extra: Extra, path: str) -> Any:
        blobs = self.trajectory.media
        if self.native:
            return write_content(row, extra, blobs, native=True)
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
            if call.native_id is not None and self.id_of(call, form) != call.native_id:
                self.losses.add(f"{place}.native_id", RENUMBERED)
            if form.shape.get("form") == "function_call":
                child = self._function(call, form)
                kept = self.kept(form)
                known["function_call"] = arrange(child, kept, form.shape.get("function"))
            else:
                calls.append(self.call(call, form))
        listed = extra.shape.get("tool_calls")
        if calls or listed is not None:
            known["tool_calls"] = calls
            if isinstance(listed, dict):
                known["tool_calls"] = jsontext.string(k.write_string(calls, listed))
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

    def id_of(self, call: ToolCall, extra: Extra) -> str | None:
        """The id under which a call is written."""
        if self.native and call.native_id is None:
            return original(call, "call_id", extra)  # type: ignore[no-any-return]
        if self.native or (call.step, call.call) not in self._ids:
            column = "native_id" if self.native else "call_id"
            return original(call, column, extra)  # type: ignore[no-any-return]
        name = self._ids[call.step, call.call]
        return original(call, "native_id", extra) if name == call.native_id else name

    def call(self, call: ToolCall, extra: Extra) -> dict[str, Any]:
        """A call as an object."""
        form = extra.shape.get("form", "function")
        kept = dict(self.kept(extra))
        child = self._function(call, extra)
        known: dict[str, Any] = {}
        call_id = self.id_of(call, extra)
        if call_id is not None:
            known["id"] = _string(call_id)
        if form == "flat":
            if "type" in extra.shape.get("keys", []) and "type" not in kept:
                known["type"] = _string(extra.shape.get("type", "function"))
            return arrange({**known, **child}, kept, extra.shape.get("keys"))
        known["type"] = _string(extra.shape.get("type", "function"))
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
            child["name"] = _string(name)
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
            return jsontext.text_of({key: _string(media.restore(loose, self.trajectory.media))})
        if loose is None:
            return None if self.native else "{}"
        return jsontext.string(loose)

    def answered(self, row: Observation, extra: Extra, path: str) -> str | None:
        """The id of the call that a result answers, as the target writes it."""
        first, second = "native_call_id", "call_id"
        if not self.native:
            first, second = second, first
        column = first if getattr(row, first) is not None else second
        answered: str | None = original(row, column, extra)
        if not self.native:
            answered = self._ids.get((row.call_step, row.call), answered)
            if row.call_step is not None and row.native_call_id not in (None, answered):
                self.losses.add(f"{path}.native_call_id", RENUMBERED)
            if answered is not None and row.call_step is None:
                self.losses.add(f"{path}.{column}", "no call before it has this id")
        return answered

    def _result(self, row: Observation, path: str) -> dict[str, Any]:
        extra = self.extra(row)
        known: dict[str, Any] = {"role": _string(extra.shape.get("role", "tool"))}
        answered = None if extra.shape.get("by_order") else self.answered(row, extra, path)
        if answered is not None:
            known["tool_call_id"] = _string(answered)
        elif not self.native:
            known["role"] = "user"
            self.losses.add(f"{path}.source", "a result without a call gets the role user")
        if row.name is not None:
            known["name"] = _string(original(row, "name", extra))
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
