"""Putting placeholders into JSON text so that it stays JSON."""

from __future__ import annotations

import re
from bisect import bisect_right

from adp.core.redact.rules import Hit, placeholder

_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_SCALAR = re.compile(r"[^\s,:{}\[\]\"]+")

Edit = tuple[int, int, str]


def json_edits(text: str, hits: list[Hit]) -> list[Edit]:
    """Replacements that leave JSON text valid: start, end and what comes there.

    A value inside one string is replaced there. One that is a number is replaced by a string.
    In the keys of objects, values get numbers, so that different keys stay different.

    Args:
        text: JSON text.
        hits: values in it that do not overlap, in order.
    """
    strings = [match.span() for match in _STRING.finditer(text)]
    starts = [start for start, _ in strings]
    keys: dict[str, int] = {}
    edits: list[Edit] = []
    for hit in hits:
        index = bisect_right(starts, hit.start) - 1
        start, end = strings[index] if index >= 0 else (0, 0)
        if start < hit.start and hit.end < end:
            number = 1
            if text[end : end + 16].lstrip()[:1] == ":":
                number = keys.setdefault(text[hit.start : hit.end], len(keys) + 1)
            edits.append((hit.start, hit.end, placeholder(hit.kind, number)))
        else:
            edits.append(_whole_tokens(text, hit, strings))
    return _apart(edits)


def _whole_tokens(text: str, hit: Hit, strings: list[tuple[int, int]]) -> Edit:
    """Replace all tokens that a value touches by one string."""
    start, end = hit.start, hit.end
    near = text[max(0, start - 400) : end + 400]
    scalars = [match.span() for match in _SCALAR.finditer(near)]
    shift = max(0, start - 400)
    for first, last in (*strings, *((a + shift, b + shift) for a, b in scalars)):
        if first < hit.end and hit.start < last:
            start, end = min(start, first), max(end, last)
    return start, end, f'"{placeholder(hit.kind)}"'


def _apart(edits: list[Edit]) -> list[Edit]:
    """Leave out replacements inside others."""
    kept: list[Edit] = []
    for edit in edits:
        if not kept or edit[0] >= kept[-1][1]:
            kept.append(edit)
    return kept
