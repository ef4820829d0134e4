"""Short notations of a call: ``name[words]``, ``name(words)``, and JSON with a name."""

from __future__ import annotations

import json
import re

from adp.converters.text_calls.labels import literal_object, object_text, string_members
from adp.converters.text_calls.literals import call_at, split
from adp.converters.text_calls.write_literals import write_arguments
from adp_schema import jsontext

_BRACKETS = re.compile(r"([A-Za-z][\w\-]{0,59})[ ]?\[(.*)\]", re.DOTALL)
_ROUND = re.compile(r"([A-Za-z][\w.\-]{0,79})\((.*)\)", re.DOTALL)
_ARGUMENT = {
    "search": "keywords",
    "click": "element",
    "finish": "answer",
    "answer": "answer",
    "execute": "command",
}
"""Name of a tool in small letters -> name of the argument that stands in brackets."""

_MOST = 200_000
_PAIRS = (
    ("action", "action_input"),
    ("name", "arguments"),
    ("name", "parameters"),
    ("tool", "parameters"),
    ("Tool", "Param"),
)


def bracketed(words: str) -> tuple[str, str] | None:
    """Name and JSON text of the arguments of ``name[words]``; None when a text is none."""
    match = _BRACKETS.fullmatch(words) if words.endswith("]") else None
    if match is None:
        return None
    name, inside = match.groups()
    if not inside and name.lower() not in _ARGUMENT:
        return name, "{}"
    return name, object_text(**{_ARGUMENT.get(name.lower(), "input"): inside})


def call_words(
    words: str, names: tuple[str, ...] = (), pattern: re.Pattern[str] = _ROUND
) -> tuple[str, str] | None:
    """Name and JSON text of the arguments of ``name(a=1)`` or ``name(words, words)``; or None.

    Words without quotes are strings as they stand.

    Args:
        words: the text.
        names: names of the arguments in order.
        pattern: of the call, with groups for its name and what is in its brackets.
    """
    match = pattern.fullmatch(words) if words.endswith(")") and len(words) <= _MOST else None
    if match is None:
        return None
    call = call_at(words)
    if call is not None and call.span[1] == len(words):
        return call.name, call.json(names)
    name, inside = match.groups()
    parts = [inside[slice(*span)].strip() for span in split(inside, ",")] if inside.strip() else []
    if any(part[:1] in ("'", '"', "{", "[") or not part for part in parts):
        return None
    keys = (*names, *(f"arg{index}" for index in range(len(names), len(parts))))
    return name, object_text(**dict(zip(keys, parts, strict=False)))


def json_call(words: str) -> tuple[str, str] | None:
    """Name and JSON text of the arguments of an object with both; None when a text is none.

    Args:
        words: the text, perhaps a code fence.
    """
    if words.startswith("```") and words.endswith("```") and words.count("\n") >= 2:
        words = words[words.index("\n") : words.rindex("\n")].strip()
    if not words.startswith("{"):
        return None
    text = words if jsontext.is_valid(words) else literal_object(words)
    if text is None:
        return None
    members = jsontext.decode_object(text.encode())
    for key, value in _PAIRS:
        if key in members and set(members) <= {key, value}:
            name = json.loads(bytes(members[key]))
            given = bytes(members[value]).decode() if value in members else "{}"
            if isinstance(name, str) and name:
                return name, given if given.startswith("{") else object_text_of(given)
    return None


def object_text_of(value: str) -> str:
    """JSON text of an object of a value that has no name."""
    return f'{{"input": {value}}}'


def written_call(name: str, arguments: str | None) -> list[str]:
    """A call in short notations.

    Args:
        name: its name.
        arguments: JSON text of its arguments.
    """
    results = []
    members = string_members(arguments)
    key = _ARGUMENT.get(name.lower(), "input")
    if members is not None and set(members) == {key}:
        results.append(f"{name}[{members[key]}]")
    written = None if arguments is None else write_arguments(arguments)
    return results if written is None else [*results, f"{name}({written})"]
