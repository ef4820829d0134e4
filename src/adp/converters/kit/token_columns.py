"""Token ids and log probabilities that servers and training environments write."""

from __future__ import annotations

import math

from adp.converters.json_objects import integer
from adp.converters.kit.source_object import SourceObject
from adp.converters.reading import BRACKET, NUMBER
from adp_schema import jsontext
from adp_schema.model import Columns

_IDS = {
    "prompt_token_ids": ("prompt_token_ids",),
    "completion_token_ids": ("generation_token_ids", "completion_token_ids", "token_ids",
                             "response_token_ids"),
}  # fmt: skip
_EXACT_DIGITS = 16
"""Integers of fewer digits are floats, too."""
_LOGPROBS = ("generation_log_probs", "completion_logprobs", "token_logprobs")


def take_tokens(source: SourceObject, columns: Columns) -> None:
    """Fill the columns of token ids and log probabilities, where they are lists of numbers."""
    for column, keys in _IDS.items():
        for key in keys:
            texts = _numbers(source, key)
            numbers = [integer(text, 32) for text in texts or ()]
            if texts and None not in numbers:
                source.drop(key)
                columns[column] = numbers
                break
    for key in _LOGPROBS:
        if values := _floats(source, key):
            source.drop(key)
            columns["logprobs"] = values
            break


def take_span(source: SourceObject, columns: Columns) -> None:
    """Fill the columns from ``token_ids`` of which ``mask`` says which ones the model wrote.

    The ids before the first written one stay, as do lists whose lengths do not fit each other.

    Args:
        source: has the lists; ``logprobs`` are those of the written tokens.
        columns: the row of the step.
    """
    texts, flags = _numbers(source, "token_ids"), _flags(source, "mask")
    numbers = [integer(text, 32) for text in texts or ()]
    if not texts or flags is None or len(flags) != len(numbers) or None in numbers:
        return
    if 1 not in flags:
        return
    start = flags.index(1)
    logprobs = _floats(source, "logprobs")
    if len(logprobs) == len(flags) - start:
        columns["logprobs"] = logprobs
        source.drop("logprobs")
    columns["completion_token_ids"], columns["token_mask"] = numbers[start:], flags[start:]
    source.drop("token_ids", "mask")
    if start:
        source.values["token_ids"] = jsontext.raw(jsontext.text_of(numbers[:start]))


def _flags(source: SourceObject, key: str) -> list[int] | None:
    """A list of true and false, or of ones and zeros, as numbers; None for anything else."""
    if source.first(key) != BRACKET:
        return None
    known = {b"true": 1, b"1": 1, b"false": 0, b"0": 0}
    flags = [known.get(bytes(item)) for item in jsontext.decode_array(source.values[key])]
    return None if None in flags else [flag or 0 for flag in flags]


def _floats(source: SourceObject, key: str) -> list[float]:
    """A list of numbers; none where one of them is infinite, or an integer that no float is."""
    texts = _numbers(source, key) or []
    values = [float(text) for text in texts]
    exact = all(
        math.isfinite(value) and (len(text) < _EXACT_DIGITS or not text.lstrip("-").isdigit())
        for text, value in zip(texts, values, strict=True)
    )
    return values if exact else []


def _numbers(source: SourceObject, key: str) -> list[str] | None:
    """The texts of a list of numbers; None for anything else."""
    if source.first(key) != BRACKET:
        return None
    items = jsontext.decode_array(source.values[key])
    if not all(jsontext.first_byte(item) in NUMBER for item in items):
        return None
    return [bytes(item).decode("ascii") for item in items]
