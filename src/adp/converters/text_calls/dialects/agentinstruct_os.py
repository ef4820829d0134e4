"""Operating system tasks of AgentInstruct: ``Think:``, then ``Act: bash`` with a code fence.

``Act: answer(words)`` is the final answer, ``Act: finish`` a call of ``finish``. Results begin with
``The output of the OS:``; another turn of the user is a new task.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from adp.converters.text_calls.dialect import (
    Dialect,
    Marked,
    ParsedCall,
    ParsedResult,
    ParsedTurn,
)
from adp.converters.text_calls.labels import (
    Labelled,
    code_of,
    fence_after,
    fences,
    label_pattern,
    same_values,
    sections,
    thought,
)

_PATTERN = label_pattern(("Think", "Act"))
_BASH = re.compile(r"bash[ \t]*+(?:\n|$)")
_ANSWER = re.compile(r"answer\((.*)\)", re.DOTALL)
_FINISH = re.compile(r"finish[.]?(?=\s|$)")
_RESULT = re.compile(r"\s*+The output of the OS(?: is empty\.?|:)\n?")


class AgentInstructOs(Dialect):
    """The dialect ``agentinstruct_os``."""

    name = "agentinstruct_os"
    title = "AgentInstruct, operating system (`Think:`, `Act: bash` with a code fence)"
    example = "Think: I count the files.\n\nAct: bash\n\n```bash\nls | wc -l\n```"
    marks = ("Act:",)
    results = ("The output of the OS",)
    answers_all = False

    def parse(self, text: str, tools: Sequence[str] = ()) -> ParsedTurn:
        """Take a turn of an agent apart."""
        parts = sections(text, _PATTERN)
        blocks = fences(text)
        calls: list[ParsedCall] = []
        thoughts: list[Marked] = []
        answer: Marked | None = None
        left = None
        for index, part in enumerate(parts):
            end = parts[index + 1].span[0] if index + 1 < len(parts) else part.span[1]
            words = text[slice(*part.words)]
            if part.label == "think":
                thoughts.append(thought(part, end))
            elif (match := _ANSWER.fullmatch(words)) is not None:
                first = part.words[0] + match.start(1)
                answer = Marked(part.span, (first, first + len(match[1])))
            elif (match := _FINISH.match(words)) is not None:
                calls.append(
                    ParsedCall((part.span[0], part.words[0] + match.end()), "finish", "{}")
                )
            elif (match := _BASH.match(words)) is not None:
                block = fence_after(text, part.words[0] + len("bash"), blocks)
                if block is None:
                    left = "no code follows it"
                else:
                    calls.append(_code(part, block.span[1], code_of(text, block)))
            else:
                left = "it is neither bash nor an answer nor the end"
        if not calls and answer is None:
            return ParsedTurn(left=left)
        return ParsedTurn(tuple(calls), tuple(thoughts), answer, left)

    def results_in(self, text: str, calls: Sequence[ParsedCall]) -> tuple[ParsedResult, ...]:
        """The output of the operating system."""
        match = _RESULT.match(text)
        if match is None:
            return ()
        return (ParsedResult(Marked((0, len(text)), (match.end(), len(text)))),)

    def write(self, call: ParsedCall) -> str | None:
        """A call behind its label."""
        if call.kind == "code" and call.raw is not None:
            return same_values(self, f"Act: bash\n\n```bash\n{call.raw}\n```", call)
        return same_values(self, "Act: finish", call)


def _code(part: Labelled, end: int, code: str) -> ParsedCall:
    span = (part.span[0], end)
    return ParsedCall(span, "bash", None, code, "text", kind="code", language="bash")


DIALECT = AgentInstructOs()
