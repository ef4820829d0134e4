"""Calls in JavaScript's syntax, read without running any of them.

BFCL reads them with tree-sitter and takes the first statement that is a call. Here a parser for
expressions does it; the bodies of functions are skipped as they are.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from adp.eval.bfcl.lexer import Cursor, words
from adp.eval.bfcl.python_calls import DecodeError

_BINARY = frozenset(
    words("== != === !== < > <= >= + - * / % ** & | ^ << >> >>> && || ?? in instanceof")
)
_ASSIGN = frozenset(words("+= -= *= /= %= **= &= |= ^= <<= >>= >>>= &&= ||= ??="))
_UNARY = frozenset(words("! ~ + - typeof void delete await ++ --"))
_LITERALS = frozenset(words("this null true false super undefined"))
_RESERVED = frozenset(
    words(
        "break case catch class const continue debugger default delete do else export extends "
        "finally for function if import in instanceof new return switch throw try typeof var void "
        "while with enum this null true false super"
    )
)


@dataclass
class _Node:
    kind: str
    start: int
    end: int
    left: _Node | None = None
    right: _Node | None = None
    arguments: list[_Node] = field(default_factory=list)


def decode_javascript(text: str) -> Any:
    """Read the first call of a text such as ``f(a=1, b="x")``.

    Args:
        text: the source.

    Returns:
        ``[{name: {parameter: source of the value}}]``; quotes around a text are dropped. None when
        the text is JavaScript in which no statement is a call.

    Raises:
        DecodeError: the text is no JavaScript, or a parameter is given twice.
    """
    try:
        parser = _Parser(Cursor(text, script=True))
        statements = parser.program()
    except RecursionError as error:
        raise DecodeError("the text is too deep") from error
    for node in statements:
        if node is not None and node.kind == "call" and node.left is not None:
            return [{text[node.left.start : node.left.end]: _arguments(text, node)}]
    return None


def _arguments(text: str, call: _Node) -> dict[str | None, str]:
    found: dict[str | None, str] = {}
    for node in call.arguments:
        key: str | None = None
        if node.kind == "assignment" and node.left is not None and node.right is not None:
            key = text[node.left.start : node.left.end]
            value = text[node.right.start : node.right.end]
            if any(value.startswith(mark) and value.endswith(mark) for mark in "\"'"):
                value = value[1:-1]
        elif node.kind in ("identifier", "true"):
            value = text[node.start : node.end]
        else:
            continue
        if key in found:
            raise DecodeError("a parameter is given twice")
        found[key] = value
    return found


class _Parser:
    def __init__(self, cursor: Cursor) -> None:
        self._at = cursor

    def program(self) -> list[_Node | None]:
        """Statements; None for those that are no expression."""
        found = []
        while self._at.now.kind != "end":
            found.append(self._statement())
        return found

    def _statement(self) -> _Node | None:
        at = self._at
        if at.accept(";"):
            return None
        if at.at("{"):
            at.balanced()
            return None
        if at.at("const", "let", "var") and at.peek().kind == "name":
            self._declaration()
            return None
        if at.at("return", "throw"):
            at.take()
            if not at.at(";") and at.now.kind != "end":
                self._sequence()
            return self._ended(None)
        if at.at("function", "class") or (at.at("async") and at.peek().text == "function"):
            self._assignment()
            return None
        if at.at("if", "while"):
            at.take()
            at.balanced() if at.at("(") else at.expect("(")
            self._statement()
            return None
        if at.now.kind == "name" and at.peek().text == ":" and at.now.text not in _RESERVED:
            at.take(), at.take()
            self._statement()
            return None
        if at.now.text in _RESERVED - _LITERALS - _UNARY - {"new"}:
            raise DecodeError(f"'{at.now.text}' begins no call")
        return self._ended(self._sequence())

    def _ended(self, node: _Node | None) -> _Node | None:
        at = self._at
        if not at.accept(";") and at.now.kind != "end" and not at.now.after_line:
            raise DecodeError(f"a statement does not end before character {at.now.start}")
        return node

    def _declaration(self) -> None:
        self._at.take()
        while True:
            self._at.name()
            if self._at.accept("="):
                self._assignment()
            if not self._at.accept(","):
                break
        self._ended(None)

    def _sequence(self) -> _Node:
        node = self._assignment()
        while self._at.accept(","):
            node = _Node("sequence", node.start, self._assignment().end)
        return node

    def _assignment(self) -> _Node:
        arrow = self._arrow()
        if arrow is not None:
            return arrow
        left = self._conditional()
        if self._at.at("="):
            if left.kind not in ("identifier", "member", "array", "object", "undefined"):
                raise DecodeError(f"nothing can be assigned at character {left.start}")
            self._at.take()
            right = self._assignment()
            return _Node("assignment", left.start, right.end, left, right)
        if self._at.now.kind == "sign" and self._at.now.text in _ASSIGN:
            self._at.take()
            return _Node("augmented", left.start, self._assignment().end)
        return left

    def _arrow(self) -> _Node | None:
        """An arrow function, when one begins here."""
        at = self._at
        start, index = at.now.start, at.index
        if at.at("async") and (at.peek().kind == "name" or at.peek().text == "("):
            at.take()
        if at.now.kind == "name" and at.now.text not in _RESERVED and at.peek().text == "=>":
            at.take()
        elif at.at("("):
            at.balanced()
        if at.index == index or not at.at("=>"):
            at.index = index
            return None
        at.take()
        end = at.balanced()[-1].end if at.at("{") else self._assignment().end
        return _Node("arrow", start, end)

    def _conditional(self) -> _Node:
        node = self._binary()
        if self._at.accept("?"):
            self._assignment()
            self._at.expect(":")
            node = _Node("ternary", node.start, self._assignment().end)
        return node

    def _binary(self) -> _Node:
        node = self._unary()
        while self._at.now.kind in ("sign", "name") and self._at.now.text in _BINARY:
            self._at.take()
            node = _Node("binary", node.start, self._unary().end)
        return node

    def _unary(self) -> _Node:
        at = self._at
        after = at.peek()
        name = at.at("await") and after.kind in ("sign", "end") and after.text != "("
        if at.now.kind in ("sign", "name") and at.now.text in _UNARY and not name:
            start = at.take().start
            return _Node("unary", start, self._unary().end)
        node = self._postfix()
        if at.at("++", "--") and not at.now.after_line:
            node = _Node("update", node.start, at.take().end)
        return node

    def _postfix(self) -> _Node:
        at = self._at
        node = self._new() if at.at("new") else self._primary()
        while True:
            if at.accept("."):
                at.accept("#")
                node = _Node("member", node.start, at.name().end)
            elif at.accept("?."):
                node = self._optional(node)
            elif at.accept("["):
                self._sequence()
                node = _Node("member", node.start, at.expect("]").end)
            elif at.at("("):
                node = self._called(node, node)
            elif at.now.kind == "template":
                node = _Node("call", node.start, at.take().end, node)
            else:
                return node

    def _optional(self, node: _Node) -> _Node:
        at = self._at
        if at.at("("):
            found = self._called(node, node)
            found.arguments = []
            return found
        if at.accept("["):
            self._sequence()
            return _Node("member", node.start, at.expect("]").end)
        return _Node("member", node.start, at.name().end)

    def _called(self, start: _Node, function: _Node) -> _Node:
        arguments, end = self._list("(", ")")
        return _Node("call", start.start, end, function, arguments=arguments)

    def _list(self, opening: str, closing: str) -> tuple[list[_Node], int]:
        """What stands between brackets; a comma may be the last, and items may be left out."""
        at = self._at
        at.expect(opening)
        found: list[_Node] = []
        while not at.at(closing):
            if at.accept(","):
                continue
            if at.accept("..."):
                self._assignment()
            else:
                found.append(self._assignment())
            if not at.at(closing):
                at.expect(",")
        return found, at.expect(closing).end

    def _new(self) -> _Node:
        at = self._at
        start = at.take().start
        node = self._new() if at.at("new") else self._primary()
        end = node.end
        while at.at(".", "["):
            if at.accept("."):
                end = at.name().end
            else:
                at.take()
                self._sequence()
                end = at.expect("]").end
        if at.at("("):
            end = self._list("(", ")")[1]
        return _Node("new", start, end)

    def _primary(self) -> _Node:
        at = self._at
        token = at.now
        if token.kind in ("number", "string", "template", "regex"):
            at.take()
            return _Node(token.kind, token.start, token.end)
        if at.at("("):
            at.take()
            self._sequence()
            return _Node("parenthesized", token.start, at.expect(")").end)
        if at.at("["):
            return _Node("array", token.start, self._list("[", "]")[1])
        if at.at("{"):
            return self._object()
        if at.at("function", "class") or (at.at("async") and at.peek().text == "function"):
            return self._function()
        # tree-sitter takes a reserved word for a name where the word itself cannot stand, as in
        # ``my-test-case.json``.
        if token.kind == "name" and token.text not in ("new", "import"):
            at.take()
            known = token.text in _LITERALS
            return _Node(token.text if known else "identifier", token.start, token.end)
        raise DecodeError(f"a value is expected at character {token.start}")

    def _function(self) -> _Node:
        at = self._at
        start = at.now.start
        while not at.at("{"):
            if at.at("("):
                at.balanced()
            elif at.now.kind == "name" or at.at("*", "."):
                at.take()
            else:
                raise DecodeError(f"no function at character {start}")
        return _Node("function", start, at.balanced()[-1].end)

    def _object(self) -> _Node:
        at = self._at
        start = at.expect("{").start
        while not at.at("}"):
            self._member()
            if not at.at("}"):
                at.expect(",")
        return _Node("object", start, at.expect("}").end)

    def _member(self) -> None:
        at = self._at
        if at.accept("..."):
            self._assignment()
            return
        while at.at("get", "set", "async", "*", "static") and at.peek().text not in ":,(}":
            at.take()
        token = at.now
        if at.at("["):
            at.balanced()
        elif token.kind in ("name", "string", "number"):
            at.take()
        else:
            raise DecodeError(f"a key is expected at character {token.start}")
        if at.at("("):
            at.balanced()
            at.balanced() if at.at("{") else at.expect("{")
        elif at.accept(":"):
            self._assignment()
        elif token.kind != "name":
            raise DecodeError(f"a value is expected at character {at.now.start}")
