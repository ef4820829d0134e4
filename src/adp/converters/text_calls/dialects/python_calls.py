"""Turns that are nothing but calls with literals: ``f(a=1)``, a line each or ``[f(a=1), g()]``.

A code fence may stand around all of the turn. With known tools each name must be that of a tool,
where signs such as dots count as underscores. Arguments without a name are ``arg0``, ``arg1``.
Brackets around a single call belong to it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from adp.converters.text_calls.dialect import Dialect, ParsedCall, ParsedTurn
from adp.converters.text_calls.labels import fences, same_values, trim
from adp.converters.text_calls.literals import calls_in
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
        if len(listed) == 1 and text[words[0]] == "[":
            name, arguments = listed[0].name, listed[0].json()
            return ParsedTurn((ParsedCall(words, name, arguments, written_as="python_literal"),))
        return ParsedTurn(tuple(ParsedCall(it.span, it.name, it.json()) for it in listed))

    def write(self, call: ParsedCall) -> str | None:
        """A call."""
        written = None if call.arguments is None else write_arguments(call.arguments)
        bare = f"{call.name}({written})"
        words = f"[{bare}]" if call.written_as == "python_literal" else bare
        return None if written is None else same_values(self, words, call)


DIALECT = PythonCalls()
