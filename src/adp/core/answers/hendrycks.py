r"""Equality of formulas to the letter of MATH's own code (Hendrycks et al. 2021).

ET-Agent, verl, lm-evaluation-harness and many others call this ``is_equiv``: both texts are
cleaned, and then the same or not. It takes 0.5 for ``\frac{1}{2}``, but neither 0.25 for
``\frac{1}{4}`` nor 1,000 for 1000; `adp.core.answers.formulas` does. A published figure that was
made with it can be repeated only with it. Our own code after what theirs does; the oracle tests
compare it with verl's copy of theirs over thousands of formulas.
"""

from __future__ import annotations

_FIRST = (
    ("\n", ""),
    ("\\!", ""),
    ("\\\\", "\\"),
    ("tfrac", "frac"),
    ("dfrac", "frac"),
    ("\\left", ""),
    ("\\right", ""),
    ("^{\\circ}", ""),
    ("^\\circ", ""),
    ("\\$", ""),
)
_THEN = (("\\\\%", ""), ("\\%", ""), (" .", " 0."), ("{.", "{0."))
_UNIT, _ROOT, _FRACTION = "\\text{ ", "\\sqrt", "\\frac"


class _UncleanError(ValueError):
    """A formula that the clean-up cannot take."""


def is_equiv(text: str, other: str) -> bool:
    """Whether two formulas are the same after the clean-up.

    Args:
        text: a formula.
        other: another one. When one of them cannot be cleaned, they are compared as they are.
    """
    try:
        return strip_string(text) == strip_string(other)
    except _UncleanError:
        return text == other


def strip_or_same(text: str) -> str:
    """A cleaned formula; the text as it is when it cannot be cleaned."""
    try:
        return strip_string(text)
    except _UncleanError:
        return text


def strip_string(text: str) -> str:
    """A formula after the clean-up.

    Raises:
        ValueError: it has two units, or ends where a root or a fraction begins.
    """
    plain = _without_unit(_replaced(text, _FIRST))
    plain = _replaced(plain, _THEN)
    if not plain:
        return plain
    if plain[0] == ".":
        plain = "0" + plain
    sides = plain.split("=")
    if len(sides) == 2 and len(sides[0]) <= 2:
        plain = sides[1]
    plain = _roots(plain).replace(" ", "")
    plain = _fractions(plain)
    return _ratio("\\frac{1}{2}" if plain == "0.5" else plain)


def _replaced(text: str, pairs: tuple[tuple[str, str], ...]) -> str:
    for old, new in pairs:
        text = text.replace(old, new)
    return text


def _without_unit(text: str) -> str:
    parts = text.split(_UNIT)
    if len(parts) > 2:
        raise _UncleanError("two units")
    return parts[0]


def _roots(text: str) -> str:
    """Braces around what follows a root."""
    first, *parts = text.split(_ROOT)
    for part in parts:
        if not part:
            raise _UncleanError("a root of nothing")
        first += _ROOT + (part if part[0] == "{" else f"{{{part[0]}}}{part[1:]}")
    return first


def _fractions(text: str) -> str:
    """Braces around both parts of a fraction, when each is one character or has braces."""
    result, *parts = text.split(_FRACTION)
    for part in parts:
        if not part:
            raise _UncleanError("a fraction of nothing")
        result += _FRACTION
        if part[0] == "{":
            result += part
        elif len(part) < 2:
            return text
        elif part[1] == "{":
            result += f"{{{part[0]}}}{part[1:]}"
        else:
            result += f"{{{part[0]}}}{{{part[1]}}}{part[2:]}"
    return result


def _ratio(text: str) -> str:
    """``a/b`` of two whole numbers as a fraction."""
    parts = text.split("/")
    if len(parts) != 2:
        return text
    try:
        top, bottom = int(parts[0]), int(parts[1])
    except ValueError:
        return text
    return f"\\frac{{{top}}}{{{bottom}}}" if text == f"{top}/{bottom}" else text
