"""Prompts of ReAct: an object from names to texts that hold one run, or several of questions."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Raw

from adp_schema import jsontext

_QUESTION = re.compile(r"^Question: ", re.MULTILINE)
_LINE = re.compile(r"^> ", re.MULTILINE)
_ACT = re.compile(r"^(?:Thought|Action|Answer)\b", re.MULTILINE)


def rows(record: Raw) -> Iterator[tuple[str, Raw]]:
    """The runs of a record, with the name of their text and a number behind it."""
    for name, value in jsontext.decode_object(record).items():
        if jsontext.first_byte(value) != 0x22:
            yield name, Raw(jsontext.encode({"value": value}))
            continue
        text = jsontext.decode_value(value)
        starts = [match.start() for match in _QUESTION.finditer(text)] or [0]
        starts[0] = 0  # what is before the first question belongs to it
        for number, start in enumerate(starts):
            end = starts[number + 1] if number + 1 < len(starts) else len(text)
            key = f"{name}_{number}" if len(starts) > 1 else name
            yield key, Raw(jsontext.encode({"turns": _turns(text[start:end])}))


def _turns(text: str) -> list[dict[str, str]]:
    """The task, and what the agent and its environment say by turns."""
    acts = list(_LINE.finditer(text))
    if not acts:
        first = _ACT.search(text)
        start = first.start() if first else len(text)
        turns = [("user", text[:start]), ("assistant", text[start:])]
    else:
        turns = [("user", text[: acts[0].start()])]
        for number, match in enumerate(acts):
            end = acts[number + 1].start() if number + 1 < len(acts) else len(text)
            line = text.find("\n", match.start(), end)
            line = end if line < 0 else line + 1
            turns += [("assistant", text[match.start() : line]), ("user", text[line:end])]
    return [{"role": role, "content": words} for role, words in turns if words]
