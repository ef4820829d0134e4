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
            texts.add(msgspec.json.decode(record))
    others = "\0".join(texts.others)
    has_tools = any(word in data for word in _TOOLS)
    return [
        grammar
        for grammar in map(dialect, names)
        if (has_tools or _is_spoken_for(grammar, texts, others)) and _reads(grammar, texts)
    ]


@dataclass(slots=True)
class _Texts:
    """The strings of some records: what an agent may have said, and what others may have."""

    agent: set[str] = field(default_factory=set)
    others: set[str] = field(default_factory=set)

    def add(self, value: Any) -> None:
        """Add the strings of a JSON value; a role parts those of a message."""
        rest = [(value, True, True)]
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


def _is_spoken_for(grammar: Dialect, texts: _Texts, others: str) -> bool:
    """Whether something around its actions could show that a dialect is one."""
    if any(word in others for word in (*grammar.marks, *grammar.prompts)):
        return True
    if any(mark in others for mark in grammar.results) and any(
        text.lstrip().startswith(grammar.results) for text in texts.others
    ):
        return True
    if type(grammar).pieces is Dialect.pieces:
        return False
    return any(len(grammar.pieces(text)) > 1 for text in _likely(grammar, texts))


def _reads(grammar: Dialect, texts: _Texts) -> bool:
    """Whether a dialect reads an action from a text of the agent."""
    turns = map(grammar.parse, _likely(grammar, texts))
    return any(turn.calls or turn.answer for turn in turns)


def _likely(grammar: Dialect, texts: _Texts) -> list[str]:
    """The texts of the agent that hold a mark."""
    return [text for text in texts.agent if any(mark in text for mark in grammar.marks)]


def _plain(match: re.Match[bytes]) -> bytes:
    return _ESCAPED.get(match[1].decode().lower(), b"/")


def _marked(data: bytes) -> list[str]:
    """The dialects that a mark of stands in some bytes of JSON."""
    pattern, small, words, calls = _needles()
    names = set().union(*(words[it] for it in set(pattern.findall(data))))
    for word in small:
        if word in data:
            names |= words[word]
    for part in data.split(b"(")[:-1]:
        match = _NAME_END.search(part, max(0, len(part) - _LONGEST_NAME))
        if match is not None:
            names |= calls.get(match.group(), frozenset())
    return [name for name in automatic_marks() if name in names]


_Owners = Mapping[bytes, frozenset[str]]


@cache
def _needles() -> tuple[re.Pattern[bytes], list[bytes], _Owners, _Owners]:
    """What finds marks as JSON writes them; and the dialects of each, and of each name of a call.

    Marks that begin with a small letter are left out of the pattern, which would try each word.
    """
    owners: dict[bytes, set[str]] = defaultdict(set)
    calls: dict[bytes, set[str]] = defaultdict(set)
    for name, marks in automatic_marks().items():
        for mark in marks:
            if _CALL.fullmatch(mark):
                calls[mark[:-1].encode()].add(name)
                continue
            for ascii_only in (False, True):
                written = json.dumps(mark.lstrip(" "), ensure_ascii=ascii_only)[1:-1]
                owners[written.encode()].add(name)
    # Of two marks that begin alike the longer one is found, and stands for the other.
    shorter = {it: {other for other in owners if it.startswith(other)} for it in owners}
    words = {it: frozenset().union(*(owners[other] for other in shorter[it])) for it in owners}
    small = sorted(it for it in words if it[:1].islower())
    pattern = re.compile(_pattern_of(sorted(words.keys() - set(small))))
    return pattern, small, words, {it: frozenset(names) for it, names in calls.items()}


def _pattern_of(words: Sequence[bytes]) -> bytes:
    """A regular expression of words that looks at each character once; the longest one is found."""
    groups: dict[bytes, list[bytes]] = defaultdict(list)
    for word in words:
        groups[word[:1]].append(word[1:])
    ends = groups.pop(b"", None) is not None
    parts = [re.escape(first) + _pattern_of(rest) for first, rest in groups.items()]
    if not parts:
        return b""
    return b"(?:" + b"|".join(parts) + (b")?" if ends else b")")
