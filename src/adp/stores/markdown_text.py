"""Text from data inside Markdown: shown as it is, and never taken for Markdown or HTML.

The rules are those of CommonMark 0.31, "Backslash escapes" and "Entity references", and of
GitHub's extensions for tables, strikethrough and bare addresses.
"""

from __future__ import annotations

import re

from adp.stores.visible_text import visible

_ENTITIES = {"<": "&lt;", ">": "&gt;", "&": "&amp;"}
# What means something in the middle of a line. A colon or a dot may make a bare address of it.
_INSIDE = re.compile(r"[\\`*_\[\]|~$!{}<>&:@]|\.(?=\w)|(?<=\w)\.|//")
# What means something where a line begins.
_START = re.compile(r"[-+=#]|\d+(?=[.)])")


def escape(text: str | None, limit: int = 200) -> str:
    """A text as one line that may stand in a paragraph, a cell, a heading or an item.

    The line shows the characters of the text, cut at the limit, with spaces for line ends and
    signs for control characters and marks of direction.

    Args:
        text: any text; None gives an empty line.
        limit: characters that are shown.
    """
    line = visible(" ".join((text or "")[: 4 * limit].split()))
    if len(line) > limit:
        line = line[: limit - 1] + "…"
    start = _START.match(line)
    if start is None:
        return _INSIDE.sub(_escaped, line)
    first = start[0]
    rest = line[len(first) :]
    if first.isdigit():
        return f"{first}\\{rest[0]}{_INSIDE.sub(_escaped, rest[1:])}"
    return f"\\{first}{_INSIDE.sub(_escaped, rest)}"


def _escaped(match: re.Match[str]) -> str:
    return "".join(_ENTITIES.get(sign, f"\\{sign}") for sign in match[0])


def fenced(text: str) -> str:
    """A text of several lines as a block of code, whatever it holds.

    Args:
        text: any text; control characters and marks of direction are shown as signs.
    """
    shown = visible(text)
    longest = max((len(run) for run in re.findall("`+", shown)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{shown}\n{fence}"
