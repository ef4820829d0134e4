"""Sessions of Claude Code that are written: a record a message, each after the one before.

A turn of the model is one record with all its blocks, as older versions wrote it. The system
prompt and the tools stand in a ``prompt_snapshot``, which is not sent again: Claude Code makes its
own. A branch leaves the record after which it began, and stands before what follows that.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import ClassVar

from adp.converters.readers.claude_code.names import CONSTANT
from adp.converters.readers.claude_code.write_records import (
    USAGE,
    ClaudeRecords,
    Fields,
    number,
    plain,
    tools_of,
)
from adp.converters.session_writers.names import (
    uuid_of,
)
from adp.converters.session_writers.values import Line, iso, object_at, text_at
from adp.converters.unwritten_columns import REASON
from adp.converters.writing import string
from adp_schema import jsontext
from adp_schema.extra_column import original, unpack
from adp_schema.losses import Losses
from adp_schema.model import Observation, Step, Trajectory

_AGENT = re.compile(r"(.+)/agent-(.+)")


class ClaudeWriter(ClaudeRecords):
    """Writes a session, a subagent of one, or a branch."""

    name: ClassVar[str] = "claude_code"
    model_from: ClassVar[int] = 0
    apart: ClassVar[frozenset[str]] = frozenset({"subagent"})
    run_columns: ClassVar[frozenset[str]] = frozenset({"tools", "tools_origin"})
    turn_columns: ClassVar[frozenset[str]] = frozenset({
        *("tokens_in", "tokens_reasoning", *USAGE, "response_id", "stop_reason", "duration_ms"),
        *("cost_usd", "reasoning_effort"),
    })  # fmt: skip
    message_columns: ClassVar[frozenset[str]] = frozenset({"synthetic"})
    result_columns: ClassVar[frozenset[str]] = frozenset({"is_error"})
    native_columns: ClassVar[frozenset[str]] = frozenset({
        *("agent_name", "agent_version", "started_at", "started_text", "ended_at", "ended_text"),
        *("time_zone_known", "error_type", "error_message", "total_cost_usd", "native_id", "usage"),
        *("synthetic", "llm_call_count", "loss_weight", "labels", "actor", "visibility"),
        *("is_copied_context", "structured", "exit_code", "duration_ms", "truncated", "subagent"),
    })  # fmt: skip

    def __init__(self, run: Trajectory, losses: Losses) -> None:
        super().__init__(run, losses)
        self._responses: set[str] = set()
        self._prompted = False
        self._prompts: set[str | None] = set()

    def session_name(self) -> str:
        """The session of a subagent is that of its agent."""
        match = _AGENT.fullmatch(self.run.source_id or "") if self.native else None
        return match[1] if match else super().session_name()

    def kind_of(self, branch: Trajectory) -> str:
        """A turn beside another one is an alternative to it."""
        if branch.branch_kind == "subagent":
            return "subagent"
        return "alternate" if branch.steps[0].source == "agent" else "rewind"

    def lines(self) -> list[Line]:
        """The records of the session."""
        self.report_run()
        for key in self.kept:
            if key not in (*CONSTANT, "meta", "parent_source_id"):
                self.losses.add(f"$.extra.{key}", REASON)
        if self.run.branch_kind == "subagent":
            self.previous = None
        first = next((step for step in self.run.steps if step.kind != "event"), Step())
        prompted = self.embedded or self.run.tools is None or self._is_prompt(first)
        opening = [] if prompted else [self._snapshot({})]
        lines = [*opening, *self.body()]
        return lines or [{"type": "mode", "mode": "normal", "sessionId": self.session}]

    # ---- rows ------------------------------------------------------------------------------

    def _is_prompt(self, step: Step) -> bool:
        if step.source != "system" or step.kind != "message":
            return False
        kind = text_at(object_at(self.fields(step), "attachment"), "type")
        return kind in ("", "prompt_snapshot") and "rendered" not in self.fields(step)

    def _snapshot(self, attached: Line, step: Step | None = None) -> Line:
        """The system prompt, and the tools with the first one."""
        if self.run.tools is not None and not self._prompted and not self.embedded:
            text = original(self.run, "tools", unpack(self.run.extra))
            attached["tools"] = jsontext.raw(text) if self.native else tools_of(text)
        self._prompted = True
        fields = {} if step is None else self.fields(step)
        more = {"attachment": {"type": "prompt_snapshot", **attached}}
        name = "$.tools" if step is None else step.native_id or f"$.steps[{step.step}]"
        return self._record("attachment", self.time(step), name, more, fields)

    def message(self, step: Step, path: str) -> Iterator[Line]:
        """A prompt, or what the harness adds."""
        content = self._content(self.blocks(step, path))
        if self._is_prompt(step):
            words = [plain([block]) for block in content]
            if step.text is not None and step.text in self._prompts:
                self.losses.add(f"{path}.text", "a system prompt is said once")
            self._prompts.add(step.text)
            yield self._snapshot({"systemPrompt": words}, step)
            return
        fields = self.fields(step)
        name = step.native_id or path
        attached = object_at(fields, "attachment")
        if attached:
            held: Line = {"attachment": {"prompt": content}}
            if text_at(attached, "type") != "queued_command" or "renderedRole" in fields:
                fields = {key: raw for key, raw in fields.items() if key != "rendered"}
                held = {"attachment": {}, "rendered": [{"content": content}]}
            yield self._record("attachment", self.time(step), name, held, fields)
            return
        more: Line = {"message": {"role": "user", "content": plain(content)}}
        if step.synthetic and "origin" not in fields:
            more["isMeta"] = True
        if self.native and step.visibility == "user":
            more["isVisibleInTranscriptOnly"] = True
        yield self._record("user", self.time(step), name, more, fields)

    def turn(self, step: Step, path: str) -> Iterator[Line]:
        """A response with all its blocks."""
        name = original(step, "response_id", unpack(step.extra))
        if name is None or name in self._responses:
            if name is not None:
                self.losses.add(f"{path}.response_id", "another turn has this id")
            name = f"msg_{uuid_of(self.run.trajectory_id or '', path).replace('-', '')[:24]}"
        self._responses.add(name)
        message: Line = {"id": string(name), "type": "message", "role": "assistant"}
        if (model := self.model_of(step)) is not None:
            message["model"] = string(model)
        message |= {"content": self._content(self.blocks(step, path), path),
                    "stop_reason": string(step.stop_reason), "stop_sequence": None}  # fmt: skip
        usage = self._usage(step)
        if usage is not None:
            message["usage"] = usage
        more: Line = {"message": message}
        pairs = (("durationMs", step.duration_ms), ("costUSD", step.cost_usd))
        more |= {key: number(value) for key, value in pairs if value is not None}
        if step.reasoning_effort is not None:
            more["effort"] = string(step.reasoning_effort)
        fields = self.fields(step)
        for key in fields:
            if re.match(r"uuid|.+#", key):
                self.losses.add(f"{path}.extra.{key}", "a response is written as one record")
        yield self._record("assistant", self.time(step), step.native_id or path, more, fields)

    def result(self, row: Observation, answered: str, path: str) -> Iterator[Line]:
        """A result is a message of the user."""
        block: Line = {"type": "tool_result", "tool_use_id": string(answered)}
        block["content"] = plain(self._content(self.blocks(row, path)))
        if row.is_error is not None:
            block["is_error"] = row.is_error
        fields = self.fields(row)
        more: Line = {"message": {"role": "user", "content": [block]}}
        if self.native and row.structured is not None:
            more["toolUseResult"] = jsontext.raw(original(row, "structured", unpack(row.extra)))
        if self.native and row.error_type is not None:
            more["toolDenialKind"] = string(row.error_type)
        name = text_at(fields, "uuid") or path
        yield self._record("user", self.time(row), name, more, fields)

    def noted(self, step: Step, fields: Fields, path: str) -> Iterator[Line]:
        """A record that is no message; some have no place among the others."""
        kind = text_at(fields, "type") or ("attachment" if "attachment" in fields else "system")
        if step.native_id is not None:
            more = {} if step.text is None else {"content": string(self.text(step))}
            if step.duration_ms is not None:
                more["durationMs"] = number(step.duration_ms)
            yield self._record(kind, self.time(step), step.native_id, more, fields)
            return
        when = {} if step.timestamp is None else {"timestamp": iso(step.timestamp)}
        yield {"type": kind, "sessionId": self.session, **fields, **when}

    def edit(self, step: Step, path: str) -> Iterator[Line]:
        """A compaction: a mark, and the summary; other edits have no place."""
        replaces = step.edit_boundary == "replace" and step.edit_summary is not None
        if not self.native and not replaces:
            yield from self.leave_out(step, path, "an edit of the context without a summary")
            return
        carried = {"source", "kind", "edit_boundary", "edit_summary"}
        kept = self._kept(step, self._uuid(f"{path}.summary"))
        carried |= {"edit_from", "edit_to"} if kept or self.native else set()
        self.report(step, frozenset(carried), path)
        fields = dict(self.fields(step))
        summary = object_at(fields, "summary")
        fields.pop("summary", None)
        if not self.native or "subtype" in fields:
            more = {"subtype": "compact_boundary", "content": "Conversation compacted",
                    "isMeta": False, "level": "info", "logicalParentUuid": self.previous,
                    "compactMetadata": {"trigger": "auto", "preTokens": 0, **kept}}  # fmt: skip
            more = {} if self.native else more
            self.previous = None
            yield self._record("system", self.time(step), step.native_id or path, more, fields)
        if step.edit_summary is not None:
            content = string(original(step, "edit_summary", unpack(step.extra)))
            more = {"isCompactSummary": True, "isVisibleInTranscriptOnly": True,
                    "message": {"role": "user", "content": content}}  # fmt: skip
            time = self.time() if "timestamp" not in summary else self.time(step)
            name = text_at(summary, "uuid") or f"{path}.summary"
            yield self._record("user", time, name, more, summary)

    def _kept(self, step: Step, anchor: str) -> Line:
        """The records that a compaction keeps as they are, after the one with the summary."""
        head = self.first_of(step.edit_from)
        tail = self.ends.get(-1 if step.edit_to is None else step.edit_to - 1)
        if head is None or tail is None:
            return {}
        ends = {"headUuid": head, "anchorUuid": anchor, "tailUuid": tail}
        return {"preservedSegment": ends}
