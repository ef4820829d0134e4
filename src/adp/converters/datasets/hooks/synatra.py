"""Synatra: a prompt with a page, an objective and past actions, and the next action as code."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

from adp.converters.datasets.turns import DatasetRow, DatasetTurn, TurnCall

_PAGE, _PAGE_END = 'observation = """', '"""\n'
_CALL = re.compile(r"^(\w+)\(.*\)[ \t]*$", re.MULTILINE)
_NAMES = {"element_id": "bid"}
_LONGEST = 20_000


def turns(row: DatasetRow) -> Iterator[DatasetTurn]:
    """The prompt in three parts that make up all of it, and the answer with its call."""
    prompt, response = row.take_text("prompt"), row.take_text("response")
    start = (prompt or "").find(_PAGE) + len(_PAGE)
    end = (prompt or "").find(_PAGE_END, start)
    if prompt and len(_PAGE) <= start <= end:
        yield DatasetTurn("user", prompt[:start], extra={"cut": ["", ""]})
        tree = prompt[start:end]
        yield DatasetTurn("result", tree, columns={"axtree": tree}, extra={"cut": ["", ""]})
        yield DatasetTurn("user", prompt[end:], extra={"cut": ["", ""]})
    elif prompt:
        yield DatasetTurn("user", prompt)
    if response is not None:
        call = next(filter(None, map(_call, _CALL.finditer(response))), None)
        prose = None if call is None else _without(response, call)
        columns = {} if prose is None else {"prose": prose}
        yield DatasetTurn("agent", response, [call] if call else [], columns=columns)


def _call(match: re.Match[str]) -> TurnCall | None:
    """The call of a line, when its arguments are literals with names."""
    if len(match[0]) > _LONGEST:
        return None
    try:
        node = ast.parse(match[0].strip(), mode="eval").body
        if not isinstance(node, ast.Call) or node.args:
            return None
        values: dict[str, Any] = {
            _NAMES.get(it.arg, it.arg): ast.literal_eval(it.value)
            for it in node.keywords
            if it.arg is not None
        }
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return TurnCall(match[1], values, span=match.span())


def _without(text: str, call: TurnCall) -> str:
    start, end = call.span or (0, 0)
    return (text[:start] + text[end:]).strip()
