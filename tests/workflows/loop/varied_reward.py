"""A reward that differs between the answers of a model that knows nothing."""

from __future__ import annotations

from typing import Any


def letters(completions: list[Any], **_: Any) -> list[float]:
    """How many of the characters that the model wrote are letters."""
    texts = [str(completion) for completion in completions]
    return [sum(sign.isalpha() for sign in text) / max(len(text), 1) for text in texts]
