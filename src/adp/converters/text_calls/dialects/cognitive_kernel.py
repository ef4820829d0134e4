"""Cognitive Kernel: ``Thought:`` and ``Code:`` with a fence of Python.

The code is a code action, whatever functions it calls; the last fence of a turn counts.
"""

from __future__ import annotations

from collections.abc import Sequence

from adp.converters.text_calls.dialect import Dialect, Marked, ParsedCall, ParsedTurn
from adp.converters.text_calls.labels import (
    code_of,
    fence_after,
    fences,
    label_pattern,
    same_values,
    sections,
    thought,
)

_PATTERN = label_pattern(("Thought", "Code"))


class CognitiveKernel(Dialect):
    """The dialect ``cognitive_kernel``."""

    name = "cognitive_kernel"
    title = "Cognitive Kernel (`Thought:`, `Code:` with a fence of Python)"
    example = "Thought: I search for it.\nCode:\n```python\nprint(search('adp'))\n```"
    marks = ("Code:",)

    def parse(self, text: str, tools: Sequence[str] = ()) -> ParsedTurn:
        """Take a turn of an agent apart."""
        blocks = fences(text)
        calls: list[ParsedCall] = []
        thoughts: list[Marked] = []
        left = None
        parts = sections(text, _PATTERN)
        for index, part in enumerate(parts):
            if part.label == "thought":
                end = parts[index + 1].span[0] if index + 1 < len(parts) else part.span[1]
                thoughts.append(thought(part, end))
                continue
            block = fence_after(text, part.words[0], blocks)
            if block is None or block.language.lower() not in ("python", "py", ""):
                left = "no Python follows it"
                continue
            span = (part.span[0], block.span[1])
            code = code_of(text, block)
            calls.append(
                ParsedCall(span, "python", None, code, "text", kind="code", language="python")
            )
        if not calls:
            return ParsedTurn(left=left if thoughts else None)
        return ParsedTurn(tuple(calls), tuple(thoughts), left=left)

    def write(self, call: ParsedCall) -> str | None:
        """The code in a fence behind its label."""
        return same_values(self, f"Code:\n```python\n{call.raw}\n```", call)


DIALECT = CognitiveKernel()
