"""How hard tests try."""

from __future__ import annotations

import os

ON_SERVER = bool(os.environ.get("CI"))


def examples(at_home: int) -> int:
    """How many examples a broad property is tried with.

    A server tries the same ones in every run, so what the first quarter does not find is rarely
    found there; at home each run draws others.

    Args:
        at_home: how many at home.

    Returns:
        a quarter of them on a server.
    """
    return max(1, at_home // 4) if ON_SERVER else at_home
