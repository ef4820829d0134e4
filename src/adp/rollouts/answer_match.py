"""Whether an answer is one of those that are right: the plain rule of the built-in environments.

An answer and a reference are the same when, of the part that follows the last ``answer:`` or
``answer is`` (or of the whole text, where there is none),

- the reference is a number and the answer is one of the same value: ``1,000.0`` and ``1000``.
  Signs around it such as ``**``, ``$`` and ``%`` do not matter; a word does.
- else, both are equal in the manner of SQuAD (Rajpurkar et al. 2016): lower case, no punctuation,
  no articles, single spaces; a text of punctuation alone is compared as it is.

Scorers that follow other rules are in `adp.eval.scorers`.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from typing import Any

from adp.core.answers.words import normalised
from adp.core.json_values import json_or_none
from adp.rollouts.environment import Verdict
from adp_schema.model import Task

_LEAD = re.compile(r"\banswer(?:\s+is\b|\s*:)\s*:?", re.IGNORECASE)
_NUMBER = re.compile(r"[-+]?(?:\d{1,3}(?:,\d{3})+|\d+)?(?:\.\d*)?(?:[eE][-+]?\d{1,4})?")
_AROUND = " \t\n*_`'\"$\u20ac\u00a3%\u00b0!"
LONGEST_NUMBER = 400
"""Characters of a text that may still be read as a number."""


def number_of(text: str) -> float | int | None:
    """The number that a text is, with commas between thousands; None when it is none."""
    bare = text.strip(_AROUND).rstrip(".").strip(_AROUND).replace("\u2212", "-")
    if not bare or len(bare) > LONGEST_NUMBER or not _NUMBER.fullmatch(bare):
        return None
    bare = bare.replace(",", "")
    try:
        return int(bare)
    except ValueError:
        pass
    try:
        value = float(bare)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def final_part(text: str) -> str:
    """What follows the last ``answer:`` or ``answer is``; the whole text where there is none."""
    leads = list(_LEAD.finditer(text))
    return (text[leads[-1].end() :] if leads else text).strip()


def same_answer(answer: str, reference: str) -> bool:
    """Whether an answer is the same as a reference, by the rule of this module."""
    answer, reference = final_part(answer), reference.strip()
    right = number_of(reference)
    if right is not None:
        left = number_of(answer)
        return left is not None and (left == right or _close(left, right))
    result, other = normalised(answer), normalised(reference)
    return result == other if result or other else answer == reference


def references_of(task: Task | None) -> Sequence[str] | None:
    """The answers of a task that are right.

    Args:
        task: its column ``answers`` is a JSON list of texts and numbers, or one of them.

    Returns:
        The answers; None where there is none, or the column cannot be read.
    """
    value = None if task is None else json_or_none(task.answers)
    listed = value if isinstance(value, list) else [value]
    answers = [_text(item) for item in listed if isinstance(item, str | int | float | bool)]
    return answers or None


def judged(task: Task | None, answer: str | None) -> Verdict:
    """How a task went by its answers: success, and a reward of 1 or 0.

    Args:
        task: the task; without readable ``answers`` nothing is scored.
        answer: the final answer; None: there was none, which is a failure.
    """
    references = references_of(task)
    if references is None:
        return Verdict()
    success = answer is not None and any(same_answer(answer, reference) for reference in references)
    expected: dict[str, Any] = {"expected": list(references), "found": answer}
    return Verdict(success=success, reward=float(success), judge=expected)


def _close(left: float, right: float) -> bool:
    if isinstance(left, int) and isinstance(right, int):
        return False
    try:
        return math.isclose(left, right, rel_tol=1e-9, abs_tol=1e-12)
    except OverflowError:
        return False


def _text(value: str | float | bool) -> str:
    return value if isinstance(value, str) else json.dumps(value)
