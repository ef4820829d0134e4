"""How hard tests try."""

from __future__ import annotations

import os

RANDOM = bool(os.environ.get("ADP_TEST_RANDOM"))
"""Whether properties are tried with other examples in every run, as `make test-random` does."""


def examples(at_random: int) -> int:
    """How many examples a broad property is tried with.

    Plain runs try the same ones every time, so what the first tenth does not find is rarely
    found there.

    Args:
        at_random: how many where each run draws others.

    Returns:
        a tenth of them in a plain run.
    """
    return at_random if RANDOM else max(2, at_random // 10)
