"""A parser for the expressions and the simple statements of Java."""

from __future__ import annotations

from dataclasses import dataclass, field

from adp.eval.bfcl.lexer import Cursor, Token, words
from adp.eval.bfcl.python_calls import DecodeError

_BINARY = frozenset(words("== != < > <= >= + - * / % & | ^ << && || instanceof"))
_ASSIGN = frozenset(words("= += -= *= /= &= |= ^= %= <<= >>= >>>="))
_PRIMITIVE = frozenset(words("byte short int long char float double boolean void"))
_RESERVED = frozenset(
    words(
        "abstract assert break case catch class const continue default do else enum extends final "
        "finally for goto if implements import instanceof interface native new package private "
        "protected public return static strictfp super switch synchronized this throw throws "
        "transient try volatile while true false null"
    )
)
_WORDS = frozenset(("this", "super", "true", "false", "null"))


@dataclass
class Node:
    """A node of the syntax tree; kinds are those of tree-sitter-java where it matters."""

    kind: str
    start: int
    end: int
    parts: list[Node | Token] = field(default_factory=list)
    type: list[Token] = field(default_factory=list)
    """For ``new``: the tokens of the type."""
    arguments: list[Node] = field(default_factory=list)
    value: Node | None = None
    """For ``new ...[]``: what stands between braces."""


class Parser:
    """Reads statements.

    Args:
        cursor: the tokens.
    """

    def __init__(self, cursor: Cursor) -> None:
        self._at = cursor

    def program(self) -> list[Node]:
        """The statements.

        tree-sitter adds missing semicolons, unless taking all of it for an error is cheaper by
        its count, as it is for a short text.

        Raises:
            DecodeError: the text is no Java.
        """
        at, found, missing = self._at, list[Node](), 0
        while at.now.kind != "end":
            if at.accept(";"):
                continue
            node = self._statement()
            found.append(node)
            if at.accept(";") or node.kind == "block":
                continue
            if at.now.kind == "end" and node.kind == "field_access":
                raise DecodeError("the text ends with a name")
            if at.now.kind not in ("end", "name"):
                raise DecodeError(f"';' is expected at character {at.now.start}")
            missing += 1
        if missing:
            span = at.text[found[0].start : found[-1].end]
            size = len(span.encode(errors="replace")) + 30 * span.count("\n")
            nodes = len(found) + (found[-1].kind == "declaration")
            if 500 + size + 100 * nodes <= 610 * missing:
                raise DecodeError("';' is missing after a short text")
        return found

    def _statement(self) -> Node:
        at = self._at
        if at.at("{"):
            return self._block()
        if at.at("return", "throw"):
            word = at.take()
            if at.at(";") or at.now.kind == "end":
                return Node("return", word.start, word.end, [word])
            value = self._expression()
            return Node("return", word.start, value.end, [word, value])
        if at.now.text in _RESERVED - _WORDS - {"final", "new"}:
            raise DecodeError(f"'{at.now.text}' begins no call")
        return self._declaration() or self._expression()

    def _declaration(self) -> Node | None:
        """``Type name = value``, when one begins here."""
        at, index = self._at, self._at.index
        start = at.now.start
        at.accept("final")
        try:
            tokens: list[Node | Token] = [*self._type()]
            name = at.name() if at.now.text not in _RESERVED else None
        except DecodeError:
            name = None
        if name is None or not (at.at("=", ";", ",") or at.now.kind == "end"):
            at.index = index
            return None
        node = Node("declaration", start, name.end, [*tokens, name])
        while True:
            sign = at.accept("=")
            if sign is not None:
                value = self._initial()
                node.parts += [sign, value]
                node.end = value.end
            comma = at.accept(",")
            if comma is None:
                return node
            name = at.name()
            node.parts += [comma, name]
            node.end = name.end

    def _initial(self) -> Node:
        return self._initializer() if self._at.at("{") else self._expression()

    def _block(self) -> Node:
        at = self._at
        opening = at.expect("{")
        node = Node("block", opening.start, opening.end, [opening])
        while not at.at("}"):
            sign = at.accept(";")
            if sign is None:
                inner = self._statement()
                node.parts.append(inner)
                sign = None if inner.kind == "block" else at.expect(";")
            if sign is not None:
                node.parts.append(sign)
        closing = at.expect("}")
        node.parts.append(closing)
        node.end = closing.end
        return node

    def _joined(self, kind: str, *parts: Node | Token) -> Node:
        return Node(kind, parts[0].start, parts[-1].end, list(parts))

    def _expression(self) -> Node:
        lambda_ = self._lambda()
        if lambda_ is not None:
            return lambda_
        left = self._ternary()
        if self._at.now.kind == "sign" and self._at.now.text in _ASSIGN:
            if left.kind not in ("identifier", "field_access", "array_access"):
                raise DecodeError(f"nothing can be assigned at character {left.start}")
            return self._joined("assignment_expression", left, self._at.take(), self._expression())
        return left

    def _lambda(self) -> Node | None:
        at, index = self._at, self._at.index
        parameters: list[Node | Token]
        if at.now.kind == "name" and at.peek().text == "->":
            parameters = [at.take()]
        elif at.at("("):
            try:
                parameters = [*at.balanced()]
            except DecodeError:
                parameters = []
        else:
            return None
        if not at.at("->"):
            at.index = index
            return None
        arrow = at.take()
        body = self._block() if at.at("{") else self._expression()
        return self._joined("lambda_expression", *parameters, arrow, body)

    def _ternary(self) -> Node:
        node = self._binary()
        sign = self._at.accept("?")
        if sign is None:
            return node
        yes = self._expression()
        colon = self._at.expect(":")
        return self._joined("ternary_expression", node, sign, yes, colon, self._expression())

    def _binary(self) -> Node:
        at = self._at
        node = self._unary()
        while at.now.kind in ("sign", "name") and at.now.text in _BINARY:
            signs = [at.take()]
            # ``>>`` is two tokens here, because it also ends nested types.
            while signs[-1].text == ">" and at.at(">") and at.now.start == signs[-1].end:
                signs.append(at.take())
            if signs[0].text == "instanceof":
                node = self._joined("binary_expression", node, *signs, *self._type())
            else:
                node = self._joined("binary_expression", node, *signs, self._unary())
        return node

    def _unary(self) -> Node:
        at = self._at
        if at.at("+", "-", "!", "~", "++", "--"):
            sign = at.take()
            return self._joined("unary_expression", sign, self._unary())
        cast = self._cast()
        if cast is not None:
            return cast
        node = self._postfix()
        if at.at("++", "--"):
            node = self._joined("update_expression", node, at.take())
        return node

    def _cast(self) -> Node | None:
        at, index = self._at, self._at.index
        if not at.at("("):
            return None
        opening = at.take()
        try:
            primitive = at.now.text in _PRIMITIVE
            tokens = self._type()
            closing = at.expect(")")
        except DecodeError:
            at.index = index
            return None
        follows = at.now.kind in ("name", "number", "string", "char") and not at.at("instanceof")
        if not (follows or at.at("(", "!", "~") or (primitive and at.at("+", "-"))):
            at.index = index
            return None
        value = self._lambda() or self._unary()
        return self._joined("cast_expression", opening, *tokens, closing, value)

    def _postfix(self) -> Node:
        at = self._at
        node = self._primary()
        while True:
            if at.at(".") and at.peek().kind == "name":
                dot, name = at.take(), at.take()
                if name.text == "class":
                    node = Node("class_literal", node.start, name.end)
                elif at.at("("):
                    node = self._called(node, name)
                else:
                    node = self._joined("field_access", node, dot, name)
            elif at.at("["):
                opening, inner = at.take(), self._expression()
                node = self._joined("array_access", node, opening, inner, at.expect("]"))
            elif at.at("::"):
                node = self._joined("method_reference", node, at.take(), at.name())
            else:
                return node

    def _called(self, owner: Node | None, name: Token) -> Node:
        arguments, end = self._arguments()
        start = owner.start if owner else name.start
        parts: list[Node | Token] = [owner, name] if owner else [name]
        return Node("method_invocation", start, end, parts, arguments=arguments)

    def _arguments(self) -> tuple[list[Node], int]:
        at = self._at
        at.expect("(")
        found: list[Node] = []
        while not at.at(")"):
            found.append(self._expression())
            if at.at(")"):
                break
            at.expect(",")
            if at.at(")"):
                raise DecodeError("an argument is missing")
        return found, at.expect(")").end

    def _primary(self) -> Node:
        at = self._at
        token = at.now
        literal = {"number": "number", "string": "string_literal", "char": "character_literal"}
        if token.kind in literal:
            at.take()
            return Node(literal[token.kind], token.start, token.end)
        if at.at("("):
            opening, inner = at.take(), self._expression()
            return self._joined("parenthesized_expression", opening, inner, at.expect(")"))
        if at.at("new"):
            return self._new()
        if token.kind == "name" and token.text in _PRIMITIVE:
            tokens = self._type()
            if at.at("::"):
                return self._joined("method_reference", *tokens, at.take(), at.name())
            at.expect(".")
            return Node("class_literal", token.start, at.expect("class").end)
        # tree-sitter takes a reserved word for a name where the word itself cannot stand, as in
        # ``my-test-case.json``.
        if token.kind == "name" and token.text != "switch":
            return self._word(token)
        raise DecodeError(f"a value is expected at character {token.start}")

    def _word(self, token: Token) -> Node:
        at, index = self._at, self._at.index
        if at.peek().text in ("[", "<", "."):
            # A type before ``.class`` or ``::``, such as ``String[].class``.
            try:
                tokens = self._type()
                if tokens[-1].text in ("]", ">"):
                    if at.at("::"):
                        return self._joined("method_reference", *tokens, at.take(), at.name())
                    at.expect(".")
                    return Node("class_literal", token.start, at.expect("class").end)
            except DecodeError:
                pass
            at.index = index
        at.take()
        if at.at("("):
            return self._called(None, token)
        kind = token.text if token.text in _WORDS else "identifier"
        return Node(kind, token.start, token.end)

    def _new(self) -> Node:
        at = self._at
        start = at.take().start
        node = Node("object_creation_expression", start, start, type=self._type(brackets=False))
        if at.at("("):
            node.arguments, node.end = self._arguments()
            if at.at("{"):
                node.end = at.balanced()[-1].end
            return node
        node.kind = "array_creation_expression"
        if not at.at("["):
            raise DecodeError(f"'(' or '[' is expected at character {at.now.start}")
        while at.at("["):
            node.end = at.balanced()[-1].end
        if at.at("{"):
            node.value = self._initializer()
            node.end = node.value.end
        return node

    def _initializer(self) -> Node:
        at = self._at
        opening = at.expect("{")
        node = Node("array_initializer", opening.start, opening.end, [opening])
        while not at.at("}"):
            node.parts.append(self._initial())
            comma = at.accept(",")
            if comma is None:
                break
            node.parts.append(comma)
        closing = at.expect("}")
        node.parts.append(closing)
        node.end = closing.end
        return node

    def _type(self, *, brackets: bool = True) -> list[Token]:
        """The tokens of a type, such as ``java.util.Map<String, int[]>``."""
        at = self._at
        found: list[Token] = []
        if at.at("?"):
            found.append(at.take())
            while at.at("extends", "super", "&"):
                found += [at.take(), *self._type()]
            return found
        while True:
            if at.now.text in _RESERVED:
                raise DecodeError(f"a type is expected at character {at.now.start}")
            found.append(at.name())
            if at.at("<"):
                found += self._type_arguments()
            if not (at.at(".") and at.peek().kind == "name" and at.peek().text not in _RESERVED):
                break
            found.append(at.take())
        while brackets and at.at("[") and at.peek().text == "]":
            found += [at.take(), at.take()]
        return found

    def _type_arguments(self) -> list[Token]:
        at = self._at
        found = [at.expect("<")]
        while not at.at(">"):
            found += self._type()
            comma = at.accept(",")
            if comma is not None:
                found.append(comma)
            elif not at.at(">"):
                raise DecodeError(f"'>' is expected at character {at.now.start}")
        return [*found, at.expect(">")]
