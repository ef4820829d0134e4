"""What a checker says about an output."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Rules = Literal["official", "fixed"]
"""``official``: the verdicts of BFCL's own checker. ``fixed``: without its known faults."""

CHECKER_ERROR = "checker_error"
"""The official checker stops with an exception here: question and answer do not fit together."""


@dataclass(frozen=True, slots=True)
class CheckerVerdict:
    """What a checker says about an output.

    Attributes:
        valid: whether it is right.
        error_type: why it is wrong, one of BFCL's words; None when it is right.
        detail: what was expected and found, in words.
        relevance: for the (ir)relevance categories: ``abstained``, ``malformed`` or ``called``.
        more: further facts, JSON.
    """

    valid: bool
    error_type: str | None = None
    detail: str = ""
    relevance: str | None = None
    more: Mapping[str, Any] = field(default_factory=dict)


RIGHT = CheckerVerdict(True)


class Mismatch(Exception):
    """An output does not fit an answer.

    Args:
        error_type: why, one of BFCL's words.
        detail: what was expected and found.
    """

    def __init__(self, error_type: str, detail: str = "") -> None:
        super().__init__(detail or error_type)
        self.error_type, self.detail = error_type, detail

    def verdict(self) -> CheckerVerdict:
        """The verdict that it amounts to."""
        return CheckerVerdict(False, self.error_type, self.detail)
