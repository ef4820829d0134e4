"""Marks: every value of a record that may be chosen freely gets another that is found nowhere else.

Equal texts get equal marks, and a text that holds another value of the record holds its marked form
afterwards: calls still name their results, and a text that repeats a call still repeats it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from tests.fidelity.exact import INSIDE, Keys, Number, leaves, replaced

WORD_KEYS = frozenset(
    [
        *(
            "role",
            "from",
            "type",
            "class_",
            "kind",
            "action",
            "actor",
            "schema_version",
            "language",
        ),
        *("encoding", "format", "media_type", "boundary", "detail", "object"),
    ]
)
"""Keys whose values say what an object is: other words make another object."""

WORDS = frozenset(
    [
        *("user", "assistant", "agent", "system", "tool", "function", "human", "gpt", "expert"),
        *("environment", "observation", "text", "image", "audio", "session", "message"),
        *("API", "FINAL"),
    ]
)
"""Words that say so whatever their key (ATIF's and ADP's ``source``)."""

STRUCTURAL_NUMBERS = frozenset({"step_id", "version", "num_turns", "num_hops", "loss", "weight"})
"""Numbers that must be what they are, or that few values are allowed for."""

_TIME = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d")
_DATA = re.compile(r"^data:[\w/+.-]+;base64,|^(UklGR|iVBOR|/9j/)")
_PATH = re.compile(r"^(https?://|[\w./-]+/)?[\w./%?=&-]+\.\w{2,5}$")
_INNER = re.compile(r"""(?P<before>["']\s*:\s*)(?P<quote>["'])(?P<value>[^"'\\]*)(?P=quote)""")
_EMBEDDED = re.compile(r"<\w+>\s*[{\[]|^\{REWARD")
_SHORTEST = 6


@dataclass
class Mark:
    """What a value became, and what to look for in a target."""

    keys: Keys
    value: Any
    new: Any
    sought: tuple[str, ...]

    def is_in(self, text: str) -> bool:
        """Whether the marked value stands in the text of a target."""
        return any(form in text for form in self.sought)


@dataclass
class Marked:
    """A record with marks, and the places that have none."""

    tree: Any
    marks: list[Mark]
    words: list[tuple[Keys, Any]] = field(default_factory=list)


def is_word(keys: Keys, value: Any) -> bool:
    """Whether a text says what an object is."""
    return isinstance(value, str) and (
        (bool(keys) and keys[-1] in WORD_KEYS and INSIDE not in keys) or value in WORDS
    )


class Marker:
    """Makes marks, each of them once.

    Args:
        seed: other marks for another seed.
    """

    def __init__(self, seed: int = 0) -> None:
        self._count = 1000 + seed

    def mark(self, tree: Any, only: set[Keys] | None = None) -> Marked:
        """Mark the values of a record: all that are free, or those at some places."""
        known: dict[str, tuple[str, str]] = {}
        marked = Marked(tree, [])
        changes: dict[Keys, Any] = {}
        result = list(leaves(tree))
        for keys, value in result:
            if only is not None and keys not in only:
                continue
            mark = self._of(keys, value, known)
            if mark is None:
                marked.words.append((keys, value))
            else:
                marked.marks.append(mark)
        inner = sorted((text for text in known if len(text) >= _SHORTEST), key=len, reverse=True)
        for mark in marked.marks:
            if isinstance(mark.value, str) and not isinstance(mark.value, Number):
                mark.new = _within(mark, inner, known)
            changes[mark.keys] = mark.new
        marked.tree = replaced(tree, changes)
        return marked

    def _of(self, keys: Keys, value: Any, known: dict[str, tuple[str, str]]) -> Mark | None:
        self._count += 1
        number = self._count
        if isinstance(value, Number):
            if not keys or str(keys[-1]) in STRUCTURAL_NUMBERS:
                return None
            return _number(keys, value, number)
        if not isinstance(value, str) or is_word(keys, value) or not value.strip():
            return None
        if _DATA.match(value) or _EMBEDDED.match(value):
            return None
        if value not in known:
            known[value] = _text(value, number)
        new, sought = known[value]
        forms = (sought,)
        if _TIME.match(value):
            forms = (new[:19], *_epochs(new))
        return Mark(keys, value, new, forms)


def _number(keys: Keys, value: Number, number: int) -> Mark:
    """Another number of the same kind and sign; a time stays a time."""
    if re.fullmatch(r"-?\d+", value):
        digits = value.lstrip("-")
        if len(digits) in (10, 13):
            new = Number(f"{digits[:4]}{number:06d}{'7' * (len(digits) - 10)}")
            return Mark(keys, value, new, (str(new), *_dates(new)))
        new = Number(f"{'-' if value[0] == '-' else ''}73{number:05d}91")
        return Mark(keys, value, new, (new.lstrip("-"),))
    new = Number(f"{'-' if value[0] == '-' else ''}0.73{number:05d}91")
    return Mark(keys, value, new, (f"73{number:05d}91",))


def _text(value: str, number: int) -> tuple[str, str]:
    """The marked form of a text, and its mark."""
    mark = f"zq{number}qz"
    if _TIME.match(value):
        minute, second = divmod(number % 3600, 60)
        day = f"20{20 + number % 17}-0{1 + number % 9}-{10 + number % 17}"
        return f"{day}T{10 + number % 13}:{minute:02d}:{second:02d}Z", mark
    if _PATH.match(value):
        stem, dot, suffix = value.rpartition(".")
        return f"{stem}{mark}{dot}{suffix}", mark
    if re.fullmatch(r"[\w.:-]+", value):
        return f"{value}{mark}", mark
    return f"{value} {mark}", mark


def _within(mark: Mark, inner: list[str], known: dict[str, tuple[str, str]]) -> str:
    """A text with the values inside it marked too; one that only repeats others has no mark."""
    text, covered = mark.value, 0
    for other in inner:
        if other != mark.value and other in text:
            covered += len(other) * text.count(other)
            text = text.replace(other, known[other][0])
    if "<" in text and _INNER.search(text):
        # A call inside a text: its values are marked as the same values elsewhere.
        text = _INNER.sub(lambda match: _inner(match, known), text)
        mark.sought = tuple(re.findall(r"zq\d+qz", text)[:1]) or mark.sought
        return text if "zq" in text else mark.new
    if covered * 2 > len(mark.value):
        mark.sought = tuple(re.findall(r"zq\d+qz", text)[:1]) or mark.sought
        return text
    if text == mark.value:
        return str(mark.new)
    return f"{text} {mark.sought[0]}" if mark.sought[0].startswith("zq") else str(mark.new)


def _inner(match: re.Match[str], known: dict[str, tuple[str, str]]) -> str:
    value = match["value"]
    new = known[value][0] if value in known else value
    return f"{match['before']}{match['quote']}{new}{match['quote']}"


def _epochs(text: str) -> tuple[str, ...]:
    """A time as seconds since 1970."""
    from datetime import datetime

    seconds = int(datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp())
    return (str(seconds),)


def _dates(number: Number) -> tuple[str, ...]:
    """A number of seconds or milliseconds as a date."""
    from datetime import UTC, datetime

    seconds = int(number[:10])
    return (datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S"),)
