"""Commands of SWE-agent's own editor and search, as its shell takes them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from typing import Any

from adp.core.swe_agent_commands import COMMANDS, NUMBERS
from adp.trainers.export.harness.actions import Action

_COMMANDS: Mapping[str, tuple[int, tuple[str, ...]]] = {
    **{name: value for name, value in COMMANDS.items() if name != "submit"},
    "edit": (3, ("start_line", "end_line", "replacement_text")),
}
"""Command -> how many arguments it needs, and their names in order; submit is a tool here."""

_END = "end_of_edit"
_END_LINE = re.compile(rf"^{_END}\s*$", re.MULTILINE)
_EDIT_USAGE = f"edit <start_line>:<end_line>\n<replacement_text>\n{_END}"


def command(action: Action) -> str | None:
    """The line, or the lines, that call a command; None when it is none with such arguments.

    Args:
        action: the call.
    """
    if action.is_known or action.language or action.name not in _COMMANDS:
        return None
    needed, names = _COMMANDS[action.name]
    given = [name for name in names if name in action.arguments]
    if len(given) != len(action.arguments) or not set(names[:needed]) <= set(given):
        return None
    values = [_word(name, action.arguments[name]) for name in given]
    words = [word for word in values if word is not None]
    if len(words) < len(values):
        return None
    if action.name != "edit":
        return " ".join([action.name, *map(shlex.quote, words)])
    first, last, text = words
    if _END_LINE.search(text):
        return None
    line_end = "" if text.endswith("\n") or not text else "\n"
    return f"edit {first}:{last}\n{text}{line_end}{_END}"


def _word(name: str, value: object) -> str | None:
    """An argument in words; None when it is none of this command."""
    if name in NUMBERS:
        text = str(value) if isinstance(value, int | str) else ""
        return text if text.isascii() and text.isdigit() else None
    return value if isinstance(value, str) else None


def is_command(tool: Mapping[str, Any]) -> bool:
    """Whether a tool on offer is such a command, by its name and its parameters."""
    function = tool["function"]
    parameters = function.get("parameters")
    properties = parameters.get("properties", {}) if isinstance(parameters, Mapping) else {}
    known = _COMMANDS.get(function["name"])
    return (
        known is not None and isinstance(properties, Mapping) and set(properties) <= set(known[1])
    )


def usages(tools: Iterable[Mapping[str, Any]]) -> str:
    """How commands are called; empty when there are none.

    Args:
        tools: tools that are commands.
    """
    lines = []
    for tool in tools:
        function = tool["function"]
        needed, names = _COMMANDS[function["name"]]
        words = [
            f"<{name}>" if index < needed else f"[<{name}>]" for index, name in enumerate(names)
        ]
        usage = " ".join([function["name"], *words])
        usage = _EDIT_USAGE if function["name"] == "edit" else usage
        lines.append(f"{usage}\n    {function.get('description') or ''}".rstrip())
    if not lines:
        return ""
    return "The following commands are available in bash. \n\n" + "\n\n".join(lines) + "\n\n"
