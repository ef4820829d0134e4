r"""Equality of formulas by the package ``math-verify`` (extra ``math``).

It reads LaTeX into expressions of sympy and compares their values, so that ``x + 1`` is ``1 + x``
and ``\sqrt{8}`` is ``2\sqrt{2}``. Each reading and each comparison has a few seconds: an expression
such as ``9^{9^{9}}`` is given up and is not equal.
"""

from __future__ import annotations

import logging
import threading
from typing import Any

from adp_schema.errors import MissingExtraError

SECONDS = 5
"""Time for a reading, and for a comparison; a signal ends it, in the main thread alone."""

LONGEST = 1_000
"""Characters of a formula that is read; longer ones are compared as texts."""


def verified_equal(prediction: str, reference: str) -> bool:
    """Whether two formulas have the same value.

    Args:
        prediction: the formula that was given.
        reference: the right one.

    Raises:
        MissingExtraError: math-verify is not installed.
    """
    package = load_math_verify()
    if max(len(prediction), len(reference)) > LONGEST:
        return prediction.strip() == reference.strip()
    if not prediction.strip() or not reference.strip():
        return prediction.strip() == reference.strip()
    limit = SECONDS if threading.current_thread() is threading.main_thread() else None
    first, second = (
        package.parse(f"${text}$", parsing_timeout=limit) for text in (reference, prediction)
    )
    return bool(package.verify(first, second, timeout_seconds=limit))


def load_math_verify() -> Any:
    """The package.

    Raises:
        MissingExtraError: it is not installed.
    """
    try:
        import math_verify
    except ImportError as error:
        raise MissingExtraError("math-verify", "math") from error
    # It warns about each formula that takes too long, and about calls from other threads.
    logging.getLogger("math_verify").setLevel(logging.ERROR)
    return math_verify
