"""Which trajectory of a buffer the next round starts from."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple


class Standing(NamedTuple):
    """What selection looks at.

    Attributes:
        quality: how right the trajectory is: 1 or 0 where it is right or wrong, or its best F1.
        calls: calls of tools in it.
    """

    quality: float
    calls: int


def select_best(
    members: Sequence[Standing], used: Collection[int] = (), *, first_is_used: bool = False
) -> int:
    """The index of the trajectory that is evolved next.

    They are ordered by quality, the highest first; then by calls, the fewest first; then by their
    place in the buffer. The first of them that was not used yet is taken; when all were, the first.

    Args:
        members: the buffer, in its order; it is not empty.
        used: indices that were selected before.
        first_is_used: count the index 0 as used from the beginning, as ET-Agent's code does. It
            changes something only where a buffer begins with several trajectories.
    """
    order = sorted(range(len(members)), key=lambda n: (-members[n].quality, members[n].calls))
    taken = {*used, 0} if first_is_used else set(used)
    return next((index for index in order if index not in taken), order[0])
