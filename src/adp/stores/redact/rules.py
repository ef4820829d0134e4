"""What a rule is: how one kind of secret or of personal data is recognised."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

LEFT = r"(?:(?<![0-9A-Za-z_])|(?<=\\[nrtfb])|(?<=%[0-9A-Fa-f]{2})|(?<=\x1b\[[0-9]m))"
"""No word goes on before: the start of a word, or the end of an escape sequence."""

RIGHT = r"(?![0-9A-Za-z_-])"
"""No word goes on after."""

ENCODED_SECRET = "encoded-secret"
"""The kind of a value that another rule finds in what the value stands for."""

SET_VERSION = "4"
"""Version of the built-in rules. Raise it whenever a rule is added, removed or changed."""


@dataclass(frozen=True)
class Rule:
    """How one kind is recognised.

    A text is screened first, with an engine that takes linear time: it must match ``gate``, or,
    without one, hold one of ``starts``. Then ``pattern`` is tried where one of ``starts`` stands,
    or everywhere when there are none. All repeats in a pattern have an upper bound, so no text
    takes more than linear time. The value is the group ``v``, or the whole match without such a
    group. A value never holds a quote: a replacement stays inside its JSON string.

    Attributes:
        kind: name of the kind, as in ``[redacted:kind]``. Several rules may share it.
        group: ``secrets``, ``personal``, ``own`` or ``given``.
        what: what it is, for the table of the documentation.
        pattern: regular expression of Python.
        starts: literals with which every match begins, what is looked at behind not counted.
        gate: regular expression without look-around that every text with a match matches.
        check: decides about a value; it takes the text, the start and the end of the value.
        source: where the format is documented.
        back: a match may begin so many characters before the literal.
        ahead: with ``back``, so many characters are enough to end it.
        find: finds the values, where a pattern cannot say all; the pattern only documents it.
        near: words in small letters; one of them stands within the first ``back`` characters of
            every match, whatever its case. The pattern is tried around them only.
        weak: it goes by the words around; a match of another rule at the same place wins.
    """

    kind: str
    group: str
    what: str
    pattern: str
    starts: tuple[str, ...] = ()
    gate: str = ""
    check: Callable[[str, int, int], bool] | None = field(default=None, compare=False)
    source: str = ""
    back: int = 0
    ahead: int = 600
    weak: bool = False
    near: tuple[str, ...] = ()
    find: Callable[[str], Iterator[tuple[int, int]]] | None = field(default=None, compare=False)

    @cached_property
    def regex(self) -> re.Pattern[str]:
        """The compiled pattern."""
        return re.compile(self.pattern)


@dataclass(frozen=True)
class Hit:
    """A value in a text.

    Attributes:
        start: its first character.
        end: the character after it.
        kind: its kind.
        rank: which of two values at one place counts: the lower.
    """

    start: int
    end: int
    kind: str
    rank: int


def placeholder(kind: str, number: int = 1) -> str:
    """What stands for a value of a kind.

    Args:
        kind: the kind.
        number: tells ids apart that would be the same otherwise; 1 is not written.
    """
    return f"[redacted:{kind}]" if number == 1 else f"[redacted:{kind}-{number}]"


PLACEHOLDER = re.compile(r"\[redacted:[a-z0-9][a-z0-9-]{0,60}\]")
"""A placeholder; what overlaps one is never a finding."""
