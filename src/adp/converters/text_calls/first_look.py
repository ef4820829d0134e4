"""Which dialects may be in some records, seen cheaply: most files of chats have none.

First the marks of all dialects are looked for in the bytes. Then the strings of the records are
parted into those of the agent and those of others, and a dialect stays only when it reads an action
from the former, and something around them could show that it is one; see
`adp.converters.text_calls.evidence`.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import msgspec

from adp.converters.text_calls.dialect import Dialect
from adp.converters.text_calls.marks import automatic_marks
from adp.converters.text_calls.registry import dialect

_ESCAPED = {"u003c": b"<", "u003e": b">", "u0026": b"&", "u0027": b"'"}
_ESCAPES = re.compile(rb"\\(u00(?:3[cCeE]|2[67])|/)")
"""Escapes of characters that JSON may hold as they are."""

_PREFIX = 3
_CALL = re.compile(r"[A-Za-z_]+\(")
_LONGEST_NAME = 40
_NAME_END = re.compile(rb"[A-Za-z_]+\Z")

_OTHERS = frozenset({"user", "human", "system", "tool", "function", "observation", "environment"})
_TOOLS = (b'"tool', b'"function', b'"observation')


def may_act(records: Sequence[bytes]) -> list[Dialect]:
    """The dialects that some records of JSON may have actions in, in their order.

    Args:
        records: the records.
    """
    data = _ESCAPES.sub(_plain, b"\n".join(records))
    names = _marked(data)
    if not names:
        return []
    texts = _Texts()
    for record in records:
        with suppress(msgspec.DecodeError, RecursionError):
            texts.add(msgspec.json.decode(record), is_agent=True, is_other=True)
    has_tools = any(word in data for word in _TOOLS)
    marks = automatic_marks()
    return [it for name in names if (it := _acting(name, marks[name], texts, has_tools))]


@dataclass(slots=True)
class _Texts:
    """The strings of some records: what an agent may have said, and what others may have."""

    agent: set[str] = field(default_factory=set)
    others: set[str] = field(default_factory=set)

    def add(self, value: Any, *, is_agent: bool, is_other: bool) -> None:
        """Add the strings of a JSON value; a role parts those of a message."""
        rest = [(value, is_agent, is_other)]
        while rest:
            item, agent, other = rest.pop()
            if isinstance(item, str):
                if agent:
                    self.agent.add(item)
                if other:
                    self.others.add(item)
            elif isinstance(item, dict):
                role = item.get("role", item.get("from"))
                if isinstance(role, str):
                    other = role in _OTHERS
                    agent = not other
                rest += [(it, agent, other) for it in item.values()]
            elif isinstance(item, list):
                rest += [(it, agent, other) for it in item]


def _acting(name: str, marks: Sequence[str], texts: _Texts, has_tools: bool) -> Dialect | None:
    """A dialect that reads an action, and that something around it may speak for."""
    likely = [text for text in texts.agent if any(mark in text for mark in marks)]
    if not likely:
        return None
    grammar = dialect(name)
    words = (*marks, *grammar.prompts)
    if not (
        has_tools
        or any(text.lstrip().startswith(grammar.results) for text in texts.others)
        or any(word in text for text in texts.others for word in words)
        or any(len(grammar.pieces(text)) > 1 for text in likely)
    ):
        return None
    turns = map(grammar.parse, likely)
    return grammar if any(turn.calls or turn.answer for turn in turns) else None


def _plain(match: re.Match[bytes]) -> bytes:
    return _ESCAPED.get(match[1].decode().lower(), b"/")


def _marked(data: bytes) -> list[str]:
    """The dialects that a mark of stands in some bytes of JSON."""
    names: set[str] = set()
    groups, calls = _needles()
    for prefix, needles in groups.items():
        if prefix in data:
            for needle, dialects in needles.items():
                if not dialects <= names and needle in data:
                    names |= dialects
    for part in data.split(b"(")[:-1]:
        match = _NAME_END.search(part, max(0, len(part) - _LONGEST_NAME))
        if match is not None:
            names |= calls.get(match.group(), frozenset())
    return [name for name in automatic_marks() if name in names]


@cache
def _needles() -> tuple[
    Mapping[bytes, Mapping[bytes, frozenset[str]]], Mapping[bytes, frozenset[str]]
]:
    """Marks as JSON writes them -> their dialects: by their first bytes; and the names of calls."""
    owners: dict[bytes, set[str]] = defaultdict(set)
    calls: dict[bytes, set[str]] = defaultdict(set)
    for name, marks in automatic_marks().items():
        for mark in marks:
            if _CALL.fullmatch(mark):
                calls[mark[:-1].encode()].add(name)
                continue
            for ascii_only in (False, True):
                written = json.dumps(mark, ensure_ascii=ascii_only)[1:-1].encode()
                owners[written].add(name)
    groups: dict[bytes, dict[bytes, frozenset[str]]] = defaultdict(dict)
    for needle, names in owners.items():
        groups[needle[:_PREFIX]][needle] = frozenset(names)
    return groups, {call: frozenset(names) for call, names in calls.items()}
