"""What a sample of Inspect AI says of a run beside its messages, and contents in its form."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from msgspec import Raw

from adp.converters.writers.api_parts import ApiPart, reward_numbers
from adp.converters.writers.tool_definitions import ToolDefinition
from adp.converters.writing import string
from adp_schema import media
from adp_schema.losses import Losses
from adp_schema.model import Step, Trajectory

_LIMITS = frozenset(
    {"context", "time", "working", "message", "token", "turn", "cost", "operator", "custom"}
)
_TYPES = frozenset({"string", "integer", "number", "boolean", "array", "object", "null"})
_WORDS = ("format", "description", "pattern")
_NO_SCHEMA = {"type": "object", "properties": {}}
_STOPS = {"end_turn": "stop", "tool_use": "tool_calls", "length": "max_tokens",
          "function_call": "tool_calls", "stop_sequence": "stop",
          "refusal": "content_filter"}  # fmt: skip
_REASONS = frozenset(
    {"stop", "max_tokens", "model_length", "tool_calls", "content_filter", "unknown"}
)
_TOTALS = {"input_tokens": "tokens_in", "output_tokens": "tokens_out",
           "input_tokens_cache_read": "tokens_cached", "total_cost": "cost_usd"}  # fmt: skip
_GRADES = {True: "C", False: "I"}


def message_content(parts: list[ApiPart]) -> Any:
    """The content of a message: a text, or a list of contents."""
    if len(parts) == 1 and parts[0].kind == "text" and parts[0].text:
        return parts[0].words
    return [_content(part) for part in parts]


def _content(part: ApiPart) -> Any:
    if part.kind == "text":
        return {"type": "text", "text": part.words, **part.extra}
    if part.kind == "reasoning":
        return {"type": "reasoning", "reasoning": part.words, **part.extra}
    if part.kind == "opaque" or part.blob is None:
        return part.value
    blob = part.blob
    reference = string(media.reference_of_media(blob))
    kind, _, form = (blob.mime or "image").partition("/")
    if kind == "image":
        return {"type": "image", "image": reference, **part.extra}
    form = "mp3" if form == "mpeg" and kind == "audio" else form.removeprefix("x-")
    if (kind, form) in {("audio", "wav"), ("audio", "mp3"), ("video", "mp4"), ("video", "mpeg")}:
        return {"type": kind, kind: reference, "format": form}
    return {"type": "document", "document": reference, "mime_type": string(blob.mime or "")}


def tool_info(tool: ToolDefinition) -> dict[str, Any]:
    """A tool; what the format takes for no schema of arguments stands among its options."""
    description = tool.description if bytes(tool.description or b"")[:1] == b'"' else Raw(b'""')
    info: dict[str, Any] = {"name": tool.name, "description": description}
    options = dict(tool.whole) if tool.is_of_provider else dict(tool.rest)
    schema = None if tool.schema is None else json.loads(bytes(tool.schema))
    if schema is None or not _fits(schema) or schema.get("type") != "object":
        info["parameters"] = _NO_SCHEMA
        options |= {} if tool.schema is None else {"parameters": tool.schema}
    else:
        info["parameters"] = tool.schema
    return {**info, "options": options} if options else info


def _fits(schema: Any) -> bool:
    """Whether a schema is in the part of JSON Schema that the format reads."""
    if not isinstance(schema, dict):
        return False
    kind = schema.get("type")
    kinds = kind if isinstance(kind, list) else [] if kind is None else [kind]
    properties, more = schema.get("properties") or {}, schema.get("additionalProperties")
    choices = schema.get("anyOf")
    inside = [schema["items"]] if schema.get("items") is not None else []
    inside += choices if isinstance(choices, list) else []
    inside += properties.values() if isinstance(properties, dict) else [None]
    inside += [more] if more is not None and not isinstance(more, bool) else []
    required = schema.get("required") or []
    return (
        all(isinstance(it, str) and it in _TYPES for it in kinds)
        and all(isinstance(schema.get(key, ""), str) for key in _WORDS)
        and isinstance(required, list)
        and all(isinstance(it, str) for it in required)
        and all(isinstance(schema.get(key) or [], list) for key in ("enum", "examples", "anyOf"))
        and all(_is_number(schema.get(key)) for key in ("minimum", "maximum"))
        and all(_is_count(schema.get(key)) for key in ("minLength", "maxLength"))
        and all(map(_fits, inside))
    )


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def _is_count(value: Any) -> bool:
    return value is None or (isinstance(value, int) and not isinstance(value, bool))


def task_name(run: Trajectory) -> str:
    """The name of the evaluation."""
    task, slash, _ = (run.task_id or "").rpartition("/")
    return task if slash and task else run.dataset or "trajectories"


def sample_id(run: Trajectory, losses: Losses) -> str:
    """The id of the sample: that of the task, without the name of the evaluation."""
    if run.task_id is None:
        return run.source_id or run.trajectory_id or "run"
    task, slash, name = run.task_id.rpartition("/")
    if slash and task and name:
        return name
    losses.add("$.task_id", "the name of the evaluation stands before it")
    return run.task_id


def evaluation_id(run: Trajectory, sample: str, epoch: int, losses: Losses) -> str:
    """The id of the evaluation, of which a reader makes that of the run."""
    source_id, end = run.source_id or "", f"/{sample}_{epoch}"
    if source_id.endswith(end):
        return source_id.removesuffix(end)
    if source_id:
        losses.add("$.source_id", "it becomes the id of an evaluation")
    return source_id or run.trajectory_id or "run"


def scores_of(run: Trajectory, losses: Losses) -> dict[str, Any]:
    """The scores of a sample, the one that decides about success first."""
    numbers: dict[str, float | None] = {**reward_numbers(run, losses)}
    scores: dict[str, Any] = {}
    if run.success is not None:
        scores["success"] = {"value": _GRADES[run.success]}
        if run.reward is not None and run.reward != float(run.success):
            losses.add("$.reward", "the score that decides about success is the reward, too")
        numbers.setdefault("reward", run.reward)
        numbers.pop("success", None)
    elif run.reward is not None:
        first = next((key for key, it in numbers.items() if it == run.reward), "reward")
        numbers = {first: run.reward, **{key: it for key, it in numbers.items() if key != first}}
    elif numbers:
        losses.add("$.rewards", "the first of them is the reward of the run, too")
    scores |= {key: {"value": it} for key, it in numbers.items() if it is not None}
    if run.judge is not None:
        losses.add("$.judge", "scores have a form of their own")
    if run.final_answer is not None and scores:
        next(iter(scores.values()))["answer"] = string(run.final_answer)
    elif run.final_answer not in (None, _last_text(run)):
        losses.add("$.final_answer", "there is no score that it belongs to")
    return scores


def _last_text(run: Trajectory) -> str | None:
    turns = [step for step in run.steps if step.source == "agent"]
    return turns[-1].text if turns else None


def limit_of(run: Trajectory, losses: Losses) -> dict[str, Any]:
    """What ended a run: a limit, or an error."""
    out: dict[str, Any] = {}
    failed = run.error_type is not None or run.error_message is not None
    if failed:
        message = run.error_message or f"{run.error_type}()"
        match = re.match(r"[A-Za-z_.]+(?=\()", message)
        if run.error_type not in (None, match[0] if match else "error"):
            losses.add("$.error_type", "the message of an error begins with its type")
        out["error"] = {"message": string(message), "traceback": "", "traceback_ansi": ""}
    if run.truncated:
        kind = run.stop_reason if run.stop_reason in _LIMITS else "custom"
        out["limit"] = {"type": kind, "limit": 0}
    if run.stop_reason is not None and out.get("limit", {}).get("type") != run.stop_reason:
        losses.add("$.stop_reason", "only the kind of a limit is said")
    if run.terminated is not None:
        losses.add("$.terminated", "it follows from errors and limits")
    return out


def stop_of(step: Step, path: str, losses: Losses) -> dict[str, str]:
    """Why the model stopped, in the words of the format."""
    reason = step.stop_reason
    if reason is None or reason in _REASONS:
        return {} if reason is None else {"stop_reason": reason}
    written = _STOPS.get(reason, "unknown")
    losses.add(f"{path}.stop_reason", f"it is written as {written}")
    return {"stop_reason": written}


def turn_usage(step: Step, path: str, losses: Losses) -> dict[str, Any]:
    """The tokens and the cost of a turn."""
    usage = _usage(
        {"input_tokens": step.tokens_in, "output_tokens": step.tokens_out,
         "input_tokens_cache_read": step.tokens_cached,
         "input_tokens_cache_write": step.tokens_cache_write,
         "reasoning_tokens": step.tokens_reasoning, "total_cost": step.cost_usd}
    )  # fmt: skip
    if step.usage is not None and step.json_value("usage") != usage:
        losses.add(f"{path}.usage", "it is written in the form of the format")
    return usage


def model_usage(run: Trajectory) -> dict[str, Any]:
    """The tokens and the cost of a run; of its turns, where nobody counted them all."""
    totals = _usage({key: getattr(run, f"total_{column}") for key, column in _TOTALS.items()})
    if totals:
        return totals
    numbers = {
        key: [it for step in run.steps if (it := getattr(step, column)) is not None]
        for key, column in _TOTALS.items()
    }
    return _usage({key: sum(counts) if counts else None for key, counts in numbers.items()})


def _usage(numbers: Mapping[str, float | None]) -> dict[str, Any]:
    usage: dict[str, Any] = {key: it for key, it in numbers.items() if it is not None}
    counted = [numbers.get(key) for key in ("input_tokens", "output_tokens")]
    if any(number is not None for number in counted):
        usage["total_tokens"] = sum(it or 0 for it in counted)
    return usage
