r"""Comparing answers: normalisation, exact match, token F1, and equality of formulas.

- **squad** (Rajpurkar et al. 2016, the script of SQuAD 1.1): small letters, no punctuation, no
  articles, single spaces.
- **et_agent** (ET-Agent, arXiv 2601.06860, ``evaluate.py``): small letters, no articles, single
  spaces; punctuation stays.
- `math_equal`: two LaTeX answers are the same after the clean-up of MATH (Hendrycks et al. 2021,
  section 3), or both are numbers and equal as fractions. Our own code after their description.
"""

from __future__ import annotations

import re
from collections import Counter
from fractions import Fraction

from adp.rollouts.answer_match import normalised

_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_TAGS = ("answer", "FINAL")
_LONGEST_FORMULA = 2_000


def normalize(text: str, manner: str = "squad") -> str:
    """A text as it is compared.

    Args:
        text: the text.
        manner: ``squad`` or ``et_agent``.
    """
    if manner == "squad":
        return normalised(text)
    return " ".join(_ARTICLES.sub(" ", text.lower()).split())


def exact(prediction: str, reference: str, manner: str = "squad") -> bool:
    """Whether two answers are the same when normalised."""
    return normalize(prediction, manner) == normalize(reference, manner)


def holds(prediction: str, reference: str, manner: str = "squad") -> bool:
    """ET-Agent's ``acc``: whether the reference is a part of the prediction."""
    wanted = normalize(reference, manner)
    return bool(wanted) and wanted in normalize(prediction, manner)


def token_f1(prediction: str, reference: str, manner: str = "squad") -> float:
    """F1 of the bags of words; without words on a side, 1 when both have none, else 0."""
    predicted, wanted = normalize(prediction, manner).split(), normalize(reference, manner).split()
    if not predicted or not wanted:
        return float(predicted == wanted)
    common = (Counter(predicted) & Counter(wanted)).total()
    return 2 * common / (len(predicted) + len(wanted))


def extract(text: str) -> str:
    r"""The answer in a text, as ET-Agent finds it.

    What stands last between ``<answer>`` tags (M3's ``<FINAL>`` tags are read, too), and in it in
    the last ``\boxed{}``; without tags the last ``\boxed{}`` of the text; else the whole text.
    """
    tagged = [child for tag in _TAGS if (child := _inside(text, tag)) is not None]
    inside = max(tagged, key=lambda item: item[0])[1] if tagged else text
    box = boxed(inside)
    return (inside if box is None else _TEXT.sub(r"\1", box)).strip()


def _inside(text: str, tag: str) -> tuple[int, str] | None:
    """What stands in the last pair of tags, and where it begins."""
    end = text.rfind(f"</{tag}>")
    start = text.rfind(f"<{tag}>", 0, end) if end >= 0 else -1
    begin = start + len(tag) + 2
    return None if start < 0 else (begin, text[begin:end])


def boxed(text: str) -> str | None:
    r"""What stands in the last ``\boxed{}`` or ``\fbox{}``, braces matched; None without one."""
    start = max(text.rfind("\\boxed{"), text.rfind("\\fbox{"))
    if start < 0:
        return None
    begin = text.index("{", start) + 1
    depth = 1
    for index in range(begin, len(text)):
        depth += (text[index] == "{") - (text[index] == "}")
        if not depth:
            return text[begin:index]
    return None


# ---- formulas ------------------------------------------------------------------------------

_TEXT = re.compile(r"\\text\s*\{([^{}]*)\}")
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
    plain = _TEXT.sub(r"\1", plain)
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
