r"""Equality of formulas.

Two LaTeX answers are the same after the clean-up of MATH (Hendrycks et al. 2021, section 3), or
both are numbers and equal as fractions. Our own code after their description; what their code does
to the letter is in `adp.core.answers.hendrycks`.
"""

from __future__ import annotations

import re
from fractions import Fraction

from adp.core.answers.extraction import TEXT

_LONGEST_FORMULA = 2_000
_UNIT = re.compile(r"\\text\s*\{ [^{}]*\}$")
_NOISE = re.compile(r"\\!|\\,|\\;|\\left(?![a-z])|\\right(?![a-z])|\^\{?\\circ\}?|\\\$|\\?%|\$|\n")
_FRACTION = re.compile(r"\\[td]?frac")
_PAIR = re.compile(r"\\frac(?:\{([^{}]*)\}|(\w))\s*(?:\{([^{}]*)\}|(\w))")
_ROOT = re.compile(r"\\sqrt\s*(\w)")
_SLASH = re.compile(r"^(-?\d+)/(-?\d+)$")
_BARE_POINT = re.compile(r"(?<![\d])\.(?=\d)")
_THOUSANDS = re.compile(r"^-?\d{1,3}(?:,\d{3})+(?:\.\d+)?$")
_NUMBER = re.compile(r"^[-+]?\d{1,400}(?:\.\d{0,400})?$")
_RATIO = re.compile(r"^(-?)\\frac\{(-?\d{1,400})\}\{(-?\d{1,400})\}$")


def math_equal(prediction: str, reference: str) -> bool:
    """Whether two formulas are the same; those beyond 2,000 characters only by their text."""
    if max(len(prediction), len(reference)) > _LONGEST_FORMULA:
        return prediction.strip() == reference.strip()
    result, other = formula(prediction), formula(reference)
    if result == other:
        return bool(result) or prediction.strip() == reference.strip()
    first, second = as_number(result), as_number(other)
    return first is not None and first == second


def formula(text: str) -> str:
    r"""A formula as it is compared.

    Spaces, dollar and percent signs, degrees, ``\left`` and ``\right``, a unit in ``\text{ }`` at
    the end and a name before ``=`` are taken away; fractions and roots get their braces; ``a/b``
    and ``0.5`` become fractions.
    """
    plain = _NOISE.sub("", text.strip())
    plain = _FRACTION.sub(r"\\frac", _UNIT.sub("", plain)).replace("\\\\", "\\")
    plain = TEXT.sub(r"\1", plain)
    left, equals, right = plain.partition("=")
    if equals and "=" not in right and len(left.strip()) <= 2:
        plain = right
    plain = _ROOT.sub(r"\\sqrt{\1}", plain.replace(" ", "")).removesuffix(".")
    plain = _BARE_POINT.sub("0.", plain)
    plain = _PAIR.sub(_braced, plain)
    plain = _SLASH.sub(r"\\frac{\1}{\2}", plain)
    return "\\frac{1}{2}" if plain == "0.5" else plain


def _braced(match: re.Match[str]) -> str:
    top = match.group(1) if match.group(1) is not None else match.group(2)
    bottom = match.group(3) if match.group(3) is not None else match.group(4)
    return f"\\frac{{{top}}}{{{bottom}}}"


def as_number(text: str) -> Fraction | None:
    """The number that a cleaned formula is; None when it is none."""
    plain = text.replace(",", "") if _THOUSANDS.match(text) else text
    if _NUMBER.match(plain):
        return Fraction(plain.rstrip(".") or "0")
    ratio = _RATIO.match(plain)
    if ratio is None or int(ratio.group(3)) == 0:
        return None
    value = Fraction(int(ratio.group(2)), int(ratio.group(3)))
    return -value if ratio.group(1) else value
