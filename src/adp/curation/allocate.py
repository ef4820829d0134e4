"""Dividing a whole number by weights, when each part has a least and a most.

The quotas are exact fractions, so equal weights get equal quotas and nothing depends on how a
processor rounds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Literal

Short = Literal["redistribute", "stop"]


def exact(weight: float) -> Fraction:
    """The weight as it is written: 0.35 is 35/100."""
    return Fraction(str(weight))


def largest_remainder(quotas: Sequence[Fraction]) -> list[int]:
    """Round quotas to whole numbers of the same sum (Hamilton's method).

    Each gets its whole part; what is left goes, one each, to the largest remainders. Of equal
    remainders the first in the sequence comes first. Their sum must be whole.
    """
    parts = [math.floor(quota) for quota in quotas]
    left = int(sum(quotas, Fraction())) - sum(parts)
    order = sorted(range(len(quotas)), key=lambda place: (parts[place] - quotas[place], place))
    for place in order[:left]:
        parts[place] += 1
    return parts


def allocate(
    total: int,
    weights: Sequence[Fraction],
    most: Sequence[int],
    least: Sequence[int] | None = None,
    short: Short = "redistribute",
) -> list[int]:
    """Divide a total by weights, within bounds, by largest remainder.

    A part whose share is above its most gets the most, and the rest is divided again over the
    others by their weights; likewise below its least. So the quotas are ``x * weight``, cut at the
    bounds, with the one ``x`` at which they add up.

    Args:
        total: what to divide.
        weights: weights from 0; a part of weight 0 gets nothing.
        most: bound from above of each part.
        least: bound from below; none by default. It is lowered to ``most`` where it is above.
        short: ``stop`` lowers the total, so that no share is cut from above.

    Returns:
        The parts. They add up to the total, or to what there is when that is less.

    Raises:
        ValueError: the least parts are more than the total.
    """
    result = [0] * len(weights)
    places = [place for place, weight in enumerate(weights) if weight > 0 and most[place] > 0]
    missing = any(weight > 0 and not most[place] for place, weight in enumerate(weights))
    if not places or (short == "stop" and missing):
        return result
    scale = math.lcm(*(weights[place].denominator for place in places))
    native = [int(weights[place] * scale) for place in places]
    high = [most[place] for place in places]
    low = [min(least[place], most[place]) if least else 0 for place in places]
    if sum(low) > total:
        raise ValueError(f"the least parts add up to {sum(low)}, which is more than {total}")
    reachable = sum(high)
    if short == "stop":
        factor = min(Fraction(bound, weight) for bound, weight in zip(high, native, strict=True))
        reachable = math.floor(sum(_cut(factor, native, low, high), Fraction()))
    factor = _factor(min(total, reachable), native, low, high)
    parts = largest_remainder(_cut(factor, native, low, high))
    for place, part in zip(places, parts, strict=True):
        result[place] = part
    return result


def _cut(
    factor: Fraction, weights: Sequence[int], low: Sequence[int], high: Sequence[int]
) -> list[Fraction]:
    """The quotas at a factor."""
    rows = zip(weights, low, high, strict=True)
    return [min(max(factor * weight, Fraction(a)), Fraction(b)) for weight, a, b in rows]


def _factor(
    total: int, weights: Sequence[int], low: Sequence[int], high: Sequence[int]
) -> Fraction:
    """The factor at which the quotas add up to a total between ``sum(low)`` and ``sum(high)``.

    Their sum grows with the factor, in straight pieces; each part begins to grow at one corner
    and stops at another.
    """
    rows = list(zip(weights, low, high, strict=True))
    corners = [(Fraction(a, weight), weight, -a) for weight, a, _ in rows]
    corners += [(Fraction(b, weight), -weight, b) for weight, _, b in rows]
    slope, fixed, at = 0, sum(low), Fraction()
    for corner, weight, change in sorted(corners):
        if fixed + slope * corner >= total:
            break
        slope, fixed, at = slope + weight, fixed + change, corner
    return (total - fixed) / Fraction(slope) if slope else at
