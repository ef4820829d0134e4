"""Writing: a trajectory into a trace of OpenTelemetry, with the GenAI conventions 0.1.0.

One trace a trajectory: a span of the agent, and below it a span for each turn of the model, with
all messages before it, and for each result of a tool. So a trace grows with the square of its
turns. The conventions allow to filter messages: in the flavour `NEW` a span has those since the
turn before it, as an attribute of ours says; system prompt and tools stand in the first one.
"""

from __future__ import annotations

import base64
from typing import Any

from adp.converters.reading import BRACE
from adp.converters.session_writers.names import provider_of
from adp.converters.spans.trajectories import NEW_MESSAGES
from adp.converters.writers.api_parts import ApiPart, is_model_call, reward_numbers
from adp.converters.writers.api_writer import STEP, ApiWriter
from adp.converters.writers.otlp_spans import CLIENT, ERROR, INTERNAL, WrittenSpans
from adp.converters.writers.otlp_values import attribute_list
from adp.converters.writers.tool_definitions import tool_definitions
from adp.converters.writing import string
from adp_schema import jsontext
from adp_schema.extra_column import original
from adp_schema.losses import Losses
from adp_schema.model import Observation, Step, Trajectory

_TOKENS = {
    "tokens_in": "gen_ai.usage.input_tokens",
    "tokens_out": "gen_ai.usage.output_tokens",
    "tokens_cached": "gen_ai.usage.cache_read.input_tokens",
    "tokens_cache_write": "gen_ai.usage.cache_creation.input_tokens",
    "tokens_reasoning": "gen_ai.usage.reasoning.output_tokens",
    "cost_usd": "gen_ai.usage.cost",
}
_TURN = STEP | {*_TOKENS, "model", "response_id", "stop_reason", "reasoning_effort", "timestamp",
                "duration_ms", "usage"}  # fmt: skip
_ROLES = {"agent": "assistant", "system": "system"}
_OF_FIRST = ("gen_ai.tool.definitions", "gen_ai.system_instructions")
_JSON_STARTS = ("{", "[", '"')


WHOLE, NEW = "all-messages", "new-messages"
"""The flavours."""


def write_trace(
    run: Trajectory, losses: Losses, flavour: str | None = None
) -> list[dict[str, Any]]:
    """Convert one trajectory into the only line of a file of spans."""
    return [TraceWriter(run, losses, only_new=flavour == NEW).document()]


class TraceWriter(ApiWriter):
    """Writes the spans of one trajectory."""

    name = "otlp"
    exact = False

    def __init__(self, run: Trajectory, losses: Losses, *, only_new: bool = False) -> None:
        super().__init__(run, losses)
        self._only_new = only_new
        self._is_first = True
        self._spans = WrittenSpans(run, losses)
        self._history: list[str] = []
        self._system: str | None = None
        self._tools = [
            tool.whole if tool.is_of_provider else tool.in_style("parameters", type="function")
            for tool in tool_definitions(run, losses)
        ]

    def document(self) -> dict[str, Any]:
        """The trace, as the body of an export."""
        run = self.run
        self.head("session_id", "source_id", "agent_name", "agent_version", "agent_model", "tools",
                  "started_at", "ended_at", "error_type", "error_message",
                  "rewards")  # fmt: skip
        self.kept(run, "$")
        if run.session_id is not None and run.source_id not in (None, run.session_id):
            self.losses.add("$.source_id", "a trace has one id, that of its session")
        rows = list(self.rows())
        last = max(
            (number for number, (row, _) in enumerate(rows) if is_model_call(row)), default=-1
        )
        for number, (row, path) in enumerate(rows):
            if isinstance(row, Observation):
                self._result(row, path, is_last=number > last)
            elif number > last:
                self.leave_out(row, path)
            elif is_model_call(row):
                self._turn(row, path)
            else:
                self._message(row, path, first=number == 0)
        service = {"service.name": string(run.agent_name or "unknown_service")}
        scope = {"scope": {"name": "adp"}, "spans": self._whole()}
        resource = {"attributes": attribute_list(service)}
        return {"resourceSpans": [{"resource": resource, "scopeSpans": [scope]}]}

    # ---- spans -----------------------------------------------------------------------------

    def _whole(self) -> list[dict[str, Any]]:
        """All spans, the first one of the agent."""
        run = self.run
        attributes = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": _text(run.agent_name),
            "gen_ai.agent.version": _text(run.agent_version),
            "gen_ai.request.model": _text(run.agent_model),
            "gen_ai.conversation.id": self._conversation(),
            "error.type": _text(run.error_type),
        }
        title = f"invoke_agent {run.agent_name or ''}".rstrip()
        return self._spans.whole(title, attributes, reward_numbers(run, self.losses))

    def _conversation(self) -> Any:
        return string(self.run.session_id or self.run.source_id or self.run.trajectory_id or "run")

    def _turn(self, step: Any, path: str) -> None:
        """The span of a turn of the model, with what it got and what it gave."""
        self.report(step, path, _TURN)
        self.kept(step, path)
        message = self._written(step, path)
        reason = step.stop_reason
        answer = {**message, "finish_reason": string(reason or _reason_of(step))}
        model = string(step.model or self.model())
        usage = {key: getattr(step, column) for column, key in _TOKENS.items()}
        if step.usage is not None and step.json_value("usage") != {
            key: value for key, value in usage.items() if value is not None
        }:
            self.losses.add(f"{path}.usage", "it is written in the words of the conventions")
        history = f"[{','.join(self._history)}]" if self._history else None
        attributes = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": provider_of(step.model or self.model()),
            "gen_ai.request.model": model,
            "gen_ai.response.model": _text(step.model),
            "gen_ai.response.id": _text(step.response_id),
            "gen_ai.response.finish_reasons": None if reason is None else [string(reason)],
            "gen_ai.request.reasoning.level": _text(step.reasoning_effort),
            "gen_ai.conversation.id": self._conversation(),
            **usage,
            "gen_ai.tool.definitions": _json(self._tools) if self._tools else None,
            "gen_ai.system_instructions": self._system,
            "gen_ai.input.messages": None if history is None else string(history),
            "gen_ai.output.messages": _json([answer]),
        }
        if self._only_new and not self._is_first:
            attributes |= {NEW_MESSAGES: "new", **dict.fromkeys(_OF_FIRST)}
        self._spans.add(f"chat {step.model or self.model()}", CLIENT, attributes, step, path)
        if self._only_new:
            self._history, self._is_first = [], False
        else:
            self._history.append(_json(message))

    # ---- messages --------------------------------------------------------------------------

    def _message(self, step: Any, path: str, *, first: bool) -> None:
        """A message that a turn of the model gets."""
        self.report(step, path, STEP)
        self.kept(step, path)
        if step.source == "environment":
            self.losses.add(f"{path}.source", "environment is written as the role user")
        message = self._written(step, path)
        if first and step.source == "system" and message["parts"]:
            self._system = _json(message["parts"])
        else:
            self._history.append(_json(message))

    def _written(self, step: Step, path: str) -> dict[str, Any]:
        parts = [self._part(part, step) for part in self.parts(step, path)]
        return {"role": _ROLES.get(step.source or "", "user"), "parts": parts}

    def _part(self, part: ApiPart, row: Step | Observation) -> dict[str, Any]:
        if part.kind == "call" and part.call is not None and isinstance(row, Step):
            name = self.call_id(part, row)
            self.kept(part.call, part.path)
            arguments = self._arguments(part)
            return {"type": "tool_call", "id": name, "name": self.call_name(part.call),
                    "arguments": arguments}  # fmt: skip
        if part.kind != "media":
            return {"type": part.kind, "content": part.words}
        blob = part.blob
        mime = "" if blob is None else blob.mime or ""
        kind = mime.partition("/")[0]
        where = {"modality": kind if kind in ("image", "audio", "video") else "image"}
        if mime:
            where["mime_type"] = mime
        if blob is None or blob.data is None:
            return {"type": "uri", **where, "uri": string((blob.uri if blob else None) or "")}
        return {"type": "blob", **where, "content": base64.b64encode(blob.data).decode("ascii")}

    def _arguments(self, part: ApiPart) -> Any:
        """Arguments: an object, or else the characters of any other JSON."""
        call = part.call
        text = None if call is None else original(call, "arguments", self.spelling(call))
        if text is not None and jsontext.first_byte(text.encode("utf-8")) != BRACE:
            return string(text)
        return self.arguments(part)

    # ---- results ---------------------------------------------------------------------------

    def _result(self, row: Observation, path: str, *, is_last: bool) -> None:
        """A span of the tool, and a message for the turns after it."""
        answered = self.answered(row, path)
        if answered is None and is_last:
            self.leave_out(row, path)
            return
        failed = {"is_error"} if row.is_error and answered is not None else set()
        timed = {"timestamp", "duration_ms"} if answered is not None else set()
        named = {"name", "error_type"} if answered is not None else set()
        self.report_result(row, path, *failed, *timed, *named)
        self.kept(row, path)
        parts = [self._part(part, row) for part in self.parts(row, path)]
        if answered is None:
            self._history.append(_json({"role": "user", "parts": parts}))
            return
        response = _response(parts)
        attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": _text(self.result_name(row)),
            "gen_ai.tool.type": "function",
            "gen_ai.tool.call.id": answered,
            "gen_ai.tool.call.result": response,
            "error.type": _text(row.error_type),
        }
        title = f"execute_tool {self.result_name(row)}"
        span = self._spans.add(title, INTERNAL, attributes, row, path)
        if row.is_error:
            span["status"] = {"code": ERROR}
        part = {"type": "tool_call_response", "id": answered, "response": response}
        self._history.append(_json({"role": "tool", "parts": [part]}))


def _response(parts: list[dict[str, Any]]) -> Any:
    """What a tool gave: its text; parts where there is more, or where a text looks like JSON."""
    if not parts:
        return None
    text = parts[0].get("content")
    if len(parts) > 1 or parts[0]["type"] != "text" or not isinstance(text, str):
        return parts
    return parts if text.lstrip().startswith(_JSON_STARTS) else text


def _reason_of(step: Step) -> str:
    return "tool_call" if step.calls else "stop"


def _json(value: Any) -> str:
    return jsontext.encode(value).decode("utf-8")


def _text(text: str | None) -> Any:
    return None if text is None else string(text)
