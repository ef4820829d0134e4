"""What of a chat decides how a template writes a message: roles and kinds of words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from adp.core.render.template import Plain

Form = tuple[Any, ...]

_TOLD = re.compile(r"</?(?:think|tool_call|tool_response)>|<\|")


def form_of(message: Plain) -> Form:
    """What of a message may change how a template writes it and others."""
    content = message.get("content")
    text = content if isinstance(content, str) else ""
    calls = message.get("tool_calls") or ()
    words = text.strip()
    return (
        message["role"],
        bool(message.get("reasoning_content")),
        min(len(calls), 2),
        content is None,
        bool(text) + bool(words),
        "</think>" in text,
        _TOLD.match(words) is not None,
        words.endswith(">") and _TOLD.match(words, max(words.rfind("<"), 0)) is not None,
    )


_ROLES = {"system": 1, "user": 2, "assistant": 4, "tool": 8}


def _kinds(form: Form) -> int:
    """A form as bits that can be joined over many messages."""
    role, reasoning, calls, _, words, thought, _, _ = form
    bits: int = _ROLES.get(role, 16)
    if role == "assistant":
        bits |= 32 << int(calls)
    return bits | int(reasoning) << 8 | int(thought) << 9 | int(words != 2) << 10


class Surroundings:
    """For each message of a chat, the kinds of messages before and after it.

    Both are told apart by whether a message of the user stands between.

    Args:
        forms: of all messages.
    """

    def __init__(self, forms: Sequence[Form]) -> None:
        self._forms = forms
        self._before = list(_running(forms))
        self._after: tuple[int, list[Form]] = (-1, [])

    def key(self, index: int, last: int) -> Form:
        """Form and surroundings of a message in the render that ends with another one."""
        if self._after[0] != last:
            self._after = last, list(_running(self._forms[last::-1]))[::-1]
        forms = self._forms
        return (
            forms[index - 1] if index else None,
            forms[index],
            forms[index + 1] if index < last else None,
            self._before[index],
            self._after[1][index],
        )


def _running(forms: Sequence[Form]) -> list[Form]:
    """For each message, the kinds before it: in its turn, in earlier ones, and their number."""
    found = []
    turn = earlier = users = 0
    for form in forms:
        found.append((turn, earlier, min(users, 2)))
        if form[0] == "user":
            earlier |= turn
            turn, users = 0, users + 1
        turn |= _kinds(form)
    return found
