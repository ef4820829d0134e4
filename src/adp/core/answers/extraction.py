r"""Where the answer of a text stands: in answer tags, and in it in a box."""

from __future__ import annotations

import re

_TAGS = ("answer", "FINAL")
TEXT = re.compile(r"\\text\s*\{([^{}]*)\}")
"""Words in a formula."""


def extract(text: str) -> str:
    r"""The answer in a text, as ET-Agent finds it.

    What stands last between ``<answer>`` tags (M3's ``<FINAL>`` tags are read, too), and in it in
    the last ``\boxed{}``; without tags the last ``\boxed{}`` of the text; else the whole text.
    """
    tagged = [child for tag in _TAGS if (child := _inside(text, tag)) is not None]
    inside = max(tagged, key=lambda item: item[0])[1] if tagged else text
    box = boxed(inside)
    return (inside if box is None else TEXT.sub(r"\1", box)).strip()


def tagged_answer(text: str) -> str | None:
    """What stands in the first pair of ``<answer>`` tags; None without one."""
    start = text.find("<answer>")
    end = text.find("</answer>", start) if start >= 0 else -1
    return None if end < 0 else text[start + len("<answer>") : end]


def _inside(text: str, tag: str) -> tuple[int, str] | None:
    """What stands in the last pair of tags, and where it begins."""
    end = text.rfind(f"</{tag}>")
    start = text.rfind(f"<{tag}>", 0, end) if end >= 0 else -1
    begin = start + len(tag) + 2
    return None if start < 0 else (begin, text[begin:end])


def boxed(text: str) -> str | None:
    r"""What stands in the last ``\boxed{}``, braces matched; None without one.

    ``\fbox{}`` stands in where there is no ``\boxed{}``.
    """
    start = text.rfind("\\boxed{")
    if start < 0:
        start = text.rfind("\\fbox{")
    if start < 0:
        return None
    begin = text.index("{", start) + 1
    depth = 1
    for index in range(begin, len(text)):
        depth += (text[index] == "{") - (text[index] == "}")
        if not depth:
            return text[begin:index]
    return None
