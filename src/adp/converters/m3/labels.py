"""Reward categories as labels, and what an observation says about errors."""

from __future__ import annotations

import re

_CATEGORY = re.compile(r"\{[^{}+]+\}")
_ERROR_LABELS = frozenset(
    {"REWARD_PARSING_ERROR", "REWARD_BAD_TOOL_CALL", "REWARD_ERROR_NO_CATEGORY"}
)


def labels_of(reward: str) -> tuple[list[str], bool]:
    """The set of categories of a reward, without braces, in order.

    Returns:
        The labels, and whether they are the names of a sum such as
        ``{REWARD_BAD_TOOL_CALL}+{REWARD_AGENT_STUCK}``. Any other text is one label by itself.
    """
    parts = reward.split("+")
    regular = all(_CATEGORY.fullmatch(part) for part in parts) and len(set(parts)) == len(parts)
    return ([part[1:-1] for part in parts], True) if regular else ([reward], False)


def reward_of(labels: list[str], *, single: bool) -> str:
    """The inverse of `labels_of`; with ``single`` the only label is the text itself."""
    return "+".join(label if single else f"{{{label}}}" for label in labels)


def error_of(observation: str, labels: list[str] | None) -> tuple[bool | None, str | None]:
    """Whether an observation is an error, and of which type.

    A failed call begins with the name of its error, such as ``ToolCallError``; a reward category
    of an error says it too. A text that begins with ``ToolCallSuccessful`` is no error. Of others,
    such as the question that follows an answer, it is not known.
    """
    head = observation.split(":", 1)[0].strip()
    if head.startswith("ToolCallSuccessful"):
        return False, None
    if "error" in head.lower() and head.isidentifier():
        return True, head
    if _ERROR_LABELS.intersection(labels or ()):
        return True, None
    return None, None
