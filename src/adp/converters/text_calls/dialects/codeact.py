"""CodeAct: code in ``<execute>`` tags, the answer in ``<solution>``, results as ``Observation:``.

``<execute>`` and ``<execute_ipython>`` hold Python, ``<execute_bash>`` a command,
``<execute_mysql>`` SQL, and ``<execute_browse>`` what a browser shall do.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from adp.converters.text_calls.dialect import (
    Dialect,
    Marked,
    ParsedCall,
    ParsedResult,
    ParsedTurn,
    Span,
)
from adp.converters.text_calls.frames import (
    after_mark,
    code_call,
    framed,
    scanned,
    unfenced,
    written_frame,
)
from adp.converters.text_calls.thoughts import Openings, trimmed

_LANGUAGES = {"": "python", "_ipython": "python", "_python": "python", "_bash": "bash"}
_LANGUAGES |= {"_sh": "sh", "_mysql": "mysql", "_sql": "sql"}
_OPEN = r"<execute(?P<suffix>_(?:ipython|python|bash|sh|mysql|sql|browse))?>"
_SOLUTION, _SOLUTION_END = "<solution>", "</solution>"


class CodeAct(Dialect):
    """The dialect ``codeact``."""

    name = "codeact"
    title = "CodeAct (`<execute>` code, `<execute_bash>`, `<solution>`)"
    example = "I compute it.\n<execute>\nprint(1 + 1)\n</execute>"
    marks = ("<execute", _SOLUTION)
    prompts = ("<execute>", "<execute_bash>", "<execute_ipython>")
    results = ("Observation:", "OBSERVATION:")

    def parse(self, text: str, tools: Sequence[str] = ()) -> ParsedTurn:
        """Take a turn of an agent apart."""
        missing: set[str] = set()
        turn = scanned(
            text, _OPEN, lambda match: _calls(text, match, missing), "tags of code hold no code"
        )
        return replace(turn, answer=None if turn.calls else _solution(text))

    def results_in(self, text: str, calls: Sequence[ParsedCall]) -> tuple[ParsedResult, ...]:
        """The results in a turn that follows calls."""
        return after_mark(text, self.results) or super().results_in(text, calls)

    def write(self, call: ParsedCall) -> str | None:
        """The characters of a call."""
        return written_frame(call)


def _calls(text: str, match: re.Match[str], missing: set[str]) -> list[ParsedCall]:
    """The code behind a tag; the closing tag may be missing at the end of the text."""
    suffix = match["suffix"] or ""
    closing = f"</execute{suffix}>"
    end = -1 if closing in missing else text.find(closing, match.end())
    if end < 0:
        missing.add(closing)
        return _unclosed(text, match, suffix, closing)
    span = (match.start(), end + len(closing))
    call = _call(text, span, (match.end(), end), suffix, closing)
    return [call] if call is not None else []


def _unclosed(text: str, match: re.Match[str], suffix: str, closing: str) -> list[ParsedCall]:
    """Code up to the end of the text, where a harness cut the closing tag off."""
    begins = match.start() == 0 or text[match.start() - 1] in "\n>"
    if not begins or "<execute" in text[match.end() : match.end() + 10_000]:
        return []
    if not text[match.end() : match.end() + 200].lstrip(" \t").startswith(("\n", "\r")):
        return []
    call = _call(text, (match.start(), len(text)), (match.end(), len(text)), suffix, closing)
    return [call] if call is not None else []


def _call(text: str, span: Span, inside: Span, suffix: str, closing: str) -> ParsedCall | None:
    if suffix == "_browse":
        words = trimmed(text, inside)
        raw = text[slice(*words)]
        call = ParsedCall(span, "browse", None, raw, "text")
        return framed(text, span, words, call, closing=closing) if raw else None
    return code_call(text, span, unfenced(text, inside), _LANGUAGES[suffix], closing=closing)


def _solution(text: str) -> Marked | None:
    """The answer in tags."""
    match = Openings(text, _SOLUTION).after(0)
    end = text.find(_SOLUTION_END, match.end()) if match else -1
    if match is None or end < 0:
        return None
    words = trimmed(text, (match.end(), end))
    return Marked((match.start(), end + len(_SOLUTION_END)), words) if words[0] < words[1] else None


DIALECT = CodeAct()
