"""What of a chat decides how a template writes a message: roles and kinds of words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from adp.rendering.probe import Plain

Form = tuple[Any, ...]

REACH = 3
"""Messages before one whose forms may change its prompt."""

_SHOWN = re.compile(r"</?(?:think|tool_call|tool_response)>|<\|")


def form_of(message: Plain) -> Form:
    """What of a message may change how a template writes it and others."""
    content = message.get("content")
    text = content if isinstance(content, str) else ""
    calls = message.get("tool_calls") or ()
    words = text.strip()
    role = message["role"]
    # Some templates trim what an agent said, but only in history.
    loose = text[:1].isspace() * 2 + text[-1:].isspace() if role == "assistant" else 0
    return (
        role,
        bool(message.get("reasoning_content")),
        min(len(calls), 2),
        content is None,
        bool(text) + bool(words),
        loose,
        "</think>" in text,
        _SHOWN.match(words) is not None,
        words.endswith(">") and _SHOWN.match(words, max(words.rfind("<"), 0)) is not None,
    )


_ROLES = {"system": 1, "user": 2, "assistant": 4, "tool": 8}
_FINAL, _CALLS, _REASONING, _THOUGHT, _LOOSE = 16, 32, 64, 128, 256
_LATER = 2 | 4 | _FINAL | _REASONING | _THOUGHT | _LOOSE
"""What of later messages counts: none is known whose template asks for their calls or results."""


def _kinds(form: Form) -> int:
    """A form as bits that can be joined over many messages."""
    role, reasoning, calls, _, _, loose, thought, *_ = form
    bits: int = _ROLES.get(role, 0)
    if role == "assistant":
        bits |= _CALLS if calls else _FINAL
    return bits | _REASONING * bool(reasoning) | _THOUGHT * bool(thought) | _LOOSE * bool(loose)


class Surroundings:
    """For each message of a chat, the kinds of messages before and after it.

    Both are told apart by whether a message of the user stands between.

    Args:
        forms: of all messages.
    """

    def __init__(self, forms: Sequence[Form]) -> None:
        self._forms = forms
        self._kinds = [_kinds(form) for form in forms]
        self._before = _running(self._kinds)
        self._after: tuple[int, list[Form]] = (-1, [])

    def key(self, index: int, last: int) -> Form:
        """Form and surroundings of a message in the render that ends with another one."""
        if self._after[0] != last:
            later = [kinds & _LATER for kinds in self._kinds[last::-1]]
            self._after = last, _running(later)[::-1]
        forms = self._forms
        return (
            forms[index - 1] if index else None,
            forms[index],
            forms[index + 1] if index < last else None,
            self._before[index],
            self._after[1][index],
        )

    def prompt_key(self, index: int) -> Form:
        """Form and surroundings of a message that may change its prompt: what comes before it."""
        return (*self._forms[max(index - REACH, 0) : index + 1], self._before[index])


def _running(kinds: Sequence[int]) -> list[Form]:
    """For each message, the kinds before it: in its turn, in earlier ones, and their number."""
    running = []
    turn = earlier = users = 0
    for bits in kinds:
        running.append((turn, earlier, min(users, 2)))
        if bits & 2:
            earlier |= turn
            turn, users = 0, users + 1
        turn |= bits
    return running
