"""Shares of a whole: how many of each group."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction


def allot(sizes: Sequence[int], total: int, *, equal: bool = False) -> list[int]:
    """Divide a number among groups by largest remainder.

    Args:
        sizes: how many each group has.
        total: how many to take in all; all, when there are fewer.
        equal: the same number from each group, as far as they reach; else in proportion to the
            sizes.

    Returns:
        How many to take of each. The groups with the largest remainders get what is left after
        rounding down; of equal ones the earlier. What a group lacks goes to the others.
    """
    total = min(total, sum(sizes))
    weights = [1 if equal else size for size in sizes]
    taken = [0] * len(sizes)
    open_groups = [place for place, size in enumerate(sizes) if size]
    while total > sum(taken) and open_groups:
        rest = total - sum(taken[place] for place in range(len(sizes)) if place not in open_groups)
        weight = sum(weights[place] for place in open_groups)
        exact = {place: Fraction(rest * weights[place], weight) for place in open_groups}
        full = [place for place in open_groups if exact[place] >= sizes[place]]
        if full:
            for place in full:
                taken[place] = sizes[place]
            open_groups = [place for place in open_groups if place not in full]
            continue
        for place in open_groups:
            taken[place] = int(exact[place])
        left = total - sum(taken)
        order = sorted(open_groups, key=lambda place: (taken[place] - exact[place], place))
        for place in order[:left]:
            taken[place] += 1
        break
    return taken
