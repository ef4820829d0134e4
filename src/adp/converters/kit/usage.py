"""Tokens and cost of a model's turn, from the usage records that providers and agents write."""

from __future__ import annotations

from dataclasses import dataclass

from adp.converters.kit.source_object import SourceObject
from adp_schema.model import Columns


@dataclass(frozen=True)
class UsageKeys:
    """Where a usage record has its numbers; a dot leads into an object, or stands in the key.

    Attributes:
        prompt: prompt tokens.
        written: tokens that the model wrote.
        cached: prompt tokens that came from a cache.
        cache_write: prompt tokens that were written to one.
        reasoning: written tokens that were reasoning.
        cost: US dollars.
        apart: whether ``prompt`` leaves out those of the cache.
        total: all tokens; where it has room for ``reasoning`` beside ``written``, both count.
    """

    prompt: tuple[str, ...] = ()
    written: tuple[str, ...] = ()
    cached: tuple[str, ...] = ()
    cache_write: tuple[str, ...] = ()
    reasoning: tuple[str, ...] = ()
    cost: tuple[str, ...] = ()
    apart: bool = False
    total: tuple[str, ...] = ()


TOKEN_COLUMNS = (
    "tokens_in", "tokens_out", "tokens_cached", "tokens_cache_write", "tokens_reasoning", "cost_usd"
)  # fmt: skip
"""The columns that `set_usage` fills."""

ANTHROPIC = UsageKeys(
    prompt=("input_tokens",),
    written=("output_tokens",),
    cached=("cache_read_input_tokens",),
    cache_write=("cache_creation_input_tokens",),
    reasoning=("output_tokens_details.thinking_tokens",),
    apart=True,
)
OPENAI = UsageKeys(
    prompt=("prompt_tokens", "input_tokens"),
    written=("completion_tokens", "output_tokens"),
    cached=("prompt_tokens_details.cached_tokens", "input_tokens_details.cached_tokens",
            "cached_input_tokens"),
    cache_write=("input_tokens_details.cache_write_tokens", "cache_write_input_tokens"),
    reasoning=("completion_tokens_details.reasoning_tokens",
               "output_tokens_details.reasoning_tokens", "reasoning_output_tokens"),
    cost=("cost",),
)  # fmt: skip
GEMINI = UsageKeys(
    prompt=("input", "promptTokenCount", "prompt_token_count"),
    written=("output", "candidatesTokenCount", "candidates_token_count"),
    cached=("cached", "cachedContentTokenCount", "cached_content_token_count"),
    reasoning=("thoughts", "thoughtsTokenCount", "thoughts_token_count"),
    total=("total", "totalTokenCount", "total_token_count"),
)


def take_usage(source: SourceObject, key: str, columns: Columns, keys: UsageKeys) -> None:
    """Fill the columns of tokens and cost; ``usage`` keeps the record whole.

    Args:
        source: the object that has the record.
        key: where.
        columns: the row of the step.
        keys: where its numbers are.
    """
    text = source.json_object(key)
    if text is None:
        return
    columns["usage"] = text
    record = SourceObject(text.encode("utf-8"), key, source.losses)
    set_usage(record, columns, keys)


def set_usage(record: SourceObject, columns: Columns, keys: UsageKeys) -> None:
    """Fill the columns of tokens and cost from a usage record, which stays as it is."""
    prompt, cached = _number(record, keys.prompt), _number(record, keys.cached)
    written_to = _number(record, keys.cache_write)
    if keys.apart and prompt is not None:
        prompt += (cached or 0) + (written_to or 0)
    written, reasoning = _number(record, keys.written), _number(record, keys.reasoning)
    total = _number(record, keys.total)
    if total is not None and written is not None and reasoning:
        written += reasoning if total >= (prompt or 0) + written + reasoning else 0
    numbers = {
        "tokens_in": prompt,
        "tokens_out": written,
        "tokens_cached": cached,
        "tokens_cache_write": written_to,
        "tokens_reasoning": reasoning,
    }
    columns.update({name: value for name, value in numbers.items() if value is not None})
    for place in keys.cost:
        inner, name = _place(record, place)
        if inner.first(name) and inner.first(name) in b"-0123456789":
            columns["cost_usd"] = float(bytes(inner.values[name]))
            break


def _number(record: SourceObject, places: tuple[str, ...]) -> int | None:
    for place in places:
        inner, name = record, place
        if "." in place:
            if place not in record.values and place.partition(".")[0] not in record.values:
                continue
            inner, name = _place(record, place)
        value = inner.integer_at(name)
        if value is not None:
            return value
    return None


def _place(record: SourceObject, place: str) -> tuple[SourceObject, str]:
    *outer, name = [place] if place in record else place.split(".")
    for key in outer:
        record = SourceObject(record.values.get(key), record.path, record.losses)
    return record, name


def set_totals(record: SourceObject, columns: Columns, keys: UsageKeys) -> None:
    """Fill the totals of a trajectory from a usage record, which stays as it is."""
    numbers: Columns = {}
    set_usage(record, numbers, keys)
    add_totals(numbers, columns)


def add_totals(numbers: Columns, columns: Columns) -> None:
    """Fill the totals of a trajectory from numbers under the names of the columns of steps."""
    columns.update({f"total_{name}": numbers[name] for name in _TOTALS if name in numbers})


_TOTALS = ("tokens_in", "tokens_out", "tokens_cached", "cost_usd")


class RunningTotals:
    """Counts of a whole run, which a log repeats as they grow: a turn took what they grew by."""

    def __init__(self) -> None:
        self._last: Columns = {}

    def grown(self, now: Columns) -> Columns:
        """By how much each count is above the last one; one that fell is left out."""
        grown = {name: value - self._last.get(name, 0) for name, value in now.items()}
        self._last |= now
        return {name: value for name, value in grown.items() if value >= 0}

    def finish(self, columns: Columns) -> None:
        """Fill the totals of the trajectory with the last counts, where it has none."""
        totals: Columns = {}
        add_totals(self._last, totals)
        columns.update({name: it for name, it in totals.items() if name not in columns})
