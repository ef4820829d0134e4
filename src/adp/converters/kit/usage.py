"""Tokens and cost of a model's turn, from the usage records that providers and agents write."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import msgspec
from msgspec import Raw

from adp.converters.kit.source_object import SourceObject
from adp.converters.reading import NUMBER
from adp_schema import jsontext
from adp_schema.model import Columns

_LIMIT = 1 << 63
_KINDS = (int, float)


class Numbers(Protocol):
    """The numbers of a usage record by their places: an integer where it is spelled as such."""

    def get(self, place: str, /) -> float | None:
        """The number at a place."""


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
    numbers = whole_numbers(raw)
    if numbers is None:
        set_usage(SourceObject(raw, key, source.losses), columns, keys)
    else:
        set_numbers(numbers, columns, keys)


def set_usage(record: SourceObject, columns: Columns, keys: UsageKeys) -> None:
    """Fill the columns of tokens and cost from a usage record, which stays as it is."""
    set_numbers(_NumbersByKey(record), columns, keys)


def set_numbers(numbers: Numbers, columns: Columns, keys: UsageKeys) -> None:
    """Fill the columns of tokens and cost from the numbers of a usage record."""
    prompt, cached = _integer(numbers, keys.prompt), _integer(numbers, keys.cached)
    written_to = _integer(numbers, keys.cache_write)
    if keys.apart and prompt is not None:
        prompt += (cached or 0) + (written_to or 0)
    written, reasoning = _integer(numbers, keys.written), _integer(numbers, keys.reasoning)
    total = _integer(numbers, keys.total)
    if total is not None and written is not None and reasoning:
        written += reasoning if total >= (prompt or 0) + written + reasoning else 0
    values = {
        "tokens_in": prompt,
        "tokens_out": written,
        "tokens_cached": cached,
        "tokens_cache_write": written_to,
        "tokens_reasoning": reasoning,
    }
    columns.update({name: value for name, value in values.items() if value is not None})
    for place in keys.cost:
        cost = numbers.get(place)
        if cost is not None:
            columns["cost_usd"] = float(cost)
            break


def _integer(numbers: Numbers, places: tuple[str, ...]) -> int | None:
    for place in places:
        value = numbers.get(place)
        if type(value) is int:
            return value
    return None


def whole_numbers(raw: Raw) -> Numbers | None:
    """The numbers of a record that is decoded whole; None when a key may be lost so."""
    data = bytes(raw)
    try:
        values: dict[str, Any] = jsontext.decode_value(data)
    except msgspec.DecodeError:  # a number that is too large
        return None
    numbers: dict[str, float] = {}
    keys = len(values)
    for name, value in values.items():
        if type(value) is dict:
            keys += len(value)
            inner = {f"{name}.{key}": number for key, number in value.items()}
            numbers |= {key: it for key, it in inner.items() if type(it) in _KINDS}
        elif type(value) in _KINDS:
            numbers[name] = value
    # A colon for each key: none stands twice, and there are no deeper ones.
    if data.count(b'":') != keys or b"-0" in data or not data.isascii():
        return None
    if not all(-_LIMIT <= number < _LIMIT for number in numbers.values()):
        return None
    return None if "." in "".join(values) else numbers


class _NumbersByKey:
    """The numbers of a record of which only what is asked for is decoded."""

    def __init__(self, record: SourceObject) -> None:
        self._record = record
        self._inner: dict[str, SourceObject] = {}

    def get(self, place: str) -> float | None:
        """The number at a place."""
        record, name = self._record, place
        if "." in place and place not in record.values:
            outer, _, name = place.partition(".")
            if outer not in self._inner:
                self._inner[outer] = SourceObject(
                    record.values.get(outer), record.path, record.losses
                )
            record = self._inner[outer]
        value = record.integer_at(name)
        if value is None and record.first(name) and record.first(name) in NUMBER:
            return float(bytes(record.values[name]))
        return value


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
