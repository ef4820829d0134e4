"""Tools that a prompt describes by signatures, such as ``[1] search(query: str) -> str``."""

from __future__ import annotations

import re
from itertools import islice
from typing import Any

_MOST = 4000
"""Tools of a prompt; a text of more is no list of tools."""

_QUOTED = r"'[^'\n]{0,500}'|\"[^\"\n]{0,500}\""
_HEAD = re.compile(
    r"(?:^[ \t]*(?P<number>\[\d{1,4}\] ?)?|(?P<listed>; ?))(?P<name>[A-Za-z_]\w{0,99})"
    rf"\((?P<inside>(?:[^()'\"\n]|{_QUOTED}){{0,1000}})\)"
    r"(?: -> [^\n:;#]{1,100})?(?P<mark>: |[ \t]*#[ \t]*|[ \t]*\r?$)",
    re.MULTILINE,
)
_PARAMETER = re.compile(
    r"(?P<name>\w+)(?:/\w+)?\s*(?::\s*(?P<type>(?:[^,=\[\]]|\[[^\]]{0,100}\])+))?"
    rf"(?P<value>\s*=\s*(?:{_QUOTED}|[^,'\"]*))?\s*(?:,|$)"
)


def signatures(text: str) -> list[dict[str, Any]]:
    """Tools by signatures: a line each, with a number or without, or with semicolons between them.

    What follows ``:`` or ``#``, or stands in the lines below a number, describes the tool. A
    parameter with a type and a value need not be given. Names of parameters between semicolons are
    in small letters, as those of the calls of Lumos.

    Args:
        text: the part of the prompt.
    """
    matches = [
        it for it in islice(_HEAD.finditer(text), _MOST) if it["mark"].strip() or not it["listed"]
    ]
    matches = [it for it in matches if it["number"]] or matches
    is_listed = any(match["listed"] for match in matches)
    ends = [*(match.start() for match in matches[1:]), len(text)]
    tools = []
    for match, end in zip(matches, ends, strict=False):
        words = text[match.end() : end]
        if not match["number"]:
            words = words.partition("\n")[0] if match["mark"].strip() else ""
        parameters = dict(_parameters(match["inside"]))
        if is_listed:
            parameters = {name.lower(): kind for name, kind in parameters.items()}
        tool: dict[str, Any] = {"name": match["name"]}
        if words.strip():
            tool["description"] = words.strip()
        tools.append({**tool, "parameters": parameters})
    return tools


def _parameters(inside: str) -> list[tuple[str, str]]:
    """Names and types of what stands between the brackets."""
    out = []
    for match in _PARAMETER.finditer(inside):
        kind = (match["type"] or "").strip()
        out.append((match["name"], f"{kind}, optional" if kind and match["value"] else kind))
    return out
