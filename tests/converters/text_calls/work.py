"""How work grows with a text: time for twice as much, divided by time for as much."""

from __future__ import annotations

import time
from collections.abc import Callable

MOST = 3.5
"""Twice the text takes twice the time, and four times when work is quadratic."""
_NOTHING = 0.02


_TRIES = 4


def growth(parse: Callable[[str], object], piece: str, size: int = 40_000) -> float:
    """Time for twice a text of hostile pieces, divided by the time for it.

    On a busy machine a measurement may be wrong by half; one that is right is enough. A text ten
    times as long follows when the quotient is small.
    """
    results: list[float] = []
    while len(results) < _TRIES and min(results, default=MOST) >= MOST:
        results.append(_quotient(parse, piece, size))
    if min(results) < MOST:
        parse(piece * (10 * size // len(piece)))
    return min(results)


def _quotient(parse: Callable[[str], object], piece: str, size: int) -> float:
    times = []
    for length in (size, 2 * size):
        text = piece * (length // len(piece))
        best = float("inf")
        for _ in range(3):
            start = time.process_time()
            parse(text)
            best = min(best, time.process_time() - start)
            if best < _NOTHING or best > 1:
                break
        times.append(best)
    return times[1] / max(times[0], _NOTHING)
