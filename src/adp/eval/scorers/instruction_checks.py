"""Checks of an answer that a task names: its form, its length, words that must be in it or not.

A task names them in its column ``extra``, beside other things or under ``checks``:

    {"format": "json", "must_contain": ["Leiden"], "max_words": 50}
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from adp.core.json_values import json_or_none
from adp.rollouts.benchmark_tasks import extra_of
from adp.rollouts.trajectory_reading import number_or_none
from adp_schema.model import Task

_ITEM = re.compile(r"\s*(?:[-*•]|\d+[.)])\s+\S")

Check = Callable[[str], bool]

_FORMS: Mapping[str, Check] = {
    "json": lambda text: json_or_none(text) is not None or text == "null",
    "json_object": lambda text: isinstance(json_or_none(text), dict),
    "json_list": lambda text: isinstance(json_or_none(text), list),
    "list": lambda text: sum(bool(_ITEM.match(line)) for line in text.split("\n")) > 0,
    "number": lambda text: number_or_none(json_or_none(text)) is not None,
    "one_line": lambda text: bool(text) and "\n" not in text,
    "lowercase": lambda text: text == text.lower(),
    "uppercase": lambda text: text == text.upper(),
}

FORMS = tuple(_FORMS)
"""Values of ``format`` that are checked."""


def instruction_checks(task: Task | None, answer: str | None) -> dict[str, bool]:
    """Each check that a task names, and whether the answer passes it.

    Args:
        task: the task. A check whose value makes no sense, such as a limit that is no number, is
            none.
        answer: the answer; None passes nothing.
    """
    text = None if answer is None else answer.strip()
    checks = _checks(_given(task))
    return {name: text is not None and passes(text) for name, passes in checks.items()}


def form_of(task: Task | None) -> str | None:
    """The form that a task asks its answer to have, as it names it; None where it names none."""
    form = _given(task).get("format")
    return form if isinstance(form, str) else None


def _given(task: Task | None) -> Mapping[str, Any]:
    """What a task says: its ``metadata``, over that ``extra`` itself, over that its ``checks``."""
    extra = extra_of(task)
    given: dict[str, Any] = {}
    for part in (extra.get("metadata"), extra, extra.get("checks")):
        given |= part if isinstance(part, Mapping) else {}
    return given


def _checks(given: Mapping[str, Any]) -> dict[str, Check]:
    checks: dict[str, Check] = {}
    form = given.get("format")
    if isinstance(form, str) and form in _FORMS:
        checks[f"format: {form}"] = _FORMS[form]
    for key, wanted in (("must_contain", True), ("must_not_contain", False)):
        for word in _listed(given.get(key)):
            checks[f"{key}: {word}"] = partial(_contains, word.lower(), wanted)
    for key, method in (("starts_with", str.startswith), ("ends_with", str.endswith)):
        for word in _listed(given.get(key)):
            checks[f"{key}: {word}"] = partial(_has_end, method, word)
    for key, few in (("min_words", True), ("max_words", False)):
        number = number_or_none(given.get(key))
        if number is not None:
            checks[key] = partial(_is_long, number, few)
    return checks


def _contains(word: str, wanted: bool, text: str) -> bool:
    return (word in text.lower()) == wanted


def _has_end(method: Callable[[str, str], bool], word: str, text: str) -> bool:
    return method(text, word)


def _is_long(limit: float, least: bool, text: str) -> bool:
    words = len(text.split())
    return words >= limit if least else words <= limit


def _listed(value: Any) -> list[str]:
    listed = value if isinstance(value, list) else [value]
    return [item for item in listed if isinstance(item, str) and item]
