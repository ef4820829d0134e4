"""Code in fences with a language: each block is an action, ``Execution result:`` its result.

Chats that show code look like this, so it is never chosen by itself.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from adp.converters.text_calls.dialect import Dialect, ParsedCall, ParsedResult, ParsedTurn
from adp.converters.text_calls.frames import after_mark, code_call, written_frame
from adp.converters.text_calls.thoughts import Openings

_OPEN = (
    r"^[ \t]*(?P<bar>`{3,}|~{3,})[ \t]*[{.]{0,2}(?P<language>[A-Za-z][\w+#-]{0,30})"
    r"(?=[\s}:,{(.]|\r?$)[^`\n]*\n"
)
_NO_CODE = frozenset(
    {"text", "txt", "plain", "plaintext", "output", "console", "log", "markdown", "md", "none"}
)
_LONGEST_BAR = 8


class FencedCode(Dialect):
    """The dialect ``fenced_code``."""

    name = "fenced_code"
    title = "Code in fences with a language (```` ```python ````), `Execution result:`"
    example = "I compute it.\n\n```python\nprint(1 + 1)\n```\n"
    marks = ("```", "~~~")
    automatic = False
    results = ("Execution result:", "Execution Result:", "execution result:")
    answers_all = False

    def parse(self, text: str, tools: Sequence[str] = ()) -> ParsedTurn:
        """Take a turn of an agent apart."""
        calls: list[ParsedCall] = []
        missing: set[str] = set()
        left, position = None, 0
        walk = Openings(text, _OPEN)
        while (match := walk.after(position)) is not None:
            end = fence_end(text, match, missing)
            if end is None:
                left, position = "a code fence is not closed", match.end()
                continue
            position = end[1]
            language = match["language"].lower()
            if language in _NO_CODE:
                continue
            span = (match.start("bar"), end[1])
            bar = match["bar"]
            call = code_call(text, span, (match.end() - 1, end[0]), language, closing=f"\n{bar}")
            if call is not None:
                calls.append(call)
        return ParsedTurn(tuple(calls), left=left)

    def results_in(self, text: str, calls: Sequence[ParsedCall]) -> tuple[ParsedResult, ...]:
        """The result of the last block of a turn; a turn without a mark is one of a person.

        Whoever runs a turn of several blocks runs them as one program, and shows what that prints.
        """
        last = len(calls) - 1 if calls else None
        return tuple(replace(it, call=last) for it in after_mark(text, self.results))

    def write(self, call: ParsedCall) -> str | None:
        """The characters of a call."""
        if call.language != call.name.lower():
            return None
        return written_frame(call)


def fence_end(text: str, match: re.Match[str], missing: set[str]) -> tuple[int, int] | None:
    """Where the code of a fence ends, and the fence; None when nothing closes it.

    Args:
        text: the text.
        match: the line that begins it.
        missing: fences that nothing closes, which were looked for before.
    """
    bar = match["bar"][:_LONGEST_BAR]
    if bar in missing:
        return None
    closing = re.compile(rf"^[ \t]*{re.escape(bar)}{re.escape(bar[0])}*[ \t]*\r?$", re.MULTILINE)
    end = closing.search(text, match.end())
    if end is None:
        missing.add(bar)
        return None
    return end.start(), end.end()


DIALECT = FencedCode()
