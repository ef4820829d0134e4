"""Sessions of Codex that are written: a rollout with the items of the conversation, in order.

Codex resumes a session from its items. Events that say their words again are written too, since
its screen shows those. The first system prompt stands in the header, where Codex takes it from;
Codex offers its own tools. A report of tokens ends a turn, or else what begins the next one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from msgspec import Raw

from adp.converters.readers.codex.write_header import CodexHeaderWriter
from adp.converters.readers.codex.write_lines import AROUND, USAGE
from adp.converters.session_writers.blocks import Block
from adp.converters.session_writers.values import Line, object_at, objects_at, text_at
from adp.converters.unwritten_columns import REASON
from adp.converters.writing import string
from adp_schema import jsontext
from adp_schema.extra_column import original, unpack
from adp_schema.losses import Losses
from adp_schema.model import Observation, Step, ToolCall, Trajectory

_HOSTED = {"web_search_call": "id", "image_generation_call": "id", "local_shell_call": "call_id"}


class CodexWriter(CodexHeaderWriter):
    """Writes a session."""

    name: ClassVar[str] = "codex"
    turn_columns: ClassVar[frozenset[str]] = frozenset({*USAGE, "reasoning_effort"})
    native_columns: ClassVar[frozenset[str]] = frozenset({
        *("agent_name", "agent_version", "started_at", "started_text", "final_metrics"),
        *("terminated", "stop_reason", "error_type", "error_message", "final_answer", "tools"),
        *("tools_origin", "total_tokens_in", "total_tokens_out", "total_tokens_cached", "usage"),
        *("time_zone_known", "synthetic", "visibility", "exit_code", "duration_ms", "native_id"),
        *("status", "response_id", "session_id", "is_error", "structured", "actor"),
    })  # fmt: skip

    def __init__(self, run: Trajectory, losses: Losses) -> None:
        super().__init__(run, losses)
        self._model: str | None = None
        self._effort: str | None = None
        self._custom: set[str] = set()

    def lines(self) -> list[Line]:
        """The header and the items."""
        self.report_run()
        return [self.header(), *self.body()]

    # ---- rows ------------------------------------------------------------------------------

    def message(self, step: Step, path: str) -> Iterator[Line]:
        """A message of the user, or of the developer; its words are shown by events."""
        blocks = self.blocks(step, path)
        if self.place_in_header(step) is not None and any(step is it for it in self.run.steps[:2]):
            if step.timestamp is not None:
                self.losses.add(f"{path}.timestamp", "a system prompt in the header has no time")
            return
        self._open = False
        role = "developer" if step.source == "system" else "user"
        content = [self._part(block, "input") for block in blocks]
        item: Line = {"type": "message", "role": role, "content": content}
        fields = self._left(step, path, "user_message", "UserMessage")
        if text_at(fields, "type") == "agent_message":
            item = {"type": "agent_message", "author": string(step.actor), "content": content}
        if self.native and step.native_id is not None:
            item["id"] = string(step.native_id)
        yield self._item(step, item, fields)
        if "author" in item:
            return
        if role == "user" and "role" not in fields and not step.synthetic:
            for block in blocks:
                if block.kind == "text":
                    yield self._event(step, "user_message", {"message": string(block.text)})

    def _left(self, step: Step, path: str, *events: str) -> dict[str, Raw]:
        """The keys of an item; what events said beyond it is written no more."""
        fields = dict(self.fields(step))
        if text_at(fields, "type") in events:  # no item said it
            for name in fields:
                self.losses.add(f"{path}.extra.{name}", "what an event said beyond its words")
            return {}
        for name in [key for key in fields if key.split("#")[0] in events]:
            del fields[name]
            self.losses.add(f"{path}.extra.{name}", "what an event said beyond the item")
        return fields

    def turn(self, step: Step, path: str) -> Iterator[Line]:
        """The items of a turn: reasoning, messages and calls in their order."""
        yield from self._context(step, path)
        rests = self._rests(step, path)
        for key in set(self.fields(step)) - {"items"}:
            self.losses.add(f"{path}.extra.{key}", REASON)
        blocks = self.blocks(step, path)
        thoughts = [block for block in blocks if block.kind == "reasoning"]
        for rest in rests[len(thoughts) :]:
            yield self._item(step, {"type": "reasoning", "summary": []}, rest)
        for block in blocks:
            if block.kind == "call":
                yield self._call(step, block.call, path)
            elif block.kind == "reasoning":
                yield from self._reasoning(step, block, rests.pop(0) if rests else {})
            else:
                part = self._part(block, "output")
                item = {"type": "message", "role": "assistant", "content": [part]}
                yield self._item(step, item, {})
                if block.kind == "text":
                    yield self._event(step, "agent_message", {"message": string(block.text)})
        if not blocks and not rests:
            item = {"type": "message", "role": "assistant", "content": []}
            yield self._item(step, item, {})
        self._open = True
        if (usage := self._usage(step)) is not None:
            yield self._tokens(step, usage)

    def _context(self, step: Step, path: str) -> Iterator[Line]:
        """What parts a turn from the one before, or says its model."""
        model = self.model_of(step)
        changed = (model, step.reasoning_effort) != (self._model, self._effort)
        if model is not None and (self._open or changed):
            self._model, self._effort = model, step.reasoning_effort
            payload = {"cwd": string(self.cwd), "approval_policy": "on-request",
                       "sandbox_policy": {"type": "read-only"}, "model": string(model),
                       "effort": string(step.reasoning_effort), "summary": "auto"}  # fmt: skip
            yield self._line("turn_context", step, payload)
        if model is None and step.reasoning_effort not in (None, self._effort):
            self.losses.add(f"{path}.reasoning_effort", "it is said with a model")
        if model is None and self._open:
            turn = f"turn-{step.step}"
            yield self._line("event_msg", step, {"type": "task_started", "turn_id": turn})

    def _rests(self, step: Step, path: str) -> list[dict[str, Raw]]:
        """What items of reasoning say beside their words, such as the encrypted ones."""
        items = objects_at(self.fields(step), "items")
        rests = [item for item in items if text_at(item, "type") == "reasoning"]
        if len(rests) < len(items):
            self.losses.add(f"{path}.extra.items", "what a message says beside its words")
        return [{key: it for key, it in rest.items() if key != "type"} for rest in rests]

    def _reasoning(self, step: Step, block: Block, rest: dict[str, Raw]) -> Iterator[Line]:
        text = string(block.text)
        item = {"type": "reasoning", "summary": [{"type": "summary_text", "text": text}]}
        yield self._item(step, item, rest)
        yield self._event(step, "agent_reasoning", {"text": text})

    def _call(self, step: Step, call: ToolCall, path: str) -> Line:
        name, call_id = string(self.call_name(call)), self.call_id(call, path)
        fields = self.fields(call)
        kind = text_at(fields, "type")
        text, is_object = self.arguments(call)
        status = {} if call.status is None else {"status": string(call.status)}
        if kind in _HOSTED and kind == f"{name}_call":
            given = {_HOSTED[kind]: string(call_id), **status}
            action = {"action": jsontext.raw(text)} if call.arguments is not None else {}
            return self._item(step, {"type": kind, **given, **action}, fields)
        if kind in _HOSTED:  # it was renamed
            fields = {key: raw for key, raw in fields.items() if key != "type"}
        if call.kind == "code" and not is_object:
            text = jsontext.text_of(self.arguments_object(call, path))
        elif call.arguments_kind == "text" and call.arguments is None:
            kind = "custom_tool_call"
        if kind == "custom_tool_call":
            self._custom.add(call_id)
            item = {"type": "custom_tool_call", **status, "call_id": string(call_id),
                    "name": name, "input": string(text)}  # fmt: skip
        else:
            item = {"type": "function_call", "name": name, "arguments": string(text),
                    "call_id": string(call_id), **(status if self.native else {})}  # fmt: skip
        return self._item(step, item, fields)

    def result(self, row: Observation, answered: str, path: str) -> Iterator[Line]:
        """An output; what a command did besides is an event."""
        self._open = False
        blocks = [self._part(block, "input") for block in self.blocks(row, path)]
        plain = len(blocks) < 2 and all(
            isinstance(block, dict) and "text" in block for block in blocks
        )
        output = (blocks[0]["text"] if blocks else "") if plain else blocks
        custom = "custom_tool_call" if answered in self._custom else "function_call"
        fields = self.fields(row)
        for key in [key for key in fields if key in ("events", "type")]:
            fields = {name: raw for name, raw in fields.items() if name != key}
            self.losses.add(f"{path}.extra.{key}", REASON)
        item = {"type": f"{custom}_output", "call_id": string(answered), "output": output}
        yield self._item(row, item, fields)
        if self.native and row.structured is not None:
            report = object_at(
                {"it": jsontext.raw(original(row, "structured", unpack(row.extra)))}, "it"
            )
            if "type" in report:
                ids = {"call_id": jsontext.raw(jsontext.text_of(answered))}
                yield self._noted(row, {**report, **ids})  # whatever else it was known by
            else:
                self.losses.add(f"{path}.structured", REASON)

    def noted(self, step: Step, fields: dict[str, Raw], path: str) -> Iterator[Line]:
        """A line that is no item."""
        if "type" not in fields:
            for key in fields:
                self.losses.add(f"{path}.extra.{key}", REASON)
            return
        if text_at(fields, "type") == "turn_context":
            self._model, self._effort = text_at(fields, "model") or self._model, None
            self._effort = text_at(fields, "effort") or None
        self._open = False
        yield self._noted(step, fields)

    def edit(self, step: Step, path: str) -> Iterator[Line]:
        """A compaction; a rollback that was read from Codex; other edits have no place."""
        self._open = False
        fields = self.fields(step)
        if text_at(fields, "type") == "thread_rolled_back":
            yield self._noted(step, fields)
        elif not self.native and (step.edit_summary is None or step.edit_boundary != "replace"):
            yield from self.leave_out(step, path, "an edit of the context without a summary")
        else:
            carried = frozenset({"source", "kind", "edit_boundary", "edit_summary"})
            self.report(step, carried, path)
            for key in fields:
                if key not in ("type", *AROUND):
                    self.losses.add(f"{path}.extra.{key}", REASON)
            message = string(original(step, "edit_summary", unpack(step.extra)) or "")
            yield self._line("compacted", step, {"message": message})
