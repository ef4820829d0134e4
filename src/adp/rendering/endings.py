"""How a template ends the turns of the model, and at which tokens generation stops.

A model stops when it writes one of its end-of-sequence tokens. Which of them a template writes, and
whether it writes one at all, is found by trying: a plain answer and a call are written at the end
of a conversation, and followed by what comes next, a message of the user or a result.

- Most templates end a turn themselves: what both texts have in common after the words has the
  token. It is the first end-of-sequence token there, else the last token that is neither the
  beginning of every message nor the end of a part of the turn, such as ``</tool_call>``.
- Some leave the turn open, and the next message begins with the token: GLM-4.5 stops at
  ``<|user|>`` after an answer and at ``<|observation|>`` after calls. Such a token belongs to the
  turn that it ends, for it is the model that writes it.
- Some end turns with plain text alone. No token of theirs teaches a model to stop.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass


@dataclass(frozen=True)
class Tried:
    """How a template writes what follows the words of one kind of turn.

    Attributes:
        alone: what follows the words at the end of a conversation.
        followed: what follows them up to the words of the next message.
        opening: what it writes in the turn before its words.
        between: what stands between two parts of such a turn; empty when it has one part.
        before: a conversation with the message of the user that comes before the turn, alone, up
            to the words of that message.
        asked: what follows the words of that message.
    """

    alone: str
    followed: str
    opening: str
    between: str
    before: str
    asked: str


@dataclass(frozen=True)
class Ending:
    """How a template ends one kind of turn.

    Attributes:
        stop: the token at which the model stops; None when the template writes none.
        left: what ends the turn where a conversation ends with it: the beginning of the next
            message up to the token; empty when the template ends the turn itself.
        tail: what stands after the token at the end of a conversation.
    """

    stop: str | None = None
    left: str = ""
    tail: str = ""


def ending(tried: Tried, special: re.Pattern[str], eos: Collection[str]) -> Ending:
    """How a template ends one kind of turn.

    Args:
        tried: what it writes.
        special: finds special tokens.
        eos: the end-of-sequence tokens of the model.
    """
    alone, followed = tried.alone, tried.followed
    child = _inner(tried, special)
    count = _shared(alone, followed, special)
    shared = [match for match in special.finditer(alone, 0, count) if match[0] not in child]
    known = [item for item in shared if item[0] in eos]
    begin = _begins(tried, special)
    ends = [item for item in shared if item[0] not in begin]
    first = next(iter([*known[:1], *ends[-1:], *shared[:1]]), None)
    first = first or _at_once(alone, count, special, child)
    if first is not None:
        return Ending(first[0], "", alone[first.end() :].lstrip())
    if not followed.startswith(alone):
        return Ending()
    first = _at_once(followed, len(alone), special, child)
    return Ending() if first is None else Ending(first[0], followed[len(alone) : first.end()])


def _at_once(
    text: str, begin: int, special: re.Pattern[str], child: Collection[str]
) -> re.Match[str] | None:
    """The special token that a text goes on with at a place, after white space or none."""
    match = special.search(text, begin)
    if match is None or match[0] in child or text[begin : match.start()].strip():
        return None
    return match


def _shared(alone: str, followed: str, special: re.Pattern[str]) -> int:
    """Length of what two texts begin with in common, without a part of a special token."""
    count = 0
    while count < min(len(alone), len(followed)) and alone[count] == followed[count]:
        count += 1
    begun = (match.start() for match in special.finditer(alone) if match.end() > count)
    return min(count, next(begun, count))


def _begins(tried: Tried, special: re.Pattern[str]) -> frozenset[str]:
    """Tokens that begin a message: those right before the user's words that do not end these."""
    after = special.search(tried.asked)
    run: list[str] = []
    place = len(tried.before.rstrip())
    for match in reversed(list(special.finditer(tried.before))):
        if tried.before[match.end() : place].strip():
            break
        run.append(match[0])
        place = match.start()
    return frozenset(run) - ({after[0]} if after is not None else set())


_SIDE = re.compile(r"(?<![a-z])(?:begin|start|open|end|close)(?![a-z])|[^a-z0-9]")


def _inner(tried: Tried, special: re.Pattern[str]) -> frozenset[str]:
    """Tokens that end a part of the turn.

    They stand between two of its parts, or close what the turn opened: then both have the same
    name but for the side.
    """
    matches = {item[0] for item in special.finditer(tried.between)}
    before = {item[0] for item in special.finditer(tried.before)}
    opened = {item[0] for item in special.finditer(tried.opening)} - before
    names = {_name(token): token for token in opened}
    for match in special.finditer(tried.alone + tried.followed):
        if names.get(_name(match[0]), match[0]) != match[0]:
            matches.add(match[0])
    return frozenset(matches)


def _name(token: str) -> str:
    """The name of a token without what says whether it opens or closes."""
    return _SIDE.sub("", re.sub(r"[^a-z0-9]", " ", token.lower()))
