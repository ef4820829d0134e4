"""Calls that a model writes as Python: ``[search(query="x", limit=3), read(path="a")]``.

They are parsed with `ast` and never run. Arguments are literals by keyword.
"""

from __future__ import annotations

import ast
import json
import re
import warnings
from typing import Any

from adp.rendering.call_form import WrittenCall, written_by_template
from adp.rendering.render import Renderer

_BEGIN = re.compile(r"\[\s*[A-Za-z_][\w.]*\s*\(")
_JSON = {"true": True, "false": False, "null": None}
_LONGEST, _MOST_ENDS = 20_000, 200


class PythonicForm:
    """A list of Python calls, alone or after other words (Llama 3.2 and 4, ToolACE, LFM2)."""

    def read(self, text: str) -> list[WrittenCall] | None:
        """The calls in an answer.

        Args:
            text: what the model wrote.

        Returns:
            The calls in order; empty for an answer without calls; None when they are malformed.
        """
        begin = _BEGIN.search(text)
        if begin is None:
            return []
        start = begin.start()
        if len(text) - start > _LONGEST:
            return None
        # The list ends at a closing bracket; strings may hold such, too.
        end = start
        for _ in range(_MOST_ENDS):
            end = text.find("]", end) + 1
            if not end:
                break
            tree = _parse(text[start:end])
            if tree is not None:
                return _calls(tree, start, end)
        return None


def writes_python(renderer: Renderer) -> bool:
    """Whether a template writes calls in this form."""
    return bool(re.search(r"probe_first\(\s*probe_key\s*=", written_by_template(renderer) or ""))


class _Literals(ast.NodeTransformer):
    """Values of JSON inside a call, as templates write those that lie deep."""

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return ast.Constant(_JSON[node.id]) if node.id in _JSON else node


def _parse(piece: str) -> ast.expr | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(piece, mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None


def _calls(tree: ast.expr, start: int, end: int) -> list[WrittenCall] | None:
    nodes = tree.elts if isinstance(tree, ast.List) else []
    calls: list[WrittenCall] = []
    for number, node in enumerate(nodes):
        if not isinstance(node, ast.Call) or node.args:
            return None
        try:
            given: dict[str, Any] = {}
            for item in node.keywords:
                if item.arg is None:
                    return None
                given[item.arg] = ast.literal_eval(_Literals().visit(item.value))
            written = json.dumps(given, ensure_ascii=False)
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            return None
        name = ast.unparse(node.func)
        # The first call stands for the whole list, so that nothing of it is left in the text.
        place = (start, end) if number == 0 else (end, end)
        calls.append(WrittenCall(name, given, written, *place))
    return calls or None
