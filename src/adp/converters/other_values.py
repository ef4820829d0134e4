"""Other values for a leaf of a record, which a format that checks its values may take as well."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from typing import Any

from adp.converters.leaves import Leaf
from adp_schema.losses import general_path

_MOST_WORDS = 16
_MOST_SAMPLES = 3
_LONGEST = 64
_WORD = re.compile(r"[^\W\d]+([ _.-][^\W\d]+)*")
_NUMBER = re.compile(r"-?\d+(\.\d+)?")
_DAY = r"(19|20)\d\d[-/._]?(0[1-9]|1[0-2])[-/._]?"
_DATE = re.compile(rf"(?P<before>{_DAY})(?P<part>0[1-9]|[12]\d|3[01])(?P<after>)")
_CLOCK = re.compile(
    rf"(?P<before>({_DAY}\d\d[T _]|(\w+,? )*\d\d? [A-Za-z]{{3,9}} \d{{4}},? )?\d\d?[:-]?)"
    r"(?P<part>[0-5]\d)(?P<after>([:-]?[0-5]\d([.,]\d+)?)? ?(Z|[+-]\d\d:?\d\d|[A-Z]{3,4})?)"
)
"""A time of the day, mostly behind a date; the part is its minutes."""


class SampleValues:
    """The short values that samples have at each path, as far as they may be words of a choice."""

    def __init__(self) -> None:
        self._values: dict[str, dict[Any, Any]] = {}

    def add(self, leaf: Leaf) -> None:
        """Note the value of a leaf."""
        value = leaf.value
        is_long = isinstance(value, str) and len(value) > _LONGEST
        if value is None or isinstance(value, list | dict) or is_long:
            return
        known = self._values.setdefault(general_path(leaf.path), {})
        if len(known) <= _MOST_WORDS:
            known.setdefault((type(value), value), value)

    def others(self, leaf: Leaf) -> list[Any]:
        """Other values of its type that the samples have where a leaf is; of null, any."""
        known = [*self._values.get(general_path(leaf.path), {}).values()]
        if leaf.value is not None:
            known = [value for value in known if type(value) is type(leaf.value)]
        return [value for value in known if value != leaf.value][:_MOST_SAMPLES]

    def is_choice(self, leaf: Leaf) -> bool:
        """Whether all values where a leaf is are words, and few."""
        known = [*self._values.get(general_path(leaf.path), {}).values()]
        words = [value for value in known if isinstance(value, str) and _WORD.fullmatch(value)]
        return isinstance(leaf.value, str) and len(words) == len(known) <= _MOST_WORDS


def other_values(leaf: Leaf, samples: SampleValues) -> Iterator[Any]:
    """Values in the place of a leaf, those first that a format takes most surely.

    A time becomes another time, a word of a few another one of them, a number one that is near.
    """
    value = leaf.value
    known = samples.others(leaf)
    candidates: list[Any]
    if isinstance(value, str):
        candidates = _texts(value, known, is_choice=samples.is_choice(leaf))
    elif value is None:
        candidates = [*known, "text", 1, True, {"key": "text"}]
    elif isinstance(value, bool):
        candidates = [not value]
    elif isinstance(value, int):
        candidates = [value + 1, value - 1, *known]
    elif isinstance(value, float):
        candidates = [*_floats(value), *known]
    elif isinstance(value, list):
        candidates = [["text"], [1], [{"key": "text"}]]
    else:
        candidates = [{"key": "text"}, {"key": 1}, {"key": {"key": "text"}}]
    tried = [value]
    for candidate in candidates:
        if not any(type(candidate) is type(other) and candidate == other for other in tried):
            tried.append(candidate)
            yield candidate


def _texts(value: str, known: Sequence[str], *, is_choice: bool) -> list[str]:
    """Other texts."""
    first = known if is_choice else ()
    return [*_times(value), *_numbers(value), *first, f"{value}-2", *known, *_of_its_form(value)]


def _times(text: str) -> Iterator[str]:
    """Another time, and another day, in the form of a text that is one."""
    if len(text) > _LONGEST or not text[:1].isalnum():
        return
    if match := _CLOCK.fullmatch(text):
        yield _replaced(match, "31" if match["part"] == "30" else "30")
    elif match := _DATE.fullmatch(text):
        yield _replaced(match, "16" if match["part"] == "15" else "15")


def _replaced(match: re.Match[str], part: str) -> str:
    return f"{match['before']}{part}{match['after']}"


def _numbers(text: str) -> Iterator[str]:
    """Another number as long as a text that is one."""
    if len(text) <= _LONGEST and _NUMBER.fullmatch(text):
        yield f"{text[:-1]}{(int(text[-1]) + 5) % 10}"


def _of_its_form(text: str) -> Iterator[str]:
    """A text with another last letter or digit; JSON with another item."""
    match = re.search(r"[A-Za-z0-9](?=[^A-Za-z0-9]*$)", text[-_LONGEST:])
    if match:
        letter = match[0]
        other = "1" if letter == "0" else "0" if letter.isdigit() else "b" if letter == "a" else "a"
        at = max(0, len(text) - _LONGEST) + match.start()
        yield f"{text[:at]}{other.upper() if letter.isupper() else other}{text[at + 1 :]}"
    if text[:1] in ("{", "["):
        try:
            item = json.loads(text)
        except (ValueError, RecursionError):
            return
        yield json.dumps({**item, "key": "text"} if isinstance(item, dict) else [*item, "text"])


def _floats(value: float) -> Iterator[float]:
    """Other numbers: within 0 and 1 where the number is."""
    following = math.nextafter(value + 1, math.inf)
    between = [value / 2 if value else 0.5] if 0 <= value <= 1 else []
    yield from (number for number in (*between, following, value / 2, 0.5) if math.isfinite(number))
