"""Arithmetic out of text: a parser of its own, with limits; nothing is ever executed.

    sum     = product {("+" | "-") product}
    product = unary {("*" | "/" | "//" | "%") unary}
    unary   = ("+" | "-") unary | power
    power   = atom ["**" unary]
    atom    = number | name | name "(" [sum {"," sum}] ")" | "(" sum ")"

Precedence and meaning are those of Python: ``-2**2`` is -4, ``2**3**2`` is 512, ``//`` and ``%``
round down. Whole numbers are exact; ``/`` and most functions give floating-point numbers.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping
from typing import NoReturn

from adp.rollouts.tools import ToolError
from adp.rollouts.turns import ErrorType

Number = int | float

LONGEST = 1000
"""Characters of an expression."""
DEEPEST = 50
"""Levels of parentheses, signs and powers inside each other."""
MOST_BITS = 3322
"""Bits of a whole number: about 1,000 digits."""
FINEST = 400
"""Digits that ``round`` may be asked for."""

_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)|(?P<name>[A-Za-z_][A-Za-z_0-9]*)"
    r"|(?P<mark>\*\*|//|[-+*/%(),]))",
    re.ASCII,
)
_SIGNS = str.maketrans({"\u00d7": "*", "\u00f7": "/", "\u2212": "-"})

CONSTANTS: Mapping[str, float] = {"e": math.e, "pi": math.pi}


def _round(value: Number, digits: Number = 0) -> Number:
    if not isinstance(digits, int) or abs(digits) > FINEST:
        _refuse(f"round takes a whole number of digits, {FINEST} at most")
    return round(value, digits) if digits else round(value)


FUNCTIONS: Mapping[str, tuple[Callable[..., Number], int, int]] = {
    "abs": (abs, 1, 1),
    "ceil": (math.ceil, 1, 1),
    "cos": (math.cos, 1, 1),
    "exp": (math.exp, 1, 1),
    "floor": (math.floor, 1, 1),
    "log": (math.log, 1, 2),
    "log10": (math.log10, 1, 1),
    "log2": (math.log2, 1, 1),
    "max": (lambda *values: max(values), 1, LONGEST),
    "min": (lambda *values: min(values), 1, LONGEST),
    "round": (_round, 1, 2),
    "sin": (math.sin, 1, 1),
    "sqrt": (math.sqrt, 1, 1),
    "tan": (math.tan, 1, 1),
}
"""Functions, with the fewest and the most arguments."""


def evaluate(expression: str) -> Number:
    """The value of an expression.

    Args:
        expression: the text; the signs of multiplication, division and minus that are not in ASCII
            are understood, too.

    Raises:
        ToolError: it is no expression, it is too long or too deep (`ErrorType.INVALID_ARGS`), or
            it has no value: a division by zero, a root of a negative number, a number that is too
            large (`ErrorType.EXECUTION`).
    """
    if len(expression) > LONGEST:
        _refuse(f"the expression has {len(expression):,} characters; {LONGEST:,} are allowed")
    return _Parser(_tokens(expression.translate(_SIGNS))).whole()


def written(value: Number) -> str:
    """A number as the agent reads it: 15 significant digits, no ``.0``."""
    return str(value) if isinstance(value, int) else f"{value:.15g}"


def _refuse(reason: str) -> NoReturn:
    raise ToolError(reason, ErrorType.INVALID_ARGS)


def _tokens(text: str) -> list[tuple[str, str]]:
    result, place, end = [], 0, len(text.rstrip())
    while place < end:
        match = _TOKEN.match(text, place)
        if match is None:
            rest = text[place:].lstrip()
            hint = "; write ** for a power" if rest.startswith("^") else ""
            _refuse(f"'{rest[:20]}' is not understood{hint}")
        kind = match.lastgroup or ""
        result.append((kind, match[kind]))
        place = match.end()
    return result


class _Parser:
    def __init__(self, tokens: list[tuple[str, str]]) -> None:
        self._tokens = [*tokens, ("end", "")]
        self._place = self._depth = 0

    def whole(self) -> Number:
        value = self._sum()
        if self._tokens[self._place][0] != "end":
            _refuse(f"'{self._tokens[self._place][1][:20]}' is not expected there")
        return value

    def _taken(self, *marks: str) -> str | None:
        """The next token, when it is one of these marks; it is then read."""
        kind, text = self._tokens[self._place]
        if kind != "mark" or text not in marks:
            return None
        self._place += 1
        return text

    def _close(self) -> None:
        if self._taken(")") is None:
            _refuse("a closing parenthesis is missing")

    def _sum(self) -> Number:
        value = self._product()
        while mark := self._taken("+", "-"):
            value = _apply(mark, value, self._product())
        return value

    def _product(self) -> Number:
        value = self._unary()
        while mark := self._taken("*", "/", "//", "%"):
            value = _apply(mark, value, self._unary())
        return value

    def _unary(self) -> Number:
        self._depth += 1
        if self._depth > DEEPEST:
            _refuse(f"the expression is nested more than {DEEPEST} levels deep")
        if mark := self._taken("+", "-"):
            value = self._unary() if mark == "+" else -self._unary()
        else:
            value = self._power()
        self._depth -= 1
        return value

    def _power(self) -> Number:
        value = self._atom()
        return _apply("**", value, self._unary()) if self._taken("**") else value

    def _atom(self) -> Number:
        if self._taken("("):
            value = self._sum()
            self._close()
            return value
        kind, text = self._tokens[self._place]
        if kind == "number":
            self._place += 1
            return _number(text)
        if kind == "name":
            self._place += 1
            return self._named(text)
        _refuse("the expression ends too early" if kind == "end" else f"'{text}' needs a number")

    def _named(self, name: str) -> Number:
        if name in CONSTANTS:
            return CONSTANTS[name]
        if name not in FUNCTIONS:
            known = ", ".join([*FUNCTIONS, *CONSTANTS])
            _refuse(f"'{name[:20]}' is not known; known: {known}")
        if self._taken("(") is None:
            _refuse(f"{name} needs its arguments in parentheses")
        values = []
        if self._taken(")") is None:
            values.append(self._sum())
            while self._taken(","):
                values.append(self._sum())
            self._close()
        function, fewest, most = FUNCTIONS[name]
        if not fewest <= len(values) <= most:
            _refuse(f"{name} does not take {len(values)} arguments")
        return _safe(function, *values)


def _number(text: str) -> Number:
    return _bounded(int(text) if text.isdigit() else float(text))


def _apply(mark: str, left: Number, right: Number) -> Number:
    return _safe(_OPERATIONS[mark], left, right)


def _power(base: Number, exponent: Number) -> Number:
    # What would be too large is refused before it is computed.
    if isinstance(base, int) and isinstance(exponent, int) and exponent >= 0:
        if (abs(base).bit_length() - 1) * exponent > MOST_BITS:
            raise OverflowError
        return int(base**exponent)
    value = base**exponent
    if isinstance(value, complex):
        raise ValueError
    return float(value)


_OPERATIONS: Mapping[str, Callable[[Number, Number], Number]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "**": _power,
}


def _safe(function: Callable[..., Number], *values: Number) -> Number:
    try:
        return _bounded(function(*values))
    except ZeroDivisionError:
        raise ToolError("division by zero") from None
    except OverflowError:
        raise ToolError("the result is too large") from None
    except ValueError:
        raise ToolError("this has no value among the real numbers") from None


def _bounded(value: Number) -> Number:
    if isinstance(value, int):
        if value.bit_length() > MOST_BITS:
            raise ToolError("the result is too large")
    elif not math.isfinite(value):
        raise ToolError("the result is too large")
    return value
