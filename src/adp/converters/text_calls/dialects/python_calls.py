"""Turns that are nothing but calls with literals: ``f(a=1)``, a line each or ``[f(a=1), g()]``.

A code fence may stand around all of the turn. With known tools each name must be that of a tool,
where signs such as dots count as underscores. Arguments without a name are ``arg0``, ``arg1``.
Brackets, commas and the fence belong to the calls beside them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from adp.converters.text_calls.dialect import Dialect, ParsedCall, ParsedTurn, Span
from adp.converters.text_calls.frames import framed, written_frame
from adp.converters.text_calls.labels import fences, same_values, trim
from adp.converters.text_calls.literals import LiteralCall, calls_in
from adp.converters.text_calls.write_literals import write_arguments

_SIGN = re.compile(r"\W")


class PythonCalls(Dialect):
    """The dialect ``python_calls``."""

    name = "python_calls"
    title = "Calls in function notation (`f(a=1)`, `[f(a=1), g()]`)"
    example = "search(query='adp', limit=3)\nfinish()"
    marks = ("(",)
    automatic = False

    def parse(self, text: str, tools: Sequence[str] = ()) -> ParsedTurn:
        """Take a turn of an agent apart."""
        words = trim(text, (0, len(text)))
        blocks = fences(text) if text.startswith("```", words[0]) else []
        if blocks:
            if len(blocks) > 1 or (blocks[0].span[0], blocks[0].span[1]) != words:
                return ParsedTurn()
            words = trim(text, blocks[0].words)
        listed = calls_in(text, words[0], end=words[1])
        known = {_SIGN.sub("_", name) for name in tools}
        if not listed or (known and any(_SIGN.sub("_", it.name) not in known for it in listed)):
            return ParsedTurn()
        start, end = trim(text, (0, len(text)))
        borders = [start, *(call.span[0] for call in listed[1:]), end]
        return ParsedTurn(
            tuple(_framed(text, *item) for item in zip(listed, pairwise(borders), strict=True))
        )

    def write(self, call: ParsedCall) -> str | None:
        """A call."""
        written = None if call.arguments is None else write_arguments(call.arguments)
        if written is None or same_values(self, f"{call.name}({written})", call) is None:
            return None
        return written_frame(call, written) or f"{call.name}({written})"


def _framed(text: str, call: LiteralCall, span: Span) -> ParsedCall:
    """A call with the signs around it."""
    end = span[0] + len(text[slice(*span)].rstrip())
    name = (call.span[0], call.span[0] + len(call.name))
    inside = (name[1] + 1, call.span[1] - 1)
    parsed = ParsedCall((span[0], end), call.name, call.json())
    return framed(text, parsed.span, inside, parsed, name=name)


DIALECT = PythonCalls()
