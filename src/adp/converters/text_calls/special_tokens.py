"""Calls between special tokens of a chat template: a name, a token, JSON, a token."""

from __future__ import annotations

import re
from dataclasses import replace

from adp.converters.text_calls.dialect import ParsedCall, Span
from adp.converters.text_calls.frames import FramedCall, framed, json_arguments
from adp.converters.text_calls.thoughts import trimmed


def token_call(text: str, span: Span, name: Span, value: Span, closing: str) -> FramedCall | None:
    """A call whose name and arguments stand between tokens; None when it has no name.

    Args:
        text: the text that it is in.
        span: all of its characters.
        name: its name, with the white space around it.
        value: its arguments, with the white space around them.
        closing: the token after them.
    """
    name, value = trimmed(text, name), trimmed(text, value)
    words = text[slice(*name)]
    if not words or "\n" in words:
        return None
    token = text[slice(*value)]
    call = json_arguments(token) if token else ParsedCall(span, "", "{}", None, "dsl")
    return framed(text, span, value, replace(call, name=words), name=name, closing=closing)


def end_of(text: str, pattern: re.Pattern[str], position: int) -> int:
    """The end of what may follow at a position; the position when it does not.

    Args:
        text: the text.
        pattern: what may follow.
        position: where.
    """
    match = pattern.match(text, position)
    return match.end() if match else position
