"""Programs of ``pyautogui``: a turn of such statements, or its last code fence.

A program is a code action in Python, as the Agent Data Protocol has it for OmniACT; its statements
are not taken apart. ``computer.terminate(...)``, ``time.sleep(...)`` and imports may stand in it.
Words before a fence or before ``Output Script:`` are prose.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from adp.converters.text_calls.dialect import Dialect, ParsedCall, ParsedTurn, Span
from adp.converters.text_calls.labels import code_of, fences, same_values, trim

_STATEMENT = re.compile(
    r"(?:pyautogui|computer|pyperclip|time)\.\w+\(.*\)[ \t]*(?:#.*)?"
    r"|import (?:pyautogui|time|pyperclip)(?:, ?\w+)*|for \w+ in range\([\d, ]+\):|#.*|"
)
_ACTS = re.compile(r"^[ \t]*+(?:pyautogui|computer)\.\w+\(", re.MULTILINE)
_LABEL = re.compile(r"^(?:## )?(?:Output Script|Action|Code):[ \t]*+\n?", re.MULTILINE)


class PyAutoGui(Dialect):
    """The dialect ``pyautogui``."""

    name = "pyautogui"
    title = "Programs of pyautogui (`pyautogui.click(10, 20)`)"
    example = "pyautogui.click(10, 20)\npyautogui.write('adp')"
    marks = ("pyautogui.", "computer.")
    automatic = False

    def parse(self, text: str, tools: Sequence[str] = ()) -> ParsedTurn:
        """Take a turn of an agent apart."""
        blocks = fences(text)
        if blocks:
            block = blocks[-1]
            return _program(text, block.span, block.words, code_of(text, block))
        label = None
        for match in _LABEL.finditer(text):
            label = match
        words = trim(text, (label.end() if label else 0, len(text)))
        start = label.start() if label else words[0]
        return _program(text, (start, words[1]), words, text[slice(*words)])

    def write(self, call: ParsedCall) -> str | None:
        """A program: in a fence, unless it is all of a turn."""
        bare = same_values(self, call.raw, call)
        if call.span[0] == 0 and bare is not None:
            return bare
        return same_values(self, f"```python\n{call.raw}\n```", call)


def _program(text: str, span: Span, words: Span, code: str) -> ParsedTurn:
    """The code action of a program; none when a line is something else."""
    if _ACTS.search(text, *words) is None:
        return ParsedTurn()
    for line in code.split("\n"):
        if _STATEMENT.fullmatch(line.strip()) is None:
            return ParsedTurn(left="a line of it is no statement of pyautogui")
    call = ParsedCall(span, "python", None, code, "text", kind="code", language="python")
    return ParsedTurn((call,))


DIALECT = PyAutoGui()
