"""By which rule answers of a data set are compared: as formulas, or word by word.

The table is ET-Agent's (arXiv 2601.06860, ``evaluate.py``, and the sources of its training rows).
Case and marks of a name do not count, and of a path the last part that is known counts:
``aime24``, ``AIME_24`` and ``some/path/aime24.jsonl`` are the same.
"""

from __future__ import annotations

import re
from typing import Literal

Rule = Literal["math", "qa"]

_MATH = (
    *("aime", "aime24", "aime25", "aime2024", "aime2025", "amc23", "amc2023", "math", "math500"),
    *("olympiadbench", "gsm8k", "openr1", "numinatir", "numinacot", "dapo", "still", "matheffirl"),
)
_QA = (
    *("webwalker", "webwalkerqa", "hotpotqa", "2wiki", "2wikimultihopqa", "bamboogle", "musique"),
    *("hle", "gaia", "csbench", "gpqa", "qaeffirl"),
)
RULES: dict[str, Rule] = {**dict.fromkeys(_MATH, "math"), **dict.fromkeys(_QA, "qa")}
"""The rule of each data set that is known by name."""

F1_SETS = frozenset({"hotpotqa", "2wiki", "2wikimultihopqa", "bamboogle", "musique"})
"""Sets whose main figure is F1; that of all others is what a judge says."""

_MARKS = re.compile(r"[\W_]+")
_ENDING = re.compile(r"\.(?:jsonl?|parquet|csv|tsv)$")
_SPLITS = re.compile(r"[-_ .](?:train|test|dev|valid|validation)$")


def known_name(*names: str | None) -> str | None:
    """The first name that is known, as the table has it; None when none of them is.

    Args:
        names: names of data sets, such as those of a task and of its run; each may be a path, whose
            last part that is known counts.
    """
    for name in names:
        for part in reversed((name or "").lower().replace("\\", "/").split("/")):
            plain = _MARKS.sub("", _SPLITS.sub("", _ENDING.sub("", part.strip())))
            if plain in RULES:
                return plain
    return None


def rule_of(*names: str | None) -> Rule | None:
    """The rule of the first name that is known; None when none of them is."""
    name = known_name(*names)
    return None if name is None else RULES[name]


def has_f1(*names: str | None) -> bool | None:
    """Whether F1 is the main figure of the first set that is known; None when none is."""
    name = known_name(*names)
    return None if name is None else name in F1_SETS
