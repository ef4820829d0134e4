"""Names of the tools on offer."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import msgspec


@lru_cache(maxsize=32)
def tool_names(tools: str | None) -> tuple[str, ...]:
    """The names in a column ``tools``, the longest first.

    Args:
        tools: JSON text of a list of tools, wrapped as OpenAI does or bare.
    """
    if tools is None:
        return ()
    try:
        items = msgspec.json.decode(tools)
    except (msgspec.DecodeError, RecursionError):
        return ()
    names = {_name(item) for item in items} if isinstance(items, list) else set()
    return tuple(sorted(names - {""}, key=lambda name: (-len(name), name)))


def _name(tool: Any) -> str:
    if not isinstance(tool, dict):
        return ""
    function = tool.get("function", tool)
    name = function.get("name") if isinstance(function, dict) else None
    return name if isinstance(name, str) else ""
