"""Tokens of Java and JavaScript, and a cursor over them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from adp.eval.bfcl.python_calls import LONGEST, DecodeError


def words(text: str) -> tuple[str, ...]:
    """The words of a text."""
    return tuple(text.split())


_NAME = re.compile(r"[^\W\d]\w*|[$_][\w$]*")
_DIGITS = r"(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:[eE][+-]?\d+)?"
_WHOLE = r"0[xX][0-9a-fA-F_]+|0[bB][01_]+|0[oO][0-7_]+"
_SCRIPT_NUMBER = re.compile(rf"(?:{_WHOLE}|{_DIGITS})n?")
_JAVA_NUMBER = re.compile(rf"(?:{_WHOLE})[lL]?|{_DIGITS}[lLfFdD]?")
_JAVA_SIGNS = words(
    ">>>= <<= >>= ... -> :: ++ -- && || == != <= >= += -= *= /= &= |= ^= %= << ( ) [ ] { } ; "
    ", . @ = > < ! ~ ? : + - * / & | ^ %"
)
_SCRIPT_SIGNS = words(
    ">>>= ... === !== **= <<= >>= &&= ||= ??= >>> => == != <= >= && || ?? ?. ++ -- += -= *= "
    "/= %= &= |= ^= << >> ** ( ) [ ] { } ; , . = > < ! ~ ? : + - * / % & | ^ # @"
)
_SPACE = re.compile(r"(?:\s|\ufeff|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_REGEX = re.compile(r"/(?:[^/\\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+/[a-z]*")
_TRIPLE = re.compile(r'"""(?:[^\\]|\\.)*?"""', re.DOTALL)
_QUOTED = {mark: re.compile(rf"{mark}(?:[^{mark}\\\n]|\\.)*{mark}", re.DOTALL) for mark in "\"'"}
# tree-sitter lets a line end inside a text of Java.
_JAVA_TEXT = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)


@dataclass(frozen=True, slots=True)
class Token:
    """A token.

    Attributes:
        kind: name, number, string, char, template, regex, sign or end.
        text: its characters.
        start: where it begins.
        end: where the next character is.
        after_line: whether a line ends between it and the token before.
    """

    kind: str
    text: str
    start: int
    end: int
    after_line: bool = False


class Cursor:
    """Tokens one after the other.

    Args:
        text: the source.
        script: whether it is JavaScript; else it is Java.

    Raises:
        DecodeError: something is no token.
    """

    def __init__(self, text: str, *, script: bool) -> None:
        if len(text) > LONGEST:
            raise DecodeError(f"the text has more than {LONGEST:,} characters")
        self.text = text
        self.tokens = _tokens(text, script)
        self.index = 0

    @property
    def now(self) -> Token:
        """The token that is next."""
        return self.tokens[self.index]

    def peek(self, ahead: int = 1) -> Token:
        """A later token."""
        return self.tokens[min(self.index + ahead, len(self.tokens) - 1)]

    def take(self) -> Token:
        """The next token; the cursor moves behind it."""
        token = self.now
        if token.kind == "end":
            raise DecodeError("the text ends too early")
        self.index += 1
        return token

    def at(self, *signs: str) -> bool:
        """Whether the next token is one of these signs or words."""
        return self.now.kind in ("sign", "name") and self.now.text in signs

    def accept(self, *signs: str) -> Token | None:
        """The next token when it is one of these."""
        return self.take() if self.at(*signs) else None

    def expect(self, sign: str) -> Token:
        """The next token, which must be this one.

        Raises:
            DecodeError: it is another one.
        """
        if not self.at(sign):
            raise DecodeError(f"'{sign}' is expected at character {self.now.start}")
        return self.take()

    def name(self) -> Token:
        """The next token, which must be a name.

        Raises:
            DecodeError: it is something else.
        """
        if self.now.kind != "name":
            raise DecodeError(f"a name is expected at character {self.now.start}")
        return self.take()

    def balanced(self) -> list[Token]:
        """The tokens from an opening bracket to the one that closes it.

        Raises:
            DecodeError: nothing closes it.
        """
        closing = {"(": ")", "[": "]", "{": "}"}
        found = [self.take()]
        open_brackets = [closing[found[0].text]]
        while open_brackets:
            token = self.take()
            found.append(token)
            if token.kind != "sign":
                continue
            if token.text in "([{":
                open_brackets.append(closing[token.text])
            elif token.text in ")]}" and token.text != open_brackets.pop():
                raise DecodeError(f"'{token.text}' closes nothing at character {token.start}")
        return found


def _tokens(text: str, script: bool) -> list[Token]:
    found: list[Token] = []
    index = 0
    while True:
        space = _SPACE.match(text, index)
        start = space.end() if space else index
        after_line = "\n" in text[index:start]
        if start >= len(text):
            found.append(Token("end", "", start, start, after_line))
            return found
        kind, end = _token(text, start, script, found)
        found.append(Token(kind, text[start:end], start, end, after_line))
        index = end


def _token(text: str, start: int, script: bool, before: list[Token]) -> tuple[str, int]:
    first = text[start]
    name = _NAME.match(text, start)
    if name:
        end = name.end()
        while end < len(text) and (text[end] == "$" or text[end] == "_" or text[end].isalnum()):
            end += 1
        return "name", end
    number = (_SCRIPT_NUMBER if script else _JAVA_NUMBER).match(text, start)
    if number and (first.isdigit() or first == "."):
        return "number", number.end()
    if first in _QUOTED:
        return _string(text, start, script)
    if script and first == "`":
        return "template", _template_end(text, start)
    if script and first == "/" and _regex_may_stand(before):
        regex = _REGEX.match(text, start)
        if regex:
            return "regex", regex.end()
    for sign in _SCRIPT_SIGNS if script else _JAVA_SIGNS:
        if text.startswith(sign, start):
            return "sign", start + len(sign)
    raise DecodeError(f"'{first}' at character {start} is no token")


def _string(text: str, start: int, script: bool) -> tuple[str, int]:
    triple = None if script else _TRIPLE.match(text, start)
    quoted = _JAVA_TEXT if text[start] == '"' and not script else _QUOTED[text[start]]
    found = triple or quoted.match(text, start)
    if found is None:
        raise DecodeError(f"the text at character {start} has no end")
    return "char" if text[start] == "'" and not script else "string", found.end()


def _template_end(text: str, start: int) -> int:
    index = start + 1
    while index < len(text):
        if text[index] == "\\":
            index += 2
        elif text[index] == "`":
            return index + 1
        elif text.startswith("${", index):
            index = _hole_end(text, index + 2)
        else:
            index += 1
    raise DecodeError(f"the template at character {start} has no end")


def _hole_end(text: str, index: int) -> int:
    depth = 1
    while index < len(text):
        if text[index] == "`":
            index = _template_end(text, index)
            continue
        depth += {"{": 1, "}": -1}.get(text[index], 0)
        index += 1
        if depth == 0:
            return index
    raise DecodeError("a template has no end")


def _regex_may_stand(before: list[Token]) -> bool:
    if not before:
        return True
    last = before[-1]
    return last.kind == "sign" and last.text not in (")", "]", "}")
