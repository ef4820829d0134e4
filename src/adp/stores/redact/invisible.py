"""Reading past what breaks a value up without being seen: colours, zero-width signs, line wraps.

A terminal puts codes for colours into what it shows and breaks long lines; a page may hold signs
without a width, soft hyphens. So a text with such signs inside a word or before a value is searched
without them too, and what is found there is mapped back to the characters of the text.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right

from adp.stores.redact import validity
from adp.stores.redact.escapes import DecodedText, rewritten
from adp.stores.redact.rules import Rule

_UNSEEN = "\u00ad\u200b-\u200f\u2060\ufeff"
_SINGLE = "\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\ufeff"
SIGNS = f"[\x1b{_UNSEEN}]"
"""What a text must hold to be read without it; for prefilters."""

ESCAPED_SIGNS = r"\\u(?:001[bB]|00[aA][dD]|20[06]|[fF][eE][fF])"
"""The same as escapes of JSON."""

_NOISE = re.compile(
    rf"(?:\x1b\[[0-9;:?]{{0,32}}[ -/]{{0,2}}[@-~]|\x1b\][^\x07\x1b\n]{{0,200}}(?:\x07|\x1b\\)"
    rf"|\x1b[()][0-9A-B]|\x1b[=>78]|[{_UNSEEN}])+"
)
_TOKEN = "[0-9A-Za-z_+/=.~-]"
_BEFORE = re.compile(rf"(?:{_TOKEN}|(?i:\bis|\bwas|[:=])[ \t]{{0,3}}[\"'`]?)\Z")
_GAPS = " \t\r\n,;|()[]{}<>"
_WRAP = re.compile(
    rf"\n(?<={_TOKEN}{{4}}\n)(?={_TOKEN}{{2}})|\r\n(?<={_TOKEN}{{4}}\r\n)(?={_TOKEN}{{2}})"
)


def has_signs(text: str) -> bool:
    """Whether a text has signs that are not seen inside a word, or before a value."""
    # Single characters are found ten times as fast as an expression finds them.
    if "\x1b" not in text and (text.isascii() or not any(sign in text for sign in _SINGLE)):
        return False
    return any(
        text[match.end() : match.end() + 1].strip(_GAPS) != "" and _may_break(text, match.start())
        for match in _NOISE.finditer(text)
    )


def _may_break(text: str, place: int) -> bool:
    """Whether what stands before a place may be a part of a value, or say that one comes."""
    return bool(_BEFORE.search(text, max(0, place - 24), place))


def may_wrap(rule: Rule) -> bool:
    """Whether values of a rule have a form of their own, known over a line break too."""
    return not rule.weak and rule.group == "secrets" and bool(rule.starts or rule.back)


def without_signs(view: DecodedText) -> DecodedText:
    """The view without colours and signs that are not seen."""
    return _without(view, _NOISE)


def without_wraps(view: DecodedText) -> DecodedText | None:
    """The view with the lines put together that end and begin inside a word; None: there are none.

    Not every such break is a wrap: see `wrapped_end`.
    """
    without = _without(view, _WRAP)
    return without if without.places else None


def wrapped_end(rule: Rule, view: DecodedText, start: int, end: int) -> int:
    """Where a value ends of a view `without_wraps` that goes over line breaks; 0: it is none.

    It must have a form of its own, and each line must go on as if drawn by chance: a word below a
    whole key is no part of it.
    """
    breaks = view.places[bisect_right(view.places, start) : bisect_left(view.places, end)]
    last = 0
    for place, after in zip(breaks, (*breaks[1:], end), strict=False):
        if not validity.mixed(view.text[place:after]):
            break
        last = after
    return last


def _without(view: DecodedText, pattern: re.Pattern[str]) -> DecodedText:
    return rewritten(view, pattern, lambda _: "")
