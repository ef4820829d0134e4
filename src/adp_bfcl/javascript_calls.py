"""Calls in JavaScript's syntax, read without running any of them.

BFCL takes the first statement of the program that is a call, and the source of its arguments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from adp_bfcl.python_calls import DecodeError
from adp_bfcl.syntax_tree import sides, tree_of

if TYPE_CHECKING:
    from tree_sitter import Node


def decode_javascript(text: str) -> Any:
    """Read the first call of a text such as ``f(a=1, b="x")``.

    Args:
        text: the source.

    Returns:
        ``[{name: {parameter: source of the value}}]``; quotes around a text are dropped. None when
        the text is JavaScript in which no statement is a call.

    Raises:
        DecodeError: the text is no JavaScript, is too long, or a parameter is given twice.
        MissingExtraError: tree-sitter or its grammar of JavaScript is not installed.
    """
    for statement in tree_of(text, "javascript").children:
        for node in statement.children if statement.type == "expression_statement" else ():
            if node.type == "call_expression":
                # The second child: of ``f?.(a=1)`` it is the sign, so there are no arguments.
                function, arguments, *_ = node.children
                return [{_source(function): _arguments(arguments)}]
    return None


def _arguments(node: Node) -> dict[str | None, str]:
    arguments: dict[str | None, str] = {}
    for argument in node.children:
        key: str | None = None
        if argument.type == "assignment_expression":
            left, right = sides(argument)
            key, value = _source(left), _source(right)
            if any(value.startswith(mark) and value.endswith(mark) for mark in "\"'"):
                value = value[1:-1]
        elif argument.type in ("identifier", "true"):
            value = _source(argument)
        else:
            continue
        if key in arguments:
            raise DecodeError("a parameter is given twice")
        arguments[key] = value
    return arguments


def _source(node: Node) -> str:
    return (node.text or b"").decode()
