"""Writing: a trajectory into a request to OpenAI's Responses API, and its stored response."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from adp.converters.kit.usage import OPENAI
from adp.converters.writers.api_parts import ApiPart, is_turn
from adp.converters.writers.api_writer import CALL, STEP
from adp.converters.writers.exchange_writer import ExchangeWriter
from adp.converters.writers.response_state import created_at, state_of, usage_of
from adp.converters.writers.tool_definitions import ToolDefinition, tool_definitions
from adp.converters.writing import string
from adp_schema import jsontext, media
from adp_schema.extra_column import original
from adp_schema.ids import digest
from adp_schema.losses import Losses
from adp_schema.model import Observation, Step, ToolCall, Trajectory

_PARAMETERS = frozenset(
    {"tool_choice", "metadata", "stream", "temperature", "top_p", "max_output_tokens", "reasoning",
     "include", "store", "text", "truncation", "parallel_tool_calls", "service_tier", "user",
     "previous_response_id", "conversation", "prompt_cache_key", "safety_identifier", "background",
     "max_tool_calls", "top_logprobs", "context_management", "prompt", "stream_options"}
)  # fmt: skip
_REPLY = ("metadata", "service_tier", "temperature", "top_p", "max_output_tokens", "text",
          "truncation", "tool_choice", "parallel_tool_calls", "prompt_cache_key", "store",
          "background", "max_tool_calls", "top_logprobs", "user")  # fmt: skip
_TURN = STEP | {
    *("model", "response_id", "stop_reason", "usage", "timestamp", "timestamp_text", "tokens_in"),
    *("tokens_out", "tokens_cached", "tokens_cache_write", "tokens_reasoning", "reasoning_effort"),
}
_ITEM_STATUS = frozenset({"in_progress", "completed", "incomplete"})
_USAGE = ("input_tokens", "input_tokens_details", "output_tokens", "output_tokens_details",
          "total_tokens")  # fmt: skip
_SUMMARIES = frozenset({"openai_responses", "codex"})
"""Formats whose reasoning is a summary; that of others is the reasoning itself."""


def write_exchange(run: Trajectory, losses: Losses) -> dict[str, Any]:
    """Convert one trajectory; what the format has no place for is reported."""
    return ResponsesWriter(run, losses).record()


class ResponsesWriter(ExchangeWriter):
    """Writes the items of one trajectory."""

    name = "openai_responses"
    part_keys: ClassVar[Mapping[str, Mapping[str, str]]] = {
        "text": {"annotations": "[", "logprobs": "["},
        "reasoning": {"id": '"', "encrypted_content": '"'},
        "media": {"detail": '"', "filename": '"'},
    }
    opaque_types: ClassVar[Mapping[str, str]] = {"reasoning": "encrypted_content"}

    def __init__(self, run: Trajectory, losses: Losses) -> None:
        super().__init__(run, losses)
        self._mark = digest((run.trajectory_id or "").encode("utf-8"))[:24]
        self._made = 0
        self._custom: set[tuple[int | None, int | None]] = set()

    def record(self) -> dict[str, Any]:
        """The request and the response, with the ids of the run around them."""
        record = self.wrapper()
        rows = list(self.rows())
        last = rows.pop() if rows and is_turn(rows[-1][0]) else None
        tools = [_tool(tool) for tool in tool_definitions(self.run, self.losses)]
        request: dict[str, Any] = {"model": string(self.model())}
        items: list[Any] = []
        was_turn = False
        for row, path in rows:
            if was_turn and is_turn(row):
                self.losses.add(path, "two turns of the model stand without anything between them")
            made = self._step(row, path) if isinstance(row, Step) else [self._result(row, path)]
            items += made
            was_turn = bool(made) and is_turn(row)
        request["input"] = items
        if tools:
            request["tools"] = tools
        record["request"] = request | self.parameters(_PARAMETERS)
        if last is not None:
            record["response"] = self._response(*last, tools)
        return record

    def _id(self, kind: str) -> str:
        """An id for an item that must have one."""
        self._made += 1
        return f"{kind}_{self._mark}{self._made:04d}"

    # ---- items -----------------------------------------------------------------------------

    def _step(self, step: Step, path: str) -> list[Any]:
        self.report(step, path, STEP)
        self.kept(step, path)
        if step.source == "environment":
            self.losses.add(f"{path}.source", "environment is written as the role user")
        return self._items(step, path, in_response=False)

    def _items(self, step: Step, path: str, *, in_response: bool) -> list[Any]:
        """The items of a step: what is said between two calls or thoughts is one message."""
        role = {"agent": "assistant", "system": "system"}.get(step.source or "", "user")
        items: list[Any] = []
        message: list[Any] = []
        parts = self.parts(step, path)
        for part in parts:
            if part.kind in ("text", "media"):
                if not message:
                    items.append(self._message(role, message, in_response=in_response))
                message.append(self._content(part, role))
                continue
            message = []
            if part.kind == "call" and part.call is not None:
                items.append(self._call(part, part.call, step))
            else:
                items.append(part.value if part.kind == "opaque" else self._reasoning(part))
        if not items and not in_response:
            items.append({"type": "message", "role": role, "content": []})
        return items

    def _message(self, role: str, content: list[Any], *, in_response: bool) -> dict[str, Any]:
        message = {"type": "message", "role": role, "content": content}
        if not in_response and role != "assistant":
            return message
        return {"id": self._id("msg"), **message, "status": "completed"}

    def _content(self, part: ApiPart, role: str) -> dict[str, Any]:
        if part.kind == "media":
            return self._media(part)
        if role != "assistant":
            return {"type": "input_text", "text": part.words, **part.extra}
        return {"type": "output_text", "text": part.words, "annotations": [], **part.extra}

    def _media(self, part: ApiPart) -> dict[str, Any]:
        blob = part.blob
        reference = string(media.reference_of_media(blob)) if blob is not None else ""
        if blob is not None and blob.data is None:
            self.report_type(blob)
        if blob is not None and blob.data is not None and not _is_image(blob.mime):
            name = part.extra.pop("filename", "file")
            return {"type": "input_file", "filename": name, "file_data": reference, **part.extra}
        return {"type": "input_image", "detail": "auto", "image_url": reference, **part.extra}

    def _reasoning(self, part: ApiPart) -> dict[str, Any]:
        summaries = self.run.source_format in _SUMMARIES
        piece = {"type": "summary_text" if summaries else "reasoning_text", "text": part.words}
        content = {"summary": [piece]} if summaries else {"summary": [], "content": [piece]}
        name = part.extra.pop("id", self._id("rs"))
        return {"type": "reasoning", "id": name, **content, **part.extra}

    def _call(self, part: ApiPart, call: ToolCall, step: Step) -> dict[str, Any]:
        known = call.status is None or call.status in _ITEM_STATUS
        name = self.call_id(part, step, CALL | {"status"} if known else CALL)
        item = {"call_id": name, "name": self.call_name(call)}
        if step.source != "agent":
            self.losses.add(f"{part.path}.requestor", "a call is an item of the model")
        extra = self.spelling(call)
        text, loose = original(call, "arguments", extra), original(call, "arguments_raw", extra)
        if text is None and call.kind == "code":
            value = string(bytes(self.arguments(part)).decode("utf-8"))
            item = {"type": "function_call", **item, "arguments": value}
        elif text is None and loose is not None and call.arguments_kind == "text":
            self._custom.add((call.step, call.call))
            value = string(media.restore(loose, self.run.media))
            item = {"type": "custom_tool_call", **item, "input": value}
        else:
            value = string(text if text is not None else loose if loose is not None else "{}")
            item = {"type": "function_call", **item, "arguments": value}
        if known and call.status is not None:
            item["status"] = call.status
        return {**item, **self.kept(call, part.path, "id")}

    def _result(self, row: Observation, path: str) -> dict[str, Any]:
        """A result; one that answers no call is a message of the user."""
        answered = self.answered(row, path)
        failed = ("is_error",) if row.is_error and answered is not None else ()
        self.report_result(row, path, *failed)
        content = [self._content(part, "user") for part in self.parts(row, path)]
        if answered is None:
            self.kept(row, path)
            return {"type": "message", "role": "user", "content": content}
        plain = len(content) == 1 and set(content[0]) == {"type", "text"}
        custom = (row.call_step, row.call) in self._custom
        item = {
            "type": "custom_tool_call_output" if custom else "function_call_output",
            "call_id": answered,
            "output": content[0]["text"] if plain else content,
        }
        if failed:
            item["status"] = "incomplete"
        return {**item, **self.kept(row, path, "id")}

    # ---- the response ----------------------------------------------------------------------

    def _response(self, step: Any, path: str, tools: list[Any]) -> dict[str, Any]:
        self.report(step, path, _TURN)
        response: dict[str, Any] = {
            "id": string(step.response_id or f"resp_{self._mark}"),
            "object": "response",
            "created_at": created_at(step, path, self.losses),
            **state_of(step, path, self.losses),
            "model": string(step.model or self.model()),
            "output": self._items(step, path, in_response=True),
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": tools,
        }
        if step.reasoning_effort is not None:
            response["reasoning"] = {"effort": string(step.reasoning_effort)}
        if self.usage_fits(step, OPENAI, *_USAGE):
            response["usage"] = jsontext.raw(step.usage or "")
        elif (usage := usage_of(step, path, self.losses)) is not None:
            response["usage"] = usage
        return response | self.kept(step, path, *_REPLY)


def _is_image(mime: str | None) -> bool:
    return (mime or "").startswith("image/")


def _tool(tool: ToolDefinition) -> dict[str, Any]:
    if tool.is_of_provider:
        return dict(tool.whole)
    return {"strict": None, **tool.in_style("parameters", type="function")}
