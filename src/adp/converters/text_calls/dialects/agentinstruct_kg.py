"""Knowledge graph tasks of AgentInstruct: ``Action: get_relations(Goethe)``.

Arguments stand without quotes. The tools are known, with the names of the Agent Data Protocol; of
two arguments the last comma separates them, since names of entities may hold commas. ``Final
Answer: #2`` is the answer.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from adp.converters.text_calls.dialect import Dialect, Marked, ParsedCall, ParsedTurn, Piece
from adp.converters.text_calls.labels import (
    Labelled,
    label_pattern,
    object_text,
    run_pieces,
    same_values,
    sections,
    string_members,
    thought,
    trim,
)

_PATTERN = label_pattern(("Thought", "Action", "Observation", "Final Answer", "Question"))
_TOOLS: dict[str, tuple[str, ...]] = {
    "get_relations": ("variable",),
    "get_neighbors": ("variable", "relation"),
    "intersection": ("variable1", "variable2"),
    "get_attributes": ("variable",),
    "argmax": ("variable", "attribute"),
    "argmin": ("variable", "attribute"),
    "count": ("variable",),
}
_CALL = re.compile(rf"({'|'.join(_TOOLS)})\(([^\n]*)\)")


class AgentInstructKg(Dialect):
    """The dialect ``agentinstruct_kg``."""

    name = "agentinstruct_kg"
    title = "AgentInstruct, knowledge graph (`Action: get_neighbors(#0, relation)`)"
    example = "Thought: I look at its relations.\nAction: get_relations(Goethe)"
    marks = (*tuple(f"{name}(" for name in _TOOLS), "Final Answer: #")

    def parse(self, text: str, tools: Sequence[str] = ()) -> ParsedTurn:
        """Take a turn of an agent apart."""
        parts = sections(text, _PATTERN)
        calls: list[ParsedCall] = []
        thoughts: list[Marked] = []
        answer: Marked | None = None
        left = None
        for index, part in enumerate(parts):
            end = parts[index + 1].span[0] if index + 1 < len(parts) else part.span[1]
            if part.label == "thought":
                thoughts.append(thought(part, end))
            elif part.label == "final answer" and text.startswith("#", part.words[0]):
                answer = Marked(part.span, part.words)
            elif part.label == "action":
                call = _call(text, part)
                if call is None:
                    left = "it is no tool of the knowledge graph"
                else:
                    calls.append(call)
        if not calls and answer is None:
            return ParsedTurn(left=left if any(mark in text for mark in self.marks) else None)
        return ParsedTurn(tuple(calls), tuple(thoughts), answer, left)

    def pieces(self, text: str) -> Sequence[Piece]:
        """The turns of a text with observations in it."""
        return run_pieces(text, sections(text, _PATTERN), ("observation",), ("action",))

    def write(self, call: ParsedCall) -> str | None:
        """A call behind its label."""
        members = string_members(call.arguments)
        names = _TOOLS.get(call.name)
        if members is None or names is None or set(members) != set(names):
            return None
        words = ", ".join(members[name] for name in names)
        return same_values(self, f"Action: {call.name}({words})", call)


def _call(text: str, part: Labelled) -> ParsedCall | None:
    """The call in the first line behind a label."""
    end = text.find("\n", *part.words)
    line = trim(text, (part.words[0], part.words[1] if end < 0 else end))
    match = _CALL.fullmatch(text, *line)
    if match is None:
        return None
    names = _TOOLS[match[1]]
    values = match[2].rsplit(",", len(names) - 1) if len(names) > 1 else [match[2]]
    if len(values) != len(names):
        return None
    pairs = dict(zip(names, map(_unquoted, values), strict=True))
    return ParsedCall((part.span[0], line[1]), match[1], object_text(**pairs))


def _unquoted(value: str) -> str:
    words = value.strip()
    is_quoted = len(words) > 1 and words[0] == words[-1] and words[0] in "'\""
    return words[1:-1] if is_quoted else words


DIALECT = AgentInstructKg()
