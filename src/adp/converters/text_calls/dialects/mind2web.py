"""Mind2Web: a choice with an action (``Answer: C.``, ``Action: TYPE``), and action strings.

A choice gives the call that ``Action:`` names, with the arguments ``element`` (the letter) and
``value``. An answer without an action says that no element fits: it is a final answer. An action
string is a line such as ``[button]  Search -> CLICK`` or ``[textbox]  City -> TYPE: Rome``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from adp.converters.text_calls.dialect import Dialect, Marked, ParsedCall, ParsedTurn
from adp.converters.text_calls.labels import (
    Labelled,
    label_pattern,
    object_text,
    same_values,
    sections,
    string_members,
    thought,
)

_OPERATIONS = ("CLICK", "TYPE", "SELECT", "HOVER", "ENTER")
_PATTERN = label_pattern(("Thought", "Answer", "Action", "Value"))
_LETTER = re.compile(r"([A-Z])(?:\.(?: [^\n]*)?)?")
_STRING = re.compile(
    rf"^(\[[\w-]{{1,40}}\][ \t][^\n]{{0,400}}?|\[[\w-]{{1,40}}\]) -> ({'|'.join(_OPERATIONS)})"
    r"(?:: ([^\n]*+))?[ \t]*$",
    re.MULTILINE,
)


class Mind2Web(Dialect):
    """The dialect ``mind2web``."""

    name = "mind2web"
    title = "Mind2Web (`Answer: C.`, `Action: TYPE`, `Value:`, or `[button] Search -> CLICK`)"
    example = "Thought: I enter the city.\nAnswer: C.\nAction: TYPE\nValue: Rome"
    marks = ("Answer:", *(f" -> {operation}" for operation in _OPERATIONS))

    def parse(self, text: str, tools: Sequence[str] = ()) -> ParsedTurn:
        """Take a turn of an agent apart."""
        strings = list(_STRING.finditer(text)) if " -> " in text else []
        if strings:
            return ParsedTurn(tuple(_written(match) for match in strings))
        parts = sections(text, _PATTERN)
        labels = [part.label for part in parts]
        if "answer" not in labels:
            return ParsedTurn()
        first = labels.index("answer")
        choice = parts[first]
        letter = _LETTER.fullmatch(text[slice(*choice.words)])
        if letter is None:
            return ParsedTurn()
        thoughts = tuple(
            thought(part, parts[index + 1].span[0])
            for index, part in enumerate(parts[:first])
            if part.label == "thought"
        )
        if labels[first + 1 : first + 2] != ["action"]:
            return (
                ParsedTurn((), thoughts, Marked(choice.span, choice.words))
                if thoughts
                else ParsedTurn()
            )
        call = _chosen(text, letter[1], parts[first : first + 3])
        return (
            ParsedTurn(left="its operation is not known")
            if call is None
            else ParsedTurn((call,), thoughts)
        )

    def write(self, call: ParsedCall) -> str | None:
        """A choice, or an action string."""
        members = string_members(call.arguments)
        if members is None or "element" not in members or set(members) - {"element", "value"}:
            return None
        element, value = members["element"], members.get("value")
        if _LETTER.fullmatch(element):
            more = "" if value is None else f"\nValue: {value}"
            return same_values(self, f"Answer: {element}.\nAction: {call.name}{more}", call)
        more = "" if value is None else f": {value}"
        return same_values(self, f"{element} -> {call.name}{more}", call)


def _written(match: re.Match[str]) -> ParsedCall:
    """The call of an action string."""
    value = None if match[3] is None else match[3].strip()
    end = match.end() - len(match[0]) + len(match[0].rstrip())
    return ParsedCall((match.start(), end), match[2], object_text(element=match[1], value=value))


def _chosen(text: str, letter: str, parts: Sequence[Labelled]) -> ParsedCall | None:
    """The call of a choice: its answer, its action, perhaps its value."""
    operation = text[slice(*parts[1].words)]
    if operation not in _OPERATIONS:
        return None
    value = None
    end = parts[1].span[1]
    if len(parts) > 2 and parts[2].label == "value":
        value = text[slice(*parts[2].words)]
        end = parts[2].span[1]
    arguments = object_text(element=letter, value=value)
    return ParsedCall((parts[0].span[0], end), operation, arguments)


DIALECT = Mind2Web()
