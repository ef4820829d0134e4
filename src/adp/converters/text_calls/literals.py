"""Calls in function notation, `f(a=1, b='x')`: literals only, read by character and never run.

Strings (any quotes of Python, raw ones, and those that stand side by side), numbers, ``True`` and
``true``, ``None`` and ``null``, lists, tuples, sets and dicts are literals. Names, operators, calls
inside of calls, bytes and f-strings are none: then there is no call.

Arguments become JSON text. Numbers keep their spelling where JSON has it. An argument without a
name is called ``arg0``, ``arg1`` and so on by its place, unless its names are known.

A call takes time in proportion to its length, and so does a failure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

Span = tuple[int, int]

MOST = 1_000_000
"""Characters of one call. A longer one is taken to be none."""
_DEEPEST = 100
_space = re.compile(r"[ \t\r\n]*+")
_NAME = re.compile(r"[^\W\d]\w*+(?:\.[^\W\d]\w*+)*+")
_SPACED_NAME = re.compile(r"[^\s()\[\]{}'\"=,;:`][^()\[\]{}'\"=,;`\n]*+")
_KEYWORD = re.compile(r"([^\W\d][\w.$@-]*+)[ \t]*+=(?!=)[ \t]*+")
_NUMBER = re.compile(
    r"[+-]?+(?:0[xX][0-9a-fA-F]++|0[oO][0-7]++|0[bB][01]++"
    r"|(?:\d[\d_]*+)?+(?:\.(?:\d[\d_]*+)?+)?+(?:(?<=[\d._])[eE][+-]?+\d++)?+)(?![\w.])"
)
_JSON_NUMBER = re.compile(r"-?+(?:0|[1-9]\d*+)(?:\.\d++)?+(?:[eE][+-]?+\d++)?+")
_LONG_NUMBER = 400
_WORD = re.compile(r"\w++")
_WORDS = {"True": "true", "False": "false", "None": "null"}
_WORDS |= {word: word for word in _WORDS.values()}
_STRING = re.compile(
    r"([rRuU]?)(?:"
    r"'''((?:[^'\\]|\\.|'(?!''))*+)'''"
    r'|"""((?:[^"\\]|\\.|"(?!""))*+)"""'
    r"|'([^'\\]*+(?:\\.[^'\\]*+)*+)'"
    r'|"([^"\\]*+(?:\\.[^"\\]*+)*+)")',
    re.DOTALL,
)
_ESCAPE = re.compile(
    r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-7]{1,3})|(.))", re.DOTALL
)
_SURROGATES = re.compile("([\ud800-\udbff])([\udc00-\udfff])")
_LONE = re.compile("[\ud800-\udfff]")
_PLAIN_ESCAPES = {
    "n": "\n",
    "t": "\t",
    "r": "\r",
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "v": "\v",
    "\\": "\\",
    "'": "'",
    '"': '"',
    "\n": "",
}
_CLOSES = {"(": ")", "[": "]", "{": "}"}
_ZEROS = re.compile(r"[+-]?+0\d")


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of a call.

    Attributes:
        name: its keyword; None when it has none.
        value: JSON text of it.
        span: characters of the value.
    """

    name: str | None
    value: str
    span: Span


@dataclass(frozen=True, slots=True)
class LiteralCall:
    """A call in function notation.

    Attributes:
        span: its characters, from the name to the closing bracket.
        name: what is called, with its dots.
        arguments: in the order of the text.
    """

    span: Span
    name: str
    arguments: tuple[Argument, ...]

    def json(self, names: Sequence[str] = ()) -> str:
        """JSON text of an object of the arguments.

        Args:
            names: names of the arguments without a keyword, in order; further ones are ``arg0``
                and so on by their place.
        """
        pairs = []
        for index, argument in enumerate(self.arguments):
            name = argument.name
            if name is None:
                name = names[index] if index < len(names) else f"arg{index}"
            pairs.append(f"{json.dumps(name, ensure_ascii=False)}: {argument.value}")
        return f"{{{', '.join(pairs)}}}"


class _NoLiteralError(Exception):
    """What stands there is no literal."""


def call_at(
    text: str, position: int = 0, *, spaced: bool = False, end: int | None = None
) -> LiteralCall | None:
    """The call that begins at a position; None when none does.

    Args:
        text: the text.
        position: where its name begins.
        spaced: whether names may hold spaces and any signs but brackets, quotes and ``=,;:``.
        end: where the text is taken to end.
    """
    limit = min(len(text) if end is None else end, position + MOST)
    match = (_SPACED_NAME if spaced else _NAME).match(text, position, limit)
    if match is None or not text.startswith("(", match.end()) or match.end() >= limit:
        return None
    listed = arguments_at(text, match.end(), end=limit)
    if listed is None:
        return None
    return LiteralCall((position, listed[1]), match[0].rstrip(), listed[0])


def arguments_at(
    text: str, position: int, *, end: int | None = None
) -> tuple[tuple[Argument, ...], int] | None:
    """The arguments in the bracket ``(`` at a position, and the place after its end; or None."""
    reader = _Literals(text, position, min(len(text) if end is None else end, position + MOST))
    try:
        return tuple(reader.arguments()), reader.position
    except _NoLiteralError:
        return None


def literal_at(text: str, position: int = 0, *, end: int | None = None) -> tuple[str, int] | None:
    """JSON text of the literal at a position, and the place after its end; or None."""
    reader = _Literals(text, position, min(len(text) if end is None else end, position + MOST))
    try:
        return reader.value(0), reader.position
    except _NoLiteralError:
        return None


def calls_in(
    text: str, start: int = 0, *, end: int | None = None, spaced: bool = False
) -> tuple[LiteralCall, ...]:
    """The calls that a text is made of; none when anything else stands in it.

    Line breaks, commas and semicolons may stand between them, and square brackets around them.

    Args:
        text: the text.
        start: where it begins.
        end: where it ends.
        spaced: as `call_at` takes it.
    """
    limit = len(text) if end is None else end
    position = _skip(text, start, limit)
    listed = text.startswith("[", position) and position < limit
    position = _skip(text, position + listed, limit)
    calls: list[LiteralCall] = []
    while position < limit:
        call = call_at(text, position, spaced=spaced, end=limit)
        if call is None:
            return ()
        calls.append(call)
        after = _skip(text, call.span[1], limit)
        if listed and text.startswith("]", after) and after < limit:
            return tuple(calls) if _skip(text, after + 1, limit) == limit else ()
        if text.startswith((",", ";") if not listed else ",", after) and after < limit:
            after = _skip(text, after + 1, limit)
        elif listed or ("\n" not in text[call.span[1] : after] and after < limit):
            return ()
        position = after
    return () if listed else tuple(calls)


def split(text: str, separators: str, start: int = 0, *, end: int | None = None) -> list[Span]:
    """The parts of a text between separators that stand outside of brackets and quotes.

    A quote that is never closed, and a bracket that closes nothing, are characters like others.

    Args:
        text: the text.
        separators: each of its characters separates.
        start: where it begins.
        end: where it ends.
    """
    limit = len(text) if end is None else end
    spans: list[Span] = []
    open_brackets: list[str] = []
    dead_quotes: set[str] = set()
    position = begin = start
    signs = re.compile(f"['\"()\\[\\]{{}}{re.escape(separators)}]")
    while sign := signs.search(text, position, limit):
        char, position = sign[0], sign.start()
        if char in "'\"" and char not in dead_quotes:
            match = _STRING.match(text, position, limit)
            if match is not None:
                position = match.end()
                continue
            dead_quotes.add(char)
        elif char in _CLOSES:
            open_brackets.append(_CLOSES[char])
        elif open_brackets and char == open_brackets[-1]:
            open_brackets.pop()
        elif char in separators and not open_brackets:
            spans.append((begin, position))
            begin = position + 1
        position += 1
    return [*spans, (begin, limit)]


def unescape(words: str) -> str:
    """What the characters between the quotes of a string say; unknown escapes stay as they are."""
    return _ESCAPE.sub(_escaped, words) if "\\" in words else words


def _escaped(match: re.Match[str]) -> str:
    digits = match[1] or match[2] or match[3]
    number = int(digits, 16) if digits else int(match[4], 8) if match[4] else None
    if number is not None:
        return chr(number) if number < 0x110000 else match[0]
    return _PLAIN_ESCAPES.get(match[5], match[0])


def _pair(match: re.Match[str]) -> str:
    return f"{match[1]}{match[2]}".encode("utf-16", "surrogatepass").decode("utf-16")


def _key(text: str) -> str:
    """A key of a JSON object, of the JSON text of a scalar."""
    return text if text.startswith('"') else f'"{text}"'


def _skip(text: str, position: int, limit: int) -> int:
    """The next position that holds no white space."""
    match = _space.match(text, position, limit)
    return match.end() if match else position


class _Literals:
    """Reads literals from a position on."""

    def __init__(self, text: str, position: int, limit: int) -> None:
        self._text = text
        self._limit = limit
        self.position = position

    def arguments(self) -> list[Argument]:
        """Those of the bracket at the position."""
        self._take("(")
        results: list[Argument] = []
        names: set[str] = set()
        while not self._takes(")"):
            if results:
                self._take(",")
                if self._takes(")"):
                    break
            self._skip()
            match = _KEYWORD.match(self._text, self.position, self._limit)
            if match is not None:
                if match[1] in names:
                    raise _NoLiteralError
                names.add(match[1])
                self.position = match.end()
            elif names:
                raise _NoLiteralError
            self._skip()
            start = self.position
            value = self.value(0)
            results.append(Argument(match[1] if match else None, value, (start, self.position)))
        return results

    def value(self, depth: int) -> str:
        """JSON text of the literal at the position."""
        self._skip()
        char = self._text[self.position : self.position + 1]
        if self.position >= self._limit or depth > _DEEPEST:
            raise _NoLiteralError
        if char in "'\"" or (char in "rRuU" and self._is_string()):
            return json.dumps(self._strings(), ensure_ascii=False)
        if char in "[(":
            return self._list(char, depth)
        if char == "{":
            return self._dict(depth)
        if char in "+-." or char.isdigit():
            return self._number()
        match = _WORD.match(self._text, self.position, self._limit)
        if match is None or match[0] not in _WORDS:
            raise _NoLiteralError
        self.position = match.end()
        return _WORDS[match[0]]

    def _list(self, bracket: str, depth: int) -> str:
        self._take(bracket)
        items: list[str] = []
        comma = False
        while not self._takes(_CLOSES[bracket]):
            if items:
                self._take(",")
                comma = True
                if self._takes(_CLOSES[bracket]):
                    break
            items.append(self.value(depth + 1))
        if bracket == "(" and len(items) == 1 and not comma:
            return items[0]
        return f"[{', '.join(items)}]"

    def _dict(self, depth: int) -> str:
        self._take("{")
        members: dict[str, str | None] = {}
        while not self._takes("}"):
            if members:
                self._take(",")
                if self._takes("}"):
                    break
            key = self.value(depth + 1)
            value = self.value(depth + 1) if self._takes(":") else None
            if members and (None in members.values()) != (value is None):
                raise _NoLiteralError
            members[key] = value
        if None in members.values():
            return f"[{', '.join(members)}]"
        if any(key[0] in "[{" for key in members):
            raise _NoLiteralError
        pairs = (f"{_key(key)}: {value}" for key, value in members.items())
        return f"{{{', '.join(pairs)}}}"

    def _number(self) -> str:
        match = _NUMBER.match(self._text, self.position, self._limit)
        written = match[0] if match else ""
        if not written or len(written) > _LONG_NUMBER or _ZEROS.match(written):
            raise _NoLiteralError
        self.position += len(written)
        if written.lstrip("+-").isdecimal() and written[0] != "+":
            return written
        try:
            return str(int(written, 0))
        except ValueError:
            pass
        try:
            number = json.dumps(float(written), allow_nan=False)
        except ValueError:
            raise _NoLiteralError from None
        return written if _JSON_NUMBER.fullmatch(written) else number

    def _is_string(self) -> bool:
        return self._text[self.position + 1 : self.position + 2] in ("'", '"')

    def _strings(self) -> str:
        """The string at the position, with those that follow it without a comma."""
        parts: list[str] = []
        end = self.position
        while match := _STRING.match(self._text, self.position, self._limit):
            words = next(group for group in match.groups()[1:] if group is not None)
            parts.append(words if match[1] in ("r", "R") else unescape(words))
            end = self.position = match.end()
            self._skip()
        self.position = end
        if not parts:
            raise _NoLiteralError
        text = _SURROGATES.sub(_pair, "".join(parts))
        if _LONE.search(text):
            raise _NoLiteralError
        return text

    def _skip(self) -> None:
        self.position = _skip(self._text, self.position, self._limit)

    def _takes(self, char: str) -> bool:
        """Whether a character stands at the position; then the position is after it."""
        self._skip()
        if self.position >= self._limit or self._text[self.position] != char:
            return False
        self.position += 1
        return True

    def _take(self, char: str) -> None:
        if not self._takes(char):
            raise _NoLiteralError
