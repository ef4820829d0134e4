"""Tools that stand in texts of data sets: a list with numbers, or a text for each name."""

from __future__ import annotations

import json
import re
from typing import Any

from adp.converters.datasets.literals import literal

_NUMBERED = re.compile(
    r"^\d+\. Name: (?P<name>[^\n]+)\n"
    r"Description: (?P<text>(?:[^\n]|\n(?!Parameters:|\d+\. Name:))*+)\n"
    r"Parameters: (?P<parameters>[^\n]*)$",
    re.MULTILINE,
)
_PARAMETERS = re.compile(r"^Parameters: (.*)$", re.MULTILINE)
_DOCUMENTED = re.compile(r"^([\w.\-]{1,100}): ([^\n]*\nParameters: [^\n]*)$", re.MULTILINE)
_ADDED = "components"


def numbered(text: str) -> list[dict[str, Any]]:
    """Tools such as ``1. Name: ...`` with a line ``Description:`` and one ``Parameters:``."""
    return [
        {"name": match["name"].strip(), "description": match["text"].strip(),
         "parameters": _object(match["parameters"])}
        for match in _NUMBERED.finditer(text)
    ]  # fmt: skip


def described(texts: dict[str, Any]) -> list[dict[str, Any]]:
    """Tools of an object from names to texts, in which a line ``Parameters:`` may be.

    The parameters are a table from names to texts that begin with ``Required.`` and a type.
    """
    tools = []
    for name, text in texts.items():
        if name == _ADDED or not isinstance(text, str):
            continue
        match = _PARAMETERS.search(text)
        given = _object(match[1]) if match else {}
        properties = {key: _described(value) for key, value in given.items()}
        required = [key for key, value in given.items() if str(value).startswith("Required.")]
        schema: dict[str, Any] = {"type": "object", "properties": properties}
        schema |= {"required": required} if required else {}
        words = text[: match.start()].strip() if match else text
        tools.append({"name": name, "description": words, "parameters": schema})
    return tools


def documented(text: str) -> list[dict[str, Any]]:
    """Tools such as ``name: what it does`` with a line ``Parameters:`` behind."""
    return described({match[1]: match[2] for match in _DOCUMENTED.finditer(text)})


_TYPE = re.compile(r"(?:Required\. )?(string|integer|number|boolean|array|object)\b", re.IGNORECASE)


def _described(value: Any) -> dict[str, Any]:
    if not isinstance(value, str):
        return {}
    match = _TYPE.match(value)
    kind = {"type": match[1].lower()} if match else {}
    return {**kind, "description": value}


def _object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = literal(text)
    return value if isinstance(value, dict) else {}
