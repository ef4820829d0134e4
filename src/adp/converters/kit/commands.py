"""Runs that act by shell commands in the text of their messages, and how such runs end."""

from __future__ import annotations

import re

from adp_schema.model import Columns

_LIMITS = ("cost", "context", "time", "limit")
_FENCE = re.compile(r"```[^\n`]*\n(.*?)```", re.DOTALL)


def shell_call(command: str, text: str, span: tuple[int, int] | None = None) -> Columns:
    """The columns of a command that a message says in its text.

    Args:
        command: the command.
        text: the message.
        span: where it stands there, with its fence; None looks for it.
    """
    columns: Columns = {"kind": "code", "name": "bash", "language": "bash"}
    columns |= {"arguments_raw": command, "arguments_kind": "text", "origin": "parsed_from_text"}
    inside = command.strip()
    if span is None and inside and inside in text:
        start = text.rindex(inside)
        span = (start, start + len(inside))
    if span is not None:
        columns |= {"span_start": span[0], "span_end": span[1]}
    return columns


def fenced(text: str) -> list[tuple[str, tuple[int, int]]]:
    """The code blocks of a text, each with where it stands."""
    return [(match[1], match.span()) for match in _FENCE.finditer(text)]


def set_status(status: str | None, columns: Columns) -> None:
    """Fill the columns about the end of a run from the status that the harness wrote."""
    if not status:
        return
    word = status.lower()
    limit = any(key in word for key in _LIMITS)
    columns["stop_reason"] = status
    columns["truncated"] = limit
    columns["terminated"] = not limit and (word.startswith("submitted") or word == "exit_forfeit")
    if not limit and not columns["terminated"]:
        columns["error_type"] = status
