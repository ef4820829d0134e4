"""What a stored response of OpenAI's API says beside its output: time, state and tokens."""

from __future__ import annotations

from typing import Any

from msgspec import Raw

from adp.converters.scalars import number_text
from adp_schema import jsontext
from adp_schema.losses import Losses
from adp_schema.model import Step

_STATUS = frozenset({"completed", "failed", "in_progress", "cancelled", "queued", "incomplete"})
_REASONS = frozenset({"max_output_tokens", "content_filter"})
_STOPS = {"length": "max_output_tokens", "max_tokens": "max_output_tokens"}


def created_at(step: Step, path: str, losses: Losses) -> Raw:
    """When a response was made, in seconds since 1970."""
    if step.timestamp is None:
        if step.timestamp_text is not None:
            losses.add(f"{path}.timestamp_text", "it is no time")
        losses.add(f"{path}.timestamp", "an unknown time is written as 0")
        return Raw(b"0")
    return jsontext.raw(number_text(step.timestamp.timestamp()))


def state_of(step: Step, path: str, losses: Losses) -> dict[str, Any]:
    """Why the model stopped, in the words of the API."""
    reason = step.stop_reason
    if reason is None or reason in _STATUS:
        return {} if reason is None else {"status": reason}
    if reason in _REASONS:
        return {"status": "incomplete", "incomplete_details": {"reason": reason}}
    written = _STOPS.get(reason)
    losses.add(f"{path}.stop_reason", f"it is written as {written or 'completed'}")
    if written is None:
        return {"status": "completed"}
    return {"status": "incomplete", "incomplete_details": {"reason": written}}


def usage_of(step: Step, path: str, losses: Losses) -> dict[str, Any] | None:
    """The numbers of tokens, in the form of the API; None when none is known."""
    if step.usage is not None:
        losses.add(f"{path}.usage", "it is written in the form of the API")
    numbers = (step.tokens_in, step.tokens_out, step.tokens_cached, step.tokens_cache_write,
               step.tokens_reasoning)  # fmt: skip
    if all(number is None for number in numbers):
        return None
    if None in numbers:
        losses.add(f"{path}.usage", "unknown numbers of tokens are written as 0")
    prompt, written, cached, cache_write, reasoning = (number or 0 for number in numbers)
    return {
        "input_tokens": prompt,
        "input_tokens_details": {"cached_tokens": cached, "cache_write_tokens": cache_write},
        "output_tokens": written,
        "output_tokens_details": {"reasoning_tokens": reasoning},
        "total_tokens": prompt + written,
    }
