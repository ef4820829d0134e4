"""Rules for private keys, in whatever layout a text shows them.

A key stands between two markers. Editors, diffs, comments and source code put line numbers, signs
and quotes before and between its lines, so all between the markers is taken, when enough of it
is base64. Without the second marker, the lines of base64 are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from adp.stores.redact import validity
from adp.stores.redact.rules import Rule

LONGEST = 24_000
"""Characters between the markers of a key."""

_BLANK = r"(?:[ +]|%20)"
_NAME = rf"(?:[A-Z0-9]{{1,12}}{_BLANK}){{0,4}}PRIVATE{_BLANK}KEY(?:{_BLANK}BLOCK)?"
_MARKER = re.compile(
    rf"(?P<begin>-----BEGIN{_BLANK}{_NAME}-----|---- BEGIN {_NAME} ----|Private-Lines: ?\d{{1,3}})"
    rf"|(?P<end>-----END{_BLANK}{_NAME}-----|---- END {_NAME} ----"
    r"|Private-MAC: ?(?:[0-9a-f]{40,64})?)"
    r"|-----BEGIN "
)
_BASE64 = r"(?:[0-9A-Za-z+/=]|%2[BbFf]|%3[Dd]|\\/)"
_RUN = re.compile(rf"{_BASE64}{{16,}}+")
_LONG = 40
"""A line of a key whose end is missing is no shorter, but for the last."""

_HEADERS = re.compile(
    r"(?:[\s\\>#*|/0-9nr:-]{0,40}(?:Proc-Type|DEK-Info|Version|Comment|Charset|Hash|MessageID): "
    r"[^\n\\]{0,200}){0,6}"
)
_GAP = 48
"""Characters between two lines: a line break, a number, signs of a comment."""

_LAST = re.compile(
    rf"(?:[^0-9A-Za-z\"]|\\[nrt]|[0-9]{{1,6}}[^0-9A-Za-z\"]|<br ?/?>){{1,{_GAP}}}+"
    rf"(?P<v>{_BASE64}{{4,{_LONG}}}+)"
)
_ALONE = re.compile(r"(?:\s|\\+[nrt])*(?P<v>[0-9A-Za-z+/]{4,}+={0,2})(?:\s|\\+[nrt])*")


def find_keys(text: str) -> Iterator[tuple[int, int]]:
    """The private keys of a text, with their markers, or in pieces where quotes are between."""
    markers = list(_MARKER.finditer(text))
    for number, first in enumerate(markers):
        if first["begin"] is None:
            continue
        after = markers[number + 1] if number + 1 < len(markers) else None
        if after is not None and after["end"] is not None and after.start() - first.end() < LONGEST:
            if _is_key(text, first.end(), after.start()):
                yield from _pieces(text, first.start(), after.end())
            continue
        stop = min(after.start() if after else len(text), first.end() + LONGEST)
        end = _reach(text, first.end(), stop)
        if end > first.end():
            yield from _pieces(text, first.start(), end)


def _is_key(text: str, start: int, end: int) -> bool:
    """Whether enough between two markers is base64."""
    start = _HEADERS.match(text, start, end).end()  # type: ignore[union-attr]
    runs = [match[0] for match in _RUN.finditer(text, start, end)]
    size = sum(map(len, runs))
    return size >= _LONG and size >= 0.4 * (end - start) and _is_random("".join(runs))


def _is_random(run: str) -> bool:
    return all(validity.character_kinds(run)[:3]) and len(set(run)) > 12


def _alternates(run: str) -> bool:
    """Whether small letters, capitals and digits alternate as in no path."""
    kinds = re.sub("[0-9]", "0", re.sub("[A-Z]", "A", re.sub("[a-z/]", "a", run)))
    return sum(a != b for a, b in pairwise(kinds)) > 0.3 * len(kinds)


def _reach(text: str, start: int, stop: int) -> int:
    """Where the lines of base64 end that follow a marker, when the second one is missing."""
    done = start
    place = _HEADERS.match(text, start, stop).end()  # type: ignore[union-attr]
    for match in _RUN.finditer(text, place, stop):
        if match.start() - place > _GAP:
            break
        if match.end() - match.start() < _LONG:
            continue
        if not _is_random(match[0]) or not _alternates(match[0]):
            break
        done = place = match.end()
    last = _LAST.match(text, done, stop) if done > start else None
    if last is None or not _is_random(last["v"] + "aA0"):
        return done
    return last.end() if re.search("[0-9=]", last["v"]) or last.end() == stop else done


def _pieces(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """A key as one value, or, as no value holds a quote, its lines one by one."""
    if text.find('"', start, end) < 0:
        yield start, end
        return
    for piece in re.finditer(r'[^"]+', text[start:end]):
        alone = _ALONE.fullmatch(piece[0])
        runs = [run.span() for run in _RUN.finditer(piece[0])]
        if alone is not None and (alone["v"].strip("+/")):
            yield start + piece.start() + alone.start("v"), start + piece.start() + alone.end("v")
        elif any(last - first > 20 for first, last in runs):
            first = start + piece.start() + runs[0][0]
            first += text[first - 1] == "\\"  # the n of a line break
            yield first, start + piece.start() + runs[-1][1]


_OBJECT = re.compile(r"\{[^{}]{40,12000}+\}")
_PARTS = re.compile(
    r"""["'](?:d|p|q|dp|dq|qi|k)\\{0,31}["']\s{0,4}:\s{0,4}\\{0,31}["'](?P<v>[0-9A-Za-z_-]{20,2000})"""
)


def find_jwk(text: str) -> Iterator[tuple[int, int]]:
    """The private parts of JSON Web Keys.

    Source: RFC 7518, section 6.
    """
    for match in _OBJECT.finditer(text):
        if re.search(r"""["']kty\\{0,31}["']""", match[0]):
            for part in _PARTS.finditer(text, match.start(), match.end()):
                yield part.span("v")


_ASSIGNED = (
    r"(?i:private_?key|preshared_?key)\\{0,31}[\"']?[ \t]{0,4}[:=][ \t]{0,4}\\{0,31}[\"']?"
    r"(?P<v>[0-9A-Za-z+/]{43}=)"
)

PRIVATE_KEYS = (
    Rule("private-key", "secrets", "Private key: PEM, OpenSSH, PGP, PuTTY; GCP service accounts",
         _MARKER.pattern, gate=rf"BEGIN{_BLANK}{_NAME}|Private-Lines:", find=find_keys,
         source="https://www.rfc-editor.org/rfc/rfc7468"),
    Rule("private-key", "secrets", "JSON Web Key", _PARTS.pattern,
         gate=r"""["']kty\\{0,31}["']""", find=find_jwk, check=validity.random_token,
         source="https://www.rfc-editor.org/rfc/rfc7517"),
    Rule("private-key", "secrets", "WireGuard key", _ASSIGNED + r"(?![0-9A-Za-z+/=])",
         gate=_ASSIGNED.replace("?P<v>", "?:"), check=validity.random_token, weak=True,
         source="https://www.wireguard.com/"),
)  # fmt: skip
