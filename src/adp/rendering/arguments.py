"""JSON that reaches the prompt: arguments of calls, and the tools on offer."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from typing import Any

_HALF, _ESCAPED = re.compile("[\ud800-\udfff]"), re.compile(r"\\u[dD][89a-fA-F]")


def whole_text(text: str) -> str:
    """A text in which half characters (lone surrogates) are replacement characters."""
    return _HALF.sub("\ufffd", text) if _HALF.search(text) else text


def object_of(text: str) -> tuple[Any, bool]:
    """The value of a JSON text, and whether it is an object.

    What only Python takes for JSON is none: NaN, numbers beyond all bounds, a key given twice.
    """
    try:
        value = json.loads(
            text, parse_constant=_refuse, parse_float=_finite, object_pairs_hook=_once
        )
    except (ValueError, RecursionError):
        return None, False
    return (_whole(value) if _ESCAPED.search(text) else value), isinstance(value, dict)


def _refuse(name: str) -> Any:
    raise ValueError(name)


def _finite(text: str) -> float:
    value = float(text)
    return _refuse(text) if math.isinf(value) else value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    return _refuse("a key twice") if len(result) != len(pairs) else result


def _whole(value: Any) -> Any:
    """A JSON value in which half characters (lone surrogates) are replacement characters."""
    if isinstance(value, str):
        return whole_text(value)
    if isinstance(value, dict):
        return {_whole(key): _whole(child) for key, child in value.items()}
    return [_whole(child) for child in value] if isinstance(value, list) else value


def tools_of(text: str | None, notes: Counter[str]) -> tuple[dict[str, Any], ...]:
    """The tools on offer, each as ``{"type": "function", "function": {...}}``.

    Args:
        text: the column ``tools``.
        notes: counts what is no tool.
    """
    try:
        full = json.loads(text or "[]")
    except (ValueError, RecursionError):
        full = None
    if text and _ESCAPED.search(text):
        full = _whole(full)
    if not isinstance(full, list):
        notes["lists of tools that cannot be read"] += 1
        return ()
    tools = []
    for tool in full:
        child = tool.get("function", tool) if isinstance(tool, dict) else None
        if not isinstance(child, dict) or not isinstance(child.get("name"), str):
            notes["tools without a name"] += 1
        elif "function" in tool:
            tools.append({"type": "function", **tool})
        else:
            bare = {key: value for key, value in tool.items() if key != "type"}
            if "parameters" not in bare and "input_schema" in bare:
                bare["parameters"] = bare.pop("input_schema")
            tools.append({"type": "function", "function": bare})
    return tuple(tools)
