"""Writing: a trajectory into a request to Anthropic's Messages API, and its last reply."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, ClassVar

from adp.converters.kit.usage import ANTHROPIC
from adp.converters.writers.api_parts import ApiPart, is_turn
from adp.converters.writers.api_writer import STEP
from adp.converters.writers.exchange_writer import ExchangeWriter
from adp.converters.writers.tool_definitions import ToolDefinition, tool_definitions
from adp.converters.writing import string
from adp_schema import jsontext
from adp_schema.ids import digest
from adp_schema.losses import Losses
from adp_schema.model import Observation, Step, Trajectory

MAX_TOKENS = 4096
"""The API asks for a limit; this one is written where none was recorded."""
_TEXT = {"type", "text"}
_PARAMETERS = frozenset(
    {"max_tokens", "tool_choice", "metadata", "stream", "stop_sequences", "temperature", "thinking",
     "top_k", "top_p", "container", "mcp_servers", "context_management", "output_config",
     "service_tier", "betas", "anthropic_version", "anthropic_beta", "output_format",
     "cache_control", "speed", "inference_geo"}
)  # fmt: skip
_REPLY = ("stop_sequence", "stop_details", "container", "diagnostics", "context_management")
_TURN = STEP | {
    *("model", "response_id", "stop_reason", "usage", "timestamp", "timestamp_text", "tokens_in"),
    *("tokens_out", "tokens_cached", "tokens_cache_write", "tokens_reasoning"),
}
_STOPS = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use",
          "function_call": "tool_use", "content_filter": "refusal"}  # fmt: skip
_REASONS = frozenset(
    {"end_turn", "max_tokens", "stop_sequence", "tool_use", "pause_turn", "refusal",
     "model_context_window_exceeded"}
)  # fmt: skip


def write_exchange(run: Trajectory, losses: Losses) -> dict[str, Any]:
    """Convert one trajectory; what the format has no place for is reported."""
    return MessagesWriter(run, losses).record()


class MessagesWriter(ExchangeWriter):
    """Writes the messages of one trajectory."""

    name = "anthropic_messages"
    part_keys: ClassVar[Mapping[str, Mapping[str, str]]] = {
        "text": {"citations": "[", "cache_control": "{"},
        "reasoning": {"signature": '"'},
        "media": {"cache_control": "{", "title": '"', "context": '"'},
    }
    opaque_types: ClassVar[Mapping[str, str]] = {
        "redacted_thinking": "data",
        "container_upload": "file_id",
        "search_result": "content",
        "tool_reference": "tool_name",
    }

    def record(self) -> dict[str, Any]:
        """The request and the reply, with the ids of the run around them."""
        record = self.wrapper()
        rows = list(self.rows())
        last = rows.pop() if rows and is_turn(rows[-1][0]) else None
        first = rows.pop(0) if rows and _is_system(rows[0][0]) else None
        system = None if first is None else self._message(*first)
        request: dict[str, Any] = {"model": string(self.model())}
        parameters = self.parameters(_PARAMETERS)
        request["max_tokens"] = parameters.pop("max_tokens", MAX_TOKENS)
        empty = system is not None and system["content"] == []
        if system is not None and not empty:
            request["system"] = system["content"]
        elif last is None:
            request["system"] = []  # tells the request from one of another API
        request["messages"] = [*([system] if empty else []), *self._messages(rows)]
        if tools := [_tool(tool) for tool in tool_definitions(self.run, self.losses)]:
            request["tools"] = tools
        record["request"] = request | parameters
        if last is not None:
            record["response"] = self._reply(*last)
        return record

    def _messages(self, rows: list[tuple[Step | Observation, str]]) -> list[dict[str, Any]]:
        """The messages; results that follow each other stand in one."""
        messages: list[dict[str, Any]] = []
        results: list[Any] = []
        for row, path in rows:
            answered = None if isinstance(row, Step) else self.answered(row, path)
            if isinstance(row, Step):
                messages.append(self._message(row, path))
            elif answered is None:
                messages.append({"role": "user", "content": self._stray(row, path)})
            else:
                if not results:
                    messages.append({"role": "user", "content": results})
                results.append(self._result(row, answered, path))
                continue
            results = []
        return messages

    def _message(self, step: Any, path: str) -> dict[str, Any]:
        self.report(step, path, STEP)
        extra = self.kept(step, path)
        if step.source == "environment":
            self.losses.add(f"{path}.source", "environment is written as the role user")
        role = {"agent": "assistant", "system": "system"}.get(step.source or "", "user")
        return {"role": role, "content": self._content(step, path), **extra}

    def _content(self, row: Step | Observation, path: str) -> Any:
        """A text, or blocks."""
        blocks = self._blocks(row, path)
        plain = len(blocks) == 1 and isinstance(blocks[0], dict) and set(blocks[0]) == _TEXT
        return blocks[0]["text"] if plain else blocks

    def _blocks(self, row: Step | Observation, path: str) -> list[Any]:
        return [self._block(part, row) for part in self.parts(row, path)]

    def _block(self, part: ApiPart, row: Step | Observation) -> Any:
        if part.kind == "call" and part.call is not None and isinstance(row, Step):
            return {
                "type": "tool_use",
                "id": self.call_id(part, row),
                "name": self.call_name(part.call),
                "input": self.arguments(part),
                **self.kept(part.call, part.path, "caller", "cache_control"),
            }
        if part.kind == "text":
            return {"type": "text", "text": part.words, **part.extra}
        if part.kind == "reasoning":
            signature = {"signature": part.extra.get("signature", "")}
            return {"type": "thinking", "thinking": part.words, **signature}
        return part.value if part.kind == "opaque" else self._media(part)

    def takes_blob(self, part: ApiPart) -> bool:
        """Images and PDF documents, and whatever has an address."""
        blob = part.blob
        if blob is None or blob.data is None:
            return super().takes_blob(part)
        mime = blob.mime or ""
        return mime.startswith("image/") or mime == "application/pdf"

    def _media(self, part: ApiPart) -> dict[str, Any]:
        blob, mime = part.blob, part.blob.mime if part.blob is not None else None
        kind = "document" if mime == "application/pdf" else "image"
        if blob is None or blob.data is None:
            self.report_type(blob)
            source = {"type": "url", "url": string((blob.uri if blob else None) or "")}
        else:
            data = base64.b64encode(blob.data).decode("ascii")
            source = {"type": "base64", "media_type": mime, "data": data}
        return {"type": kind, "source": source, **part.extra}

    def _result(self, row: Observation, answered: Any, path: str) -> dict[str, Any]:
        self.report_result(row, path, "is_error")
        block: dict[str, Any] = {"type": "tool_result", "tool_use_id": answered}
        if content := self._content(row, path):
            block["content"] = content
        if row.is_error is not None:
            block["is_error"] = row.is_error
        return {**block, **self.kept(row, path, "cache_control")}

    def _stray(self, row: Observation, path: str) -> Any:
        """The content of a result that answers no call."""
        self.report_result(row, path)
        self.kept(row, path)
        return self._content(row, path)

    # ---- the reply -------------------------------------------------------------------------

    def _reply(self, step: Any, path: str) -> dict[str, Any]:
        self.report(step, path, _TURN)
        name = digest((self.run.trajectory_id or "").encode("utf-8"))[:24]
        reply = {
            "id": string(step.response_id or f"msg_{name}"),
            "type": "message",
            "role": "assistant",
            "model": string(step.model or self.model()),
            "content": self._blocks(step, path),
            "stop_reason": self._stop_reason(step, path),
            "usage": self._usage(step, path),
        }
        time = self.time(step, path, "timestamp", "timestamp_text")
        if time is not None:
            reply["created_at"] = string(time)
        return {**reply, **self.kept(step, path, *_REPLY)}

    def _stop_reason(self, step: Step, path: str) -> str | None:
        reason = step.stop_reason
        if reason is None or reason in _REASONS:
            return reason
        written = _STOPS.get(reason)
        self.losses.add(f"{path}.stop_reason", f"it is written as {written}")
        return written

    def _usage(self, step: Step, path: str) -> Any:
        if self.usage_fits(step, ANTHROPIC, "input_tokens", "output_tokens"):
            return jsontext.raw(step.usage or "")
        if step.usage is not None:
            self.losses.add(f"{path}.usage", "it is written in the form of the API")
        if step.tokens_in is None or step.tokens_out is None:
            self.losses.add(f"{path}.usage", "unknown numbers of tokens are written as 0")
        caches = {"cache_read_input_tokens": step.tokens_cached,
                  "cache_creation_input_tokens": step.tokens_cache_write}  # fmt: skip
        fresh = (step.tokens_in or 0) - sum(it or 0 for it in caches.values())
        if step.tokens_in is not None and fresh < 0:
            self.losses.add(f"{path}.tokens_in", "it is less than what came from the cache")
        usage: dict[str, Any] = {
            "input_tokens": max(fresh, 0), "output_tokens": step.tokens_out or 0,
            **{key: it for key, it in caches.items() if it is not None},
        }  # fmt: skip
        if step.tokens_reasoning is not None:
            usage["output_tokens_details"] = {"thinking_tokens": step.tokens_reasoning}
        return usage


def _is_system(row: Step | Observation) -> bool:
    return isinstance(row, Step) and row.source == "system"


def _tool(tool: ToolDefinition) -> dict[str, Any]:
    return dict(tool.whole) if tool.is_of_provider else tool.in_style("input_schema")
