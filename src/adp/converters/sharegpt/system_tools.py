"""Tools that the system text offers between ``<tools>`` tags."""

from __future__ import annotations

from typing import NamedTuple

from adp_schema import jsontext

_OPEN, _CLOSE = "<tools>", "</tools>"


class Offered(NamedTuple):
    """A JSON list of tools, and the characters of the text that it was read from."""

    tools: str
    start: int
    end: int


def offered_tools(text: str) -> Offered | None:
    """The first tools in a text that are valid JSON: a list, or an object a line."""
    position = text.find(_OPEN)
    while position >= 0:
        start = position + len(_OPEN)
        end = text.find(_CLOSE, start)
        if end < 0:
            return None
        tools = _as_list(text[start:end])
        if tools is not None:
            lead = text[start:end].index(text[start:end].strip())
            return Offered(tools, start + lead, start + lead + len(text[start:end].strip()))
        position = text.find(_OPEN, start)
    return None


def _as_list(inside: str) -> str | None:
    inside = inside.strip()
    if inside.startswith("{"):
        lines = [line.strip() for line in inside.split("\n") if line.strip()]
        inside = f"[{', '.join(lines)}]"
    if not inside.startswith("[{") and not inside.replace(" ", "").startswith("[{"):
        return None
    return inside if jsontext.is_valid(inside) else None
