"""Sessions of Pi that are written: an entry a step or result, each after the one before.

Pi makes its own system prompt and tools, so those of the run stand in entries of the type
``custom``, which no model sees; the one of the tools is that of teich. A branch leaves the entry
after which it began, and stands before what follows that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from msgspec import Raw

from adp.converters.readers.pi_printed import PRINTED, PiPrinted
from adp.converters.session_writers.blocks import Block
from adp.converters.session_writers.log_writer import SessionLogWriter
from adp.converters.session_writers.names import (
    provider_of,
    session_word,
)
from adp.converters.session_writers.values import Line, iso, merged, object_at, text_at
from adp.converters.writing import string
from adp_schema import jsontext
from adp_schema.extra_column import original, unpack
from adp_schema.model import Observation, Step

SYSTEM, TOOLS = "adp-system-prompt", "teich-available-tools"
"""Values of ``customType`` of entries for what Pi does not record."""

_VERSION = 3
_STOPS = {
    **{word: word for word in ("stop", "length", "toolUse", "error", "aborted")},
    **{"end_turn": "stop", "stop_sequence": "stop", "max_tokens": "length"},
    **{"tool_use": "toolUse", "tool_calls": "toolUse"},
}
_APIS = {"anthropic": "anthropic-messages", "openai": "openai-responses",
         "google": "google-generative-ai"}  # fmt: skip
_USAGE = {"tokens_out": "output", "tokens_cached": "cacheRead", "tokens_cache_write": "cacheWrite"}


class PiWriter(SessionLogWriter):
    """Writes a session, or a branch of one."""

    name: ClassVar[str] = "pi"
    run_columns: ClassVar[frozenset[str]] = frozenset({"tools", "tools_origin"})
    turn_columns: ClassVar[frozenset[str]] = frozenset(
        {"tokens_in", *_USAGE, "cost_usd", "stop_reason", "response_id"}
    )
    result_columns: ClassVar[frozenset[str]] = frozenset({"is_error", "name", "structured"})
    native_columns: ClassVar[frozenset[str]] = frozenset(
        {"agent_name", "started_at", "started_text", "native_id", "usage", "synthetic",
         "visibility", "time_zone_known"}
    )  # fmt: skip

    def session_name(self) -> str:
        """Any word may be the id."""
        return (self.native and self.run.source_id) or session_word(self.run)

    def lines(self) -> list[Line]:
        """The header and the entries."""
        self.report_run()
        if self.embedded:
            return list(self.body())
        version = int(self.run.source_version or 0) if self.native else 0
        start = self.run.started_at
        head = {"type": "session", "version": max(version, _VERSION), "id": self.session,
                "timestamp": iso(self.time() if start is None else start),
                "cwd": string(self.cwd)}  # fmt: skip
        kept = {key: value for key, value in self.kept.items() if key != "version"}
        return [merged(head, kept), *self._tools(), *self.body()]

    def _tools(self) -> Iterator[Line]:
        if self.run.tools is not None:
            tools = jsontext.raw(original(self.run, "tools", unpack(self.run.extra)))
            more = {"customType": TOOLS, "data": {"tools": tools}}
            yield self._entry("custom", None, more, {})

    def _entry(
        self, kind: str, row: Step | Observation | None, more: Line, fields: Mapping[str, Raw]
    ) -> Line:
        """An entry that follows the one before."""
        name = (row.native_id or "") if isinstance(row, Step) else text_at(fields, "id")
        if not name or not self.native or name in self.used:
            number = len(self.used) + 1
            while (name := f"{number:08x}") in self.used:
                number += 1
        time = self.time(row)
        entry = {"type": kind, "id": string(name), "parentId": self.previous,
                 "timestamp": iso(time)}  # fmt: skip
        self.previous = name
        self.used[name] = None
        if "message" in more:
            more["message"]["timestamp"] = int(time.timestamp() * 1000)
        return {**merged({**entry, **more}, fields), "id": string(name),
                "parentId": entry["parentId"]}  # fmt: skip

    def message(self, step: Step, path: str) -> Iterator[Line]:
        """A message of the user, or of an extension; the system prompt."""
        fields, content = self.fields(step), self._content(step, path)
        kind, role = text_at(fields, "type"), text_at(object_at(fields, "message"), "role")
        if step.source == "system":
            more: Line = {"customType": SYSTEM, "data": {"content": content}}
            yield self._entry("custom", step, more, fields)
        elif kind == "branch_summary":
            yield self._entry(kind, step, {"summary": string(self.text(step))}, fields)
        elif kind == "custom_message":
            yield self._entry(kind, step, {"content": content}, fields)
        elif role and not content:
            yield self._entry("message", step, {"message": {"role": role}}, fields)
        else:
            message = {"role": "user", "content": content}
            yield self._entry("message", step, {"message": message}, fields)

    def turn(self, step: Step, path: str) -> Iterator[Line]:
        """A turn of the model."""
        model = self.model_of(step)
        provider = provider_of(model)
        stop = _STOPS.get(step.stop_reason or "", "toolUse" if step.calls else "stop")
        if self.native:
            stop = step.stop_reason or stop
        elif step.stop_reason not in (None, stop):
            self.losses.add(f"{path}.stop_reason", f"Pi says {stop}")
        message = {"role": "assistant", "content": self._content(step, path),
                   "api": _APIS.get(provider, "unknown"), "provider": provider,
                   "model": string(model or "unknown"), "usage": self._usage(step),
                   "stopReason": string(stop)}  # fmt: skip
        if step.response_id is not None:
            message["responseId"] = string(step.response_id)
        yield self._entry("message", step, {"message": message}, self.fields(step))

    def _usage(self, step: Step) -> Any:
        """Tokens and cost; Pi needs all of the numbers, so unknown ones are zero."""
        if self.native and step.usage is not None:
            return jsontext.raw(original(step, "usage", unpack(step.extra)))
        counts = {key: getattr(step, column) or 0 for column, key in _USAGE.items()}
        given = (step.tokens_in or 0) - counts["cacheRead"] - counts["cacheWrite"]
        cost = {key: 0 for key in ("input", "output", "cacheRead", "cacheWrite")}
        return {"input": given, **counts, "totalTokens": given + sum(counts.values()),
                "cost": {**cost, "total": step.cost_usd or 0}}  # fmt: skip

    def result(self, row: Observation, answered: str, path: str) -> Iterator[Line]:
        """What a tool gave back."""
        call = self.calls.get((row.call_step, row.call))
        name = row.name or ("" if call is None else self.call_name(call))
        message: Line = {"role": "toolResult", "toolCallId": string(answered),
                         "toolName": string(name), "content": self._content(row, path)}  # fmt: skip
        if row.structured is not None:
            structured = original(row, "structured", unpack(row.extra))
            message["details"] = jsontext.raw(structured)
        message["isError"] = bool(row.is_error)
        yield self._entry("message", row, {"message": message}, self.fields(row))

    def noted(self, step: Step, fields: dict[str, Raw], path: str) -> Iterator[Line]:
        """An entry that is no message; what Pi only prints is in no file of a session."""
        kind = text_at(fields, "type")
        if kind in PRINTED or kind in PiPrinted.handlers:
            yield from self.leave_out(step, path, f"a printed line of the type {kind}")
        else:
            yield self._entry(kind, step, {}, fields)

    def edit(self, step: Step, path: str) -> Iterator[Line]:
        """A compaction; other edits have no place."""
        if step.edit_summary is None or step.edit_boundary != "replace":
            yield from self.leave_out(step, path, "an edit of the context without a summary")
            return
        kept = self.first_of(step.edit_from)
        carried = {"source", "kind", "edit_boundary", "edit_summary"}
        carried |= set() if kept is None else {"edit_from"}
        carried |= {"edit_to"} if kept is not None and step.edit_to == step.step else set()
        self.report(step, frozenset(carried), path)
        summary = string(original(step, "edit_summary", unpack(step.extra)))
        more = {"summary": summary, "firstKeptEntryId": kept or "", "tokensBefore": 0}
        yield self._entry("compaction", step, more, self.fields(step))

    def _content(self, row: Step | Observation, path: str) -> list[Any]:
        return [self._block(block, path) for block in self.blocks(row, path)]

    def _block(self, block: Block, path: str) -> Any:
        if block.kind == "opaque":
            return block.value
        if block.kind == "reasoning":
            return merged({"type": "thinking", "thinking": string(block.text)}, block.extra)
        if block.kind == "call":
            known = {"type": "toolCall", "id": string(self.call_id(block.call, path)),
                     "name": string(self.call_name(block.call)),
                     "arguments": self.arguments_object(block.call, path)}  # fmt: skip
            return merged(known, self.fields(block.call))
        if block.kind == "text":
            return merged({"type": "text", "text": string(block.text)}, block.extra)
        if block.blob.data is not None and block.is_image():
            mime = block.blob.mime or "image/png"
            known = {"type": "image", "data": block.base64(), "mimeType": string(mime)}
            return merged(known, block.extra)
        return {"type": "text", "text": string(self.address(block))}
