"""Lumos: ``R1 = KnowledgeQuery(Goethe); R2 = QA([R1], Question: When was he born?)``.

A turn is nothing but such assignments, with ``; `` between them or a line each. What is assigned is
the id of the call. Arguments stand without quotes; those of the tools of Lumos have their names,
and a question may hold commas. Of other tools, commas outside of brackets separate them. A
semicolon belongs to the assignment behind it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from adp.converters.text_calls.dialect import Dialect, ParsedCall, ParsedTurn
from adp.converters.text_calls.labels import object_text, same_values, string_members, trim

_ASSIGNED = re.compile(r"(R\d{1,4}(?:, ?R\d{1,4}){0,9}) = (?=[A-Za-z])")
_CALL = re.compile(r"([A-Za-z]\w{0,59})\((.*)\)", re.DOTALL)
_SIGNS = re.compile(r"[()\[\]{},]")
_QUERY = ("context", "query")
_TOOLS: dict[str, tuple[str, ...]] = {
    "KnowledgeQuery": ("query",),
    "ParagraphRetrieve": _QUERY,
    "QA": _QUERY,
    "Calculator": ("formula",),
    "SetEquation": ("equation",),
    "SolveEquation": ("equation",),
    "SolveInequality": ("inequality",),
    "Count": ("list",),
    "Code": ("pseudo_code",),
    "Define": ("variable",),
    "CLICK": ("env", "query"),
    "TYPE": ("env", "query", "text"),
    "SELECT": ("env", "query", "text"),
}


class Lumos(Dialect):
    """The dialect ``lumos``."""

    name = "lumos"
    title = "Lumos (`R1 = Calculator(2 + 3); R2 = ...`)"
    example = "R1 = Calculator(2 + 3); R2 = Calculator(R1 * 4)"
    marks = tuple(f"{digit} = " for digit in range(10))
    automatic = False
    answers_all = False  # the next turn asks for another subgoal

    def parse(self, text: str, tools: Sequence[str] = ()) -> ParsedTurn:
        """Take a turn of an agent apart."""
        position, stop = trim(text, (0, len(text)))
        starts = _starts(text, position, stop)
        if not starts or starts[0].start() != position:
            return ParsedTurn()
        calls: list[ParsedCall] = []
        for index, match in enumerate(starts):
            end = starts[index + 1].start() if index + 1 < len(starts) else stop
            words = trim(text, (match.end(), end))
            body = text[slice(*words)].rstrip("; \n")
            call = _CALL.fullmatch(body)
            if call is None:
                return ParsedTurn(left="an assignment holds no call")
            last = len(text) if end == stop else words[0] + len(body)
            span = (calls[-1].span[1] if calls else 0, last)
            arguments = _arguments(call[1], call[2])
            calls.append(ParsedCall(span, call[1], arguments, call_id=match[1]))
        return ParsedTurn(tuple(calls))

    def write(self, call: ParsedCall) -> str | None:
        """An assignment, with the semicolon before it unless it is the first one."""
        members = string_members(call.arguments)
        if members is None or call.call_id is None:
            return None
        written = f"{call.call_id} = {call.name}({', '.join(members.values())})"
        same = same_values(self, written, call)
        return f"; {same}" if same is not None and call.span[0] else same


def _starts(text: str, position: int, stop: int) -> list[re.Match[str]]:
    """The assignments that begin outside of brackets, after a semicolon or in a line."""
    matches: list[re.Match[str]] = []
    depth = 0
    for match in _ASSIGNED.finditer(text, position, stop):
        before = text[position : match.start()]
        depth = max(0, depth + sum(map(before.count, "([{")) - sum(map(before.count, ")]}")))
        position = match.start()
        separates = not matches or before.rstrip(" ").endswith((";", "\n"))
        if depth == 0 and separates:
            matches.append(match)
    return matches


def _arguments(name: str, inside: str) -> str:
    """JSON text of the arguments of a call."""
    if not inside.strip():
        return "{}"
    names = _TOOLS.get(name)
    parts = _parts(inside, len(names) - 1 if names is not None else len(inside))
    keys = names or tuple(f"arg{index}" for index in range(len(parts)))
    return object_text(**dict(zip(keys, parts, strict=False)))


def _parts(inside: str, most: int) -> list[str]:
    """The arguments between commas outside of brackets; after so many commas the rest is one."""
    parts: list[str] = []
    depth = begin = 0
    for match in _SIGNS.finditer(inside):
        if len(parts) >= most:
            break
        if match[0] in "([{":
            depth += 1
        elif match[0] != ",":
            depth = max(0, depth - 1)
        elif depth == 0:
            parts.append(inside[begin : match.start()].strip())
            begin = match.end()
    return [*parts, inside[begin:].strip()]


DIALECT = Lumos()
