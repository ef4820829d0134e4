"""Literals and arguments in function notation, written of JSON text."""

from __future__ import annotations

import json
import re

_KEYWORD = re.compile(r"[^\W\d][\w.$@-]*+")


def write_literal(text: str) -> str | None:
    """The Python literal of a JSON text; None when the text is no JSON."""
    try:
        return _python(json.loads(text, parse_int=_Number, parse_float=_Number))
    except (ValueError, RecursionError):
        return None


def write_arguments(text: str) -> str | None:
    """The arguments of a call, without brackets, of the JSON text of an object; or None.

    Those named ``arg0``, ``arg1`` by their place are written without a keyword.
    """
    try:
        pairs = json.loads(text, parse_int=_Number, parse_float=_Number, object_pairs_hook=_Pairs)
        if not isinstance(pairs, _Pairs):
            return None
        written, named = [], False
        for index, (key, value) in enumerate(pairs):
            named = named or key != f"arg{index}"
            if named and not _KEYWORD.fullmatch(key):
                return None
            written.append(f"{key}={_python(value)}" if named else _python(value))
        return ", ".join(written)
    except (ValueError, RecursionError):
        return None


class _Number(str):
    """A number with its spelling."""

    __slots__ = ()


class _Pairs(list[tuple[str, object]]):
    """The members of an object, in order."""


def _python(value: object) -> str:
    if isinstance(value, _Pairs):
        pairs = [f"{json.dumps(key, ensure_ascii=False)}: {_python(item)}" for key, item in value]
        return f"{{{', '.join(pairs)}}}"
    if isinstance(value, dict):
        return _python(_Pairs(value.items()))
    if isinstance(value, list):
        return f"[{', '.join(map(_python, value))}]"
    if isinstance(value, _Number):
        return str(value)
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, float):
        raise ValueError("NaN and infinities have no literal")
    return repr(value)
