"""Calls in Python's syntax, read from text without running any of it.

The text is parsed with `ast`, and literals, names and arithmetic on literals are folded. What
BFCL's own decoder would run with ``eval`` (arithmetic on anything else) is refused here.
"""

from __future__ import annotations

import ast
import operator
import re
import warnings
from collections.abc import Callable
from typing import Any

LONGEST = 1_000_000
"""Characters of a text that is still parsed."""

MOST_DIGITS = 4_000
"""Decimal digits of a folded number; Python prints no number with more than 4,300."""

_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
}

_WIDE = re.compile(r"%[^%a-zA-Z]*(?:\*|\d{3})")


class DecodeError(ValueError):
    """A text is no list of calls."""


def parse(text: str) -> ast.expr:
    """The syntax tree of one expression.

    Raises:
        DecodeError: it is no expression of Python, or it is too long or too deep.
    """
    if len(text) > LONGEST:
        raise DecodeError(f"the text has more than {LONGEST:,} characters")
    try:
        with warnings.catch_warnings():
            # Python warns of "\d" in a text; what is decided must not depend on how it warns.
            warnings.simplefilter("ignore")
            return ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise DecodeError(f"this is no expression: {error}") from error


def decode_python(text: str) -> list[dict[str, Any]]:
    """Read calls from text such as ``[f(a=1), g.h(b="x")]``.

    As in BFCL: arguments without a name are dropped, a bare name is a text, a call inside a call
    is a dictionary (or its source, when it has no named argument).

    Raises:
        DecodeError: the text is no list of calls.
    """
    body = parse(text.strip().strip("'"))
    try:
        if isinstance(body, ast.Call):
            return [_call(body)]
        if not isinstance(body, ast.List | ast.Tuple | ast.Set):
            raise DecodeError("this is no list of calls")
        calls = []
        for item in body.elts:
            if not isinstance(item, ast.Call):
                raise DecodeError(f"'{ast.unparse(item)[:80]}' is no call")
            calls.append(_call(item))
        return calls
    except RecursionError as error:
        raise DecodeError("the text is too deep") from error


def call_parts(source: str) -> tuple[str, list[Any], dict[str, Any]]:
    """Name, values without a name, and named values of one call of a plain name.

    Raises:
        DecodeError: it is no such call, or an argument is no literal.
    """
    node = parse(source)
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        raise DecodeError("this is no call of a plain name")
    try:
        values = [ast.literal_eval(value) for value in node.args]
        named = {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in node.keywords}
    except (ValueError, TypeError, RecursionError) as error:
        raise DecodeError(f"an argument is no literal: {error}") from error
    return node.func.id, values, named


def _call(node: ast.Call) -> dict[str, Any]:
    parts: list[str] = []
    function = node.func
    while isinstance(function, ast.Attribute):
        parts.append(function.attr)
        function = function.value
    if isinstance(function, ast.Name):
        parts.append(function.id)
    arguments = {keyword.arg: _value(keyword.value) for keyword in node.keywords}
    # ``f(**x)`` has the argument None, which no function knows, so that it counts as unexpected.
    return {".".join(reversed(parts)): arguments}


def _value(node: ast.expr | None) -> Any:
    if isinstance(node, ast.Constant):
        return "..." if node.value is Ellipsis else node.value
    if isinstance(node, ast.UnaryOp):
        return _negative(node.operand)
    if isinstance(node, ast.List):
        return [_value(item) for item in node.elts]
    if isinstance(node, ast.Tuple):
        return tuple(_value(item) for item in node.elts)
    if isinstance(node, ast.Dict):
        return _dictionary(node)
    if isinstance(node, ast.BinOp):
        return fold(node)
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Call):
        return _call(node) if node.keywords else ast.unparse(node)
    if isinstance(node, ast.Subscript):
        return f"{ast.unparse(node.value)}[{ast.unparse(node.slice)}]"
    raise DecodeError(f"{type(node).__name__} is no value")


def _negative(operand: ast.expr) -> Any:
    """The negative of a number, whatever the operator is: BFCL takes ``+5`` and ``~5`` for -5."""
    value = operand.value if isinstance(operand, ast.Constant) else None
    if not isinstance(value, int | float | complex):
        raise DecodeError("only a number can have a sign")
    return -value


def _dictionary(node: ast.Dict) -> dict[Any, Any]:
    try:
        return {
            _value(key): _value(value) for key, value in zip(node.keys, node.values, strict=True)
        }
    except TypeError as error:
        raise DecodeError(f"a key cannot be used: {error}") from error


def fold(node: ast.expr) -> Any:
    """The value of arithmetic on literals, within bounds.

    Raises:
        DecodeError: there is something else than literals, or the result is too large.
    """
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd | ast.Invert):
        return _unary(node.op, fold(node.operand))
    if isinstance(node, ast.List):
        return [fold(item) for item in node.elts]
    if isinstance(node, ast.Tuple):
        return tuple(fold(item) for item in node.elts)
    if isinstance(node, ast.BinOp):
        left, right = fold(node.left), fold(node.right)
        _bounded(node.op, left, right)
        try:
            return _OPERATORS[type(node.op)](left, right)
        except (ArithmeticError, TypeError, ValueError, KeyError) as error:
            raise DecodeError(f"this cannot be computed: {error}") from error
    raise DecodeError(f"{type(node).__name__} is no literal")


def _unary(sign: ast.unaryop, value: Any) -> Any:
    try:
        if isinstance(sign, ast.Invert):
            return operator.invert(value)
        return -value if isinstance(sign, ast.USub) else +value
    except TypeError as error:
        raise DecodeError(f"this cannot be computed: {error}") from error


def _bounded(sign: ast.operator, left: Any, right: Any) -> None:
    """Refuse what takes long or grows large before it is computed.

    Raises:
        DecodeError: it does.
    """
    if isinstance(left, bytes) and isinstance(sign, ast.Mod):
        raise DecodeError("bytes are formatted")
    if isinstance(left, str) and isinstance(sign, ast.Mod) and _WIDE.search(left):
        raise DecodeError("a text is formatted with a width")
    for count, other in ((left, right), (right, left)):
        repeated = isinstance(sign, ast.Mult) and isinstance(other, str | bytes | list | tuple)
        if repeated and (not isinstance(count, int) or count * len(other) > LONGEST):
            raise DecodeError("a repetition is too long")
    if not (isinstance(left, int) and isinstance(right, int)):
        return
    bits = {
        ast.Pow: left.bit_length() * max(right, 0),
        ast.LShift: left.bit_length() + max(right, 0),
        ast.Mult: left.bit_length() + right.bit_length(),
    }
    if bits.get(type(sign), 0) > MOST_DIGITS * 3.33:
        raise DecodeError("a number is too large")
