"""JSON out of Python literals, as data sets have them in strings. Nothing is executed."""

from __future__ import annotations

import ast
import math
import warnings
from typing import Any

_LONGEST = 200_000


def literal(text: str) -> Any:
    """The value of a Python literal, of types that JSON has; None when it is none.

    Args:
        text: such as ``{'a': True}``.
    """
    if len(text) > _LONGEST or text.lstrip()[:1] not in ("{", "[", "("):
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of escapes that Python does not know
            value = ast.literal_eval(text.strip())
        return _plain(value)
    except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
        return None


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        if not all(isinstance(key, str) for key in value):
            raise ValueError("JSON has texts as keys only")
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("JSON has no such number")
    if value is None or isinstance(value, str | int | float):
        return value
    raise ValueError("JSON has no such value")
