"""What people write into a search, and what of it SQLite's FTS5 is asked.

A search is words, ``"phrases"``, beginnings of words (``book*``), AND, OR, NOT and parentheses;
words beside each other must all be there. All that is not one of these marks reaches FTS5 in
quotes, so no search is another question than it looks.
"""

from __future__ import annotations

import json
import re

from adp_schema.errors import UsageError

_MARKS = re.compile(r'"(?P<phrase>[^"]*)"(?P<star>\*?)|(?P<mark>[()])|(?P<word>[^\s()"]+)')
_EXAMPLE = 'write words, "a phrase", beginnings such as book*, AND, OR, NOT and parentheses'
_DEPTH = 40
_TERMS = 200
_SIGNS = re.compile("([\u2e80-\u2fdf\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
                    "\U00020000-\U0003ffff])")  # fmt: skip
"""Characters of languages that put no spaces between words."""

_ESCAPES = re.compile(r"(?:\\(?:u[0-9a-fA-F]{4}|[^u]))+")

SEPARATOR = "\x1f"
"""What is put around a character that is a word of its own; no text of a snippet has it."""


def spaced(text: str) -> str:
    """A text in which each Chinese or Japanese character is a word of its own."""
    return text if text.isascii() else _SIGNS.sub(rf"{SEPARATOR}\1{SEPARATOR}", text)


def unescaped(text: str) -> str:
    """Arguments as they read: the escapes of JSON become what they stand for."""
    return _ESCAPES.sub(_decoded, text) if "\\" in text else text


def _decoded(match: re.Match[str]) -> str:
    try:
        value = str(json.loads(f'"{match[0]}"'))
    except ValueError:
        return match[0]
    return value.encode("utf-8", "replace").decode()


def fts_expression(text: str) -> str:
    """The expression of FTS5 for a search.

    Args:
        text: what somebody wrote.

    Raises:
        UsageError: it is no search; says what is missing.
    """
    if text.count('"') % 2:
        raise UsageError(f"the search opens a quotation mark that it does not close; {_EXAMPLE}")
    clean = text.encode("utf-8", "replace").decode().replace("\0", " ")
    marks = list(_MARKS.finditer(clean))
    if not marks:
        raise UsageError(f"the search is empty; {_EXAMPLE}")
    if len(marks) > _TERMS:
        raise UsageError(f"the search has {len(marks)} words and marks; write {_TERMS} at most")
    parser = _Parser(marks)
    expression = parser.any_of(0)
    if parser.left():
        raise UsageError(f"the search closes a parenthesis that it did not open; {_EXAMPLE}")
    return expression


class _Parser:
    """Reads the marks of a search: OR binds least, NOT and AND alike, as in a search engine."""

    def __init__(self, marks: list[re.Match[str]]) -> None:
        self._marks, self._place = marks, 0

    def left(self) -> bool:
        return self._place < len(self._marks)

    def _next(self) -> str:
        return self._marks[self._place][0] if self.left() else ""

    def any_of(self, depth: int) -> str:
        if depth > _DEPTH:
            raise UsageError(f"the search has more than {_DEPTH} parentheses in each other")
        parts = [self._all_of(depth)]
        while self._next() == "OR":
            self._place += 1
            parts.append(self._all_of(depth))
        return parts[0] if len(parts) == 1 else f"({' OR '.join(parts)})"

    def _all_of(self, depth: int) -> str:
        there: list[str] = []
        absent: list[str] = []
        while self.left() and self._next() not in ("OR", ")"):
            if self._next() == "AND":
                if not there and not absent:
                    raise UsageError(f"AND stands between two words; {_EXAMPLE}")
                self._place += 1
                if self._next() in ("AND", "OR", ")", ""):
                    raise UsageError(f"AND stands between two words; {_EXAMPLE}")
            kept = there
            if self._next() == "NOT":
                self._place += 1
                kept = absent
            kept.append(self._operand(depth))
        if not there:
            missing = "say what is to be there before NOT" if absent else "a word is missing"
            raise UsageError(f"{missing}; {_EXAMPLE}")
        whole = there[0] if len(there) == 1 else f"({' AND '.join(there)})"
        return f"({whole} NOT ({' OR '.join(absent)}))" if absent else whole

    def _operand(self, depth: int) -> str:
        text = self._next()
        if text in ("", ")", "AND", "OR", "NOT"):
            raise UsageError(f"a word is missing; {_EXAMPLE}")
        match = self._marks[self._place]
        self._place += 1
        if text == "(":
            inside = self.any_of(depth + 1)
            if self._next() != ")":
                raise UsageError(
                    f"the search opens a parenthesis that it does not close; {_EXAMPLE}"
                )
            self._place += 1
            return inside
        words = match["word"] if match["phrase"] is None else match["phrase"]
        if not any(map(str.isalnum, words)):
            raise UsageError(f"{text!r} has neither letters nor digits to look for; {_EXAMPLE}")
        star = " *" if match["star"] or (match["word"] and words.endswith("*")) else ""
        return f'"{spaced(words)}"{star}'
