"""Tokens and cost of a model's turn, from the usage records that providers and agents write."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec import Raw

from adp.converters.kit.source_object import SourceObject
from adp.converters.reading import NUMBER
from adp_schema import jsontext
from adp_schema.model import Columns

Look = Callable[[str], float | None]
"""Gives the number at a place of a usage record: an integer where it is spelled as such."""
_LIMIT = 1 << 63


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
    raw = source.values.get(key)
    text = source.json_object(key)
    if raw is None or text is None:
        return
    columns["usage"] = text
    look = _look_into(raw) or _look_by_key(SourceObject(raw, key, source.losses))
    _set_columns(look, columns, keys)


def set_usage(
    record: SourceObject, columns: Columns, keys: UsageKeys, data: bytes | None = None
) -> None:
    """Fill the columns of tokens and cost from a usage record, which stays as it is.

    Args:
        record: the record.
        columns: the row of the step.
        keys: where its numbers are.
        data: its JSON text, where that is at hand: it is quicker to look into.
    """
    look = None if data is None else _look_into(data)
    _set_columns(look or _look_by_key(record), columns, keys)


def _set_columns(look: Look, columns: Columns, keys: UsageKeys) -> None:
    prompt, cached = _integer(look, keys.prompt), _integer(look, keys.cached)
    written_to = _integer(look, keys.cache_write)
    if keys.apart and prompt is not None:
        prompt += (cached or 0) + (written_to or 0)
    written, reasoning = _integer(look, keys.written), _integer(look, keys.reasoning)
    total = _integer(look, keys.total)
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
        cost = look(place)
        if cost is not None:
            columns["cost_usd"] = float(cost)
            break


def _integer(look: Look, places: tuple[str, ...]) -> int | None:
    for place in places:
        value = look(place)
        if type(value) is int:
            return value
    return None


def _look_into(raw: Raw | bytes) -> Look | None:
    """Look into a record that is decoded whole; None when a key may be lost so, or a spelling."""
    data = bytes(raw)
    try:
        values: dict[str, Any] = jsontext.decode_value(data)
    except msgspec.DecodeError:  # a number that is too large
        return None
    inner = [value for value in values.values() if type(value) is dict]
    keys = len(values) + sum(map(len, inner))
    # A colon for each key: none stands twice, and there are no deeper ones.
    if data.count(b'":') != keys or b"-0" in data or not data.isascii():
        return None

    def look(place: str) -> float | None:
        value = values.get(place)
        if value is None and "." in place and place not in values:
            outer, _, name = place.partition(".")
            record = values.get(outer)
            value = record.get(name) if type(record) is dict else None
        if type(value) is int:
            return value if -_LIMIT <= value < _LIMIT else float(str(value))
        return value if type(value) is float else None

    return look


def _look_by_key(record: SourceObject) -> Look:
    """Look into a record of which only what is asked for is decoded."""
    inner: dict[str, SourceObject] = {}

    def look(place: str) -> float | None:
        holder, name = record, place
        if "." in place and place not in record.values:
            outer, _, name = place.partition(".")
            if outer not in inner:
                inner[outer] = SourceObject(record.values.get(outer), record.path, record.losses)
            holder = inner[outer]
        value = holder.integer_at(name)
        if value is None and holder.first(name) and holder.first(name) in NUMBER:
            return float(bytes(holder.values[name]))
        return value

    return look


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
