"""Putting placeholders into JSON text so that it stays JSON."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator

from adp.stores.redact.rules import Hit, placeholder

_TOKEN = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[^\s,:{}\[\]"]++', re.DOTALL)

Edit = tuple[int, int, str]


def json_edits(text: str, hits: list[Hit]) -> list[Edit]:
    """Replacements that leave JSON text valid: start, end and what comes there.

    A value inside one string is replaced there. Of one that is a number, or goes over several
    tokens, each is replaced by a string. In the keys of objects, values get numbers, so that
    different keys stay different.

    Args:
        text: JSON text.
        hits: values in it that do not overlap, in order.
    """
    tokens = [match.span() for match in _TOKEN.finditer(text)]
    starts = [start for start, _ in tokens]
    keys: dict[str, int] = {}
    edits: list[Edit] = []
    for hit in hits:
        index = max(bisect_right(starts, hit.start) - 1, 0)
        start, end = tokens[index]
        if start < hit.start and hit.end < end and text[start] == '"':
            number = 1
            if text[end : end + 16].lstrip()[:1] == ":":
                number = keys.setdefault(text[hit.start : hit.end], len(keys) + 1)
            edits.append((hit.start, hit.end, placeholder(hit.kind, number)))
        else:
            for first, last in _touched(tokens, index, hit):
                # The tokens of one value may hold a part of another one.
                while edits and edits[-1][1] > first:
                    edits.pop()
                edits.append((first, last, f'"{placeholder(hit.kind)}"'))
    return edits


def _touched(tokens: list[tuple[int, int]], index: int, hit: Hit) -> Iterator[tuple[int, int]]:
    # No slice of the tokens: it would copy all that follow, for each hit.
    while index < len(tokens) and tokens[index][0] < hit.end:
        start, end = tokens[index]
        index += 1
        if end > hit.start:
            yield start, end
