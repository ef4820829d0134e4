"""Calls in Java's syntax, read without running any of them.

BFCL writes the arguments of a call anew from the syntax tree: quotes around a text go, spaces go,
and so does the body of an anonymous class.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from adp_bfcl.python_calls import DecodeError
from adp_bfcl.syntax_tree import sides, tree_of

if TYPE_CHECKING:
    from tree_sitter import Node

_QUOTED = ("string_literal", "character_literal")
_RAW = ("identifier", "class_literal", "type_identifier", "method_invocation")
"""Kinds whose source is kept as it is, spaces included."""


def decode_java(text: str) -> Any:
    """Read the first call of a text such as ``Foo.bar(a=1, b="x")``.

    Args:
        text: the source.

    Returns:
        ``[{name: {parameter: source of the value}}]``; an empty dictionary when the text is Java
        without a call.

    Raises:
        DecodeError: the text is no Java, is too long or too deep, or a parameter is given twice.
        MissingExtraError: tree-sitter or its grammar of Java is not installed.
    """
    call = _first_call(tree_of(text, "java"))
    if call is None:
        return {}
    try:
        return [_Source(text).call(call)]
    except RecursionError as error:
        raise DecodeError("the text is too deep") from error


def _first_call(root: Node) -> Node | None:
    """The first call in the order of the text, the outermost where calls are nested."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if node.type == "method_invocation":
            return node
        waiting += reversed(node.children)
    return None


class _Source:
    """Writes nodes as BFCL does, which takes offsets in bytes for offsets in characters."""

    def __init__(self, text: str) -> None:
        self._text = text

    def raw(self, node: Node) -> str:
        return self._text[node.start_byte : node.end_byte]

    def call(self, node: Node) -> dict[str, Any]:
        name, owner = node.child_by_field_name("name"), node.child_by_field_name("object")
        label = self.raw(_there(name))
        if owner is not None:
            label = f"{self.raw(owner)}.{label}"
        results: dict[str | None, str] = {}
        for argument in _there(node.child_by_field_name("arguments")).children:
            key: str | None = None
            if argument.type == "assignment_expression":
                left, right = sides(argument)
                key, value = self.raw(left), self.written(right, nested=False)
            elif argument.type in ("identifier", "class_literal"):
                value = self.written(argument, nested=False)
            else:
                continue
            if key in results:
                raise DecodeError("a parameter is given twice")
            results[key] = value
        return {label: results}

    def written(self, node: Node, *, nested: bool) -> str:
        if node.type in _QUOTED:
            return self.raw(node) if nested else self.raw(node)[1:-1]
        if node.type in _RAW:
            return self.raw(node)
        if node.type == "array_creation_expression":
            value = node.child_by_field_name("value")
            if value is None:
                raise DecodeError("an array has no items")
            return f"new {self._type(node)}[]{self.written(value, nested=True)}"
        if node.type == "object_creation_expression":
            arguments = node.child_by_field_name("arguments")
            argument_texts = [
                self.written(child, nested=True)
                for child in (arguments.children if arguments is not None else ())
                if child.type not in (",", "(", ")")
            ]
            return f"new {self._type(node)}({', '.join(argument_texts)})"
        if not node.children:
            return self.raw(node)
        return "".join(self.written(child, nested=True) for child in node.children)

    def _type(self, node: Node) -> str:
        return self.written(_there(node.child_by_field_name("type")), nested=True)


def _there(node: Node | None) -> Node:
    if node is None:
        raise DecodeError("a part of the call is missing")
    return node
