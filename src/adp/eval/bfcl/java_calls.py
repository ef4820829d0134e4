"""Calls in Java's syntax, read without running any of them.

BFCL reads them with tree-sitter and writes their arguments anew: quotes around a text go, spaces
go, and so does the body of an anonymous class. A parser for expressions does the same here.
"""

from __future__ import annotations

from typing import Any

from adp.eval.bfcl.java_syntax import Node, Parser
from adp.eval.bfcl.lexer import Cursor, Token
from adp.eval.bfcl.python_calls import DecodeError

_RAW = ("identifier", "class_literal", "method_invocation")
"""Kinds whose source is kept as it is, spaces included."""


def decode_java(text: str) -> Any:
    """Read the first call of a text such as ``Foo.bar(a=1, b="x")``.

    Args:
        text: the source.

    Returns:
        ``[{name: {parameter: source of the value}}]``; an empty dictionary when the text is Java
        without a call.

    Raises:
        DecodeError: the text is no Java, or a parameter is given twice.
    """
    try:
        source = _Source(text)
        statements = Parser(Cursor(text, script=False)).program()
        for statement in statements:
            call = _first_call(statement)
            if call is not None:
                return [source.call(call)]
    except RecursionError as error:
        raise DecodeError("the text is too deep") from error
    return {}


def _first_call(node: Node | Token) -> Node | None:
    if isinstance(node, Token):
        return None
    if node.kind == "method_invocation":
        return node
    inner = [*node.parts, *node.arguments, *([node.value] if node.value else [])]
    return next((call for one in inner if (call := _first_call(one)) is not None), None)


class _Source:
    """Writes nodes as BFCL does, which takes offsets in bytes for offsets in characters."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._offsets: list[int] | None = None
        if not text.isascii():
            try:
                sizes = [len(letter.encode()) for letter in text]
            except UnicodeEncodeError as error:
                raise DecodeError("the text has half characters") from error
            self._offsets = [0]
            for size in sizes:
                self._offsets.append(self._offsets[-1] + size)

    def between(self, start: int, end: int) -> str:
        if self._offsets is None:
            return self._text[start:end]
        return self._text[self._offsets[start] : self._offsets[end]]

    def call(self, node: Node) -> dict[str, Any]:
        *owner, name = node.parts
        label = self.between(name.start, name.end)
        if owner:
            label = f"{self.between(owner[0].start, owner[0].end)}.{label}"
        found: dict[str | None, str] = {}
        for argument in node.arguments:
            key: str | None = None
            if argument.kind == "assignment_expression":
                left, right = argument.parts[0], argument.parts[2]
                key = self.between(left.start, left.end)
                value = self.written(right, nested=False)
            elif argument.kind in ("identifier", "class_literal"):
                value = self.written(argument, nested=False)
            else:
                continue
            if key in found:
                raise DecodeError("a parameter is given twice")
            found[key] = value
        return {label: found}

    def written(self, node: Node | Token, *, nested: bool) -> str:
        raw = self.between(node.start, node.end)
        if isinstance(node, Token) or node.kind in _RAW:
            return raw
        if node.kind in ("string_literal", "character_literal"):
            return raw if nested else raw[1:-1]
        if node.kind == "array_creation_expression":
            if node.value is None:
                raise DecodeError("an array has no items")
            return f"new {self._type(node)}[]{self.written(node.value, nested=True)}"
        if node.kind == "object_creation_expression":
            inner = ", ".join(self.written(one, nested=True) for one in node.arguments)
            return f"new {self._type(node)}({inner})"
        if not node.parts:
            return raw
        return "".join(self.written(part, nested=True) for part in node.parts)

    def _type(self, node: Node) -> str:
        return "".join(self.between(token.start, token.end) for token in node.type)
