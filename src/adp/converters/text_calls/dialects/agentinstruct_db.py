"""Database tasks of AgentInstruct: ``Action: Operation`` with SQL, ``Action: Answer``.

The code is MySQL: it is named ``mysql``, as the Agent Data Protocol does. The explanation before an
action is no reasoning by any mark, and stays prose.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from adp.converters.text_calls.dialect import Dialect, Marked, ParsedCall, ParsedTurn
from adp.converters.text_calls.labels import (
    code_of,
    fence_after,
    fences,
    label_pattern,
    same_values,
    sections,
)

_PATTERN = label_pattern(("Action", "Final Answer"))
_OPERATION = re.compile(r"Operation[ \t]*+(?:\n|$)")


class AgentInstructDb(Dialect):
    """The dialect ``agentinstruct_db``."""

    name = "agentinstruct_db"
    title = "AgentInstruct, database (`Action: Operation` with SQL, `Action: Answer`)"
    example = "I count the rows.\nAction: Operation\n```sql\nSELECT COUNT(*) FROM books;\n```"
    marks = ("Action: Operation", "Action: Answer", "Action:Operation", "Action:Answer")

    def parse(self, text: str, tools: Sequence[str] = ()) -> ParsedTurn:
        """Take a turn of an agent apart."""
        if not any(mark in text for mark in self.marks):
            return ParsedTurn()
        parts = sections(text, _PATTERN)
        blocks = fences(text)
        calls: list[ParsedCall] = []
        answer: Marked | None = None
        left = None
        for index, part in enumerate(parts):
            words = text[slice(*part.words)]
            following = parts[index + 1] if index + 1 < len(parts) else None
            if part.label != "action":
                continue
            if words == "Answer" and following is not None and following.label == "final answer":
                answer = Marked((part.span[0], following.span[1]), following.words)
            elif _OPERATION.match(words) is not None:
                block = fence_after(text, part.words[0] + len("Operation"), blocks)
                if block is None:
                    left = "no SQL follows it"
                    continue
                code = code_of(text, block)
                span = (part.span[0], block.span[1])
                calls.append(_operation(span, code))
            else:
                left = "it is neither an operation nor an answer"
        return ParsedTurn(tuple(calls), (), answer, left)

    def write(self, call: ParsedCall) -> str | None:
        """An operation behind its label."""
        return same_values(self, f"Action: Operation\n```sql\n{call.raw}\n```", call)


def _operation(span: tuple[int, int], code: str) -> ParsedCall:
    return ParsedCall(span, "mysql", None, code, "text", kind="code", language="mysql")


DIALECT = AgentInstructDb()
