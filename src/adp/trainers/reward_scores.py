"""Scores of what a model wrote: its final answer, and its calls."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from typing import Any

from adp.core.answers.extraction import boxed
from adp.rendering.call_form import WrittenCall

_THOUGHT_END = "</think>"
_TAGGED = re.compile(r"<(answer|FINAL)>(.*?)</\1>", re.DOTALL)
_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_NUMBER = re.compile(r"^[-+]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?$")


def without_reasoning(text: str) -> str:
    """What is said, without the reasoning before it."""
    return text[text.rfind(_THOUGHT_END) + len(_THOUGHT_END) :] if _THOUGHT_END in text else text


def references(answers: str | None) -> list[str]:
    """The reference answers of a task, as texts.

    Args:
        answers: JSON of the column ``answers``.
    """
    if answers is None:
        return []
    value = json.loads(answers)
    values = value if isinstance(value, list) else [value]
    return [
        text if isinstance(text, str) else json.dumps(text, ensure_ascii=False)
        for text in values
        if text is not None
    ]


def answer_score(text: str, known: Sequence[str]) -> float | None:
    r"""1 when the final answer is one of the reference answers, else 0.

    The final answer is what stands last between ``<answer>`` or ``<FINAL>`` tags, and in it what
    stands in the last ``\boxed{}``; without these all that is said. Case, articles, punctuation
    and white space do not count, and numbers are compared as numbers.

    Args:
        text: what the model wrote.
        known: the reference answers; without one there is no score.
    """
    if not known:
        return None
    words = without_reasoning(text)
    tagged = _TAGGED.findall(words)
    words = tagged[-1][1] if tagged else words
    box = boxed(words)
    given = words if box is None else box
    return float(any(_equal(given, answer) for answer in known))


def _equal(text: str, other: str) -> bool:
    first, second = _number(text), _number(other)
    if first is not None and second is not None:
        return math.isclose(first, second, rel_tol=1e-6, abs_tol=1e-12)
    plain = _plain(text)
    return plain == _plain(other) and (bool(plain) or text.strip() == other.strip())


def _number(text: str) -> float | None:
    bare = text.strip().rstrip(".").replace("$", "").rstrip("%")
    return float(bare.replace(",", "")) if _NUMBER.match(bare.lower()) else None


def _plain(text: str) -> str:
    letters = "".join(c if c.isalnum() or c.isspace() else " " for c in text.casefold())
    return " ".join(_ARTICLES.sub(" ", letters).split())


def wanted_calls(expected: str | None) -> list[WrittenCall] | None:
    """The calls that are expected.

    Args:
        expected: JSON of a list of objects with ``name`` and ``arguments``; null: unknown.
    """
    if expected is None:
        return None
    value = json.loads(expected)
    results = []
    for item in value if isinstance(value, list) else [value]:
        child = item.get("function", item) if isinstance(item, dict) else None
        if not isinstance(child, dict) or not isinstance(child.get("name"), str):
            return None
        arguments = child.get("arguments", child.get("parameters"))
        if isinstance(arguments, str):
            try:
                arguments = json.loads(arguments)
            except ValueError:
                return None
        results.append(WrittenCall(child["name"], arguments if isinstance(arguments, dict) else {}))
    return results


def calls_score(calls: Sequence[WrittenCall], wanted: Sequence[WrittenCall]) -> float:
    """How much of the expected calls was made: from 0 to 1, in any order.

    A call with the right name scores a third, another third times the F1 of its argument names,
    and the last third times the share of arguments with equal values. Each call is paired with at
    most one expected call, the best pairs first. The sum is divided by the number of calls that
    were made or expected, whichever is larger; no call where none is expected scores 1.

    Args:
        calls: the calls that were made.
        wanted: the calls that are expected.
    """
    if not calls and not wanted:
        return 1.0
    scored = sorted(
        (
            (-_pair_score(call, other), i, j)
            for i, call in enumerate(calls)
            for j, other in enumerate(wanted)
        ),
    )
    total, used_calls, used_wanted = 0.0, set(), set()
    for score, i, j in scored:
        if i not in used_calls and j not in used_wanted:
            used_calls.add(i)
            used_wanted.add(j)
            total -= score
    return total / max(len(calls), len(wanted))


def _pair_score(call: WrittenCall, wanted: WrittenCall) -> float:
    if call.name != wanted.name:
        return 0.0
    called, other = set(call.arguments), set(wanted.arguments)
    if not called and not other:
        return 1.0
    common = called & other
    names = 2 * len(common) / (len(called) + len(other))
    equal = sum(_same(call.arguments[key], wanted.arguments[key]) for key in common)
    values = equal / len(called | other)
    return 1.0 if names == values == 1 else (1 + names + values) / 3


def _same(value: Any, other: Any) -> bool:
    """Equal as JSON: 1 and 1.0 are, 1 and true are not."""
    if isinstance(value, bool) or isinstance(other, bool):
        return value is other
    if isinstance(value, dict) and isinstance(other, dict):
        return value.keys() == other.keys() and all(_same(value[key], other[key]) for key in value)
    if isinstance(value, list) and isinstance(other, list):
        return len(value) == len(other) and all(map(_same, value, other))
    return bool(value == other)
