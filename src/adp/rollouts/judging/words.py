"""Reading a verdict out of the words of a model: strictly, so that a quote is never a verdict."""

from __future__ import annotations

import re
from collections.abc import Collection

_TOKEN = re.compile(r"[\w.+-]+")
_CONCLUSION = "conclusion"


def last_line(text: str, pattern: re.Pattern[str]) -> str | None:
    """What a pattern finds in the last line that is not empty; the whole line must fit."""
    lines = [line.strip().strip("*").strip() for line in text.splitlines() if line.strip()]
    match = pattern.fullmatch(lines[-1]) if lines else None
    return None if match is None else match.group(1)


def last_tag(text: str, tag: str, words: Collection[str]) -> str | None:
    """The last of some words that stands in tags, in small letters; None without one."""
    matches = re.findall(rf"<{tag}>\s*({'|'.join(words)})\s*</{tag}>", text, re.IGNORECASE)
    return str(matches[-1]).lower() if matches else None


def concluded(text: str, words: Collection[str]) -> str | None:
    """The word after ``Conclusion:``, whole and in any case (M3's judges are read like this).

    Args:
        text: what the model said.
        words: the verdicts that there are, in small letters.

    Returns:
        The word. None when there is not exactly one conclusion, or when it holds none of the words
        or several.
    """
    parts = re.split(_CONCLUSION, text, flags=re.IGNORECASE)
    if len(parts) != 2:
        return None
    tokens = {token.rstrip(".").strip("_").lower() for token in _TOKEN.findall(parts[1])}
    named = tokens & set(words)
    return named.pop() if len(named) == 1 else None


def concluded_or_alone(text: str, words: Collection[str]) -> str | None:
    """The same; an answer that is nothing but the word counts, too."""
    bare = text.strip(" \t\r\n.!*_\"'`").lower()
    return bare if bare in words else concluded(text, words)
