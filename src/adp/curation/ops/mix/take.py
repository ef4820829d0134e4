"""Which trajectories of a group go into the mixture, and how often."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

Numbers = np.ndarray[Any, np.dtype[np.int64]]


class GroupQueue:
    """The trajectories of one group, in the order in which they are taken.

    No trajectory is taken a second time before all have been taken once.

    Args:
        units: what each takes of the budget: 1, or its tokens; in order, all above 0.
        epochs: how often each may be taken.
    """

    def __init__(self, units: Numbers, epochs: int) -> None:
        self.units = units
        self.epochs = epochs
        self.used = np.zeros(len(units), dtype=np.int64)

    @property
    def left(self) -> int:
        """What can still be taken, in units of the budget."""
        return int((self.units * (self.epochs - self.used)).sum())

    def next(self) -> int | None:
        """The trajectory that comes next; None when all were taken as often as they may be."""
        least = int(self.used.min(initial=self.epochs))
        return int(np.argmax(self.used == least)) if least < self.epochs else None

    def take(self, budget: int) -> Numbers:
        """Take the next ones, up to a budget.

        One that is larger than the whole budget is passed over. Else the first that does not fit
        into what is left ends it: going on to smaller ones would favour the short.

        Returns:
            How often each was taken.
        """
        taken = np.zeros(len(self.units), dtype=np.int64)
        fits = self.units <= budget
        left = budget
        while left > 0:
            open_ = fits & (self.used < self.epochs)
            if not open_.any():
                break
            at = np.flatnonzero(open_ & (self.used == self.used[open_].min()))
            sums = np.cumsum(self.units[at])
            count = int(np.searchsorted(sums, left, side="right"))
            self.used[at[:count]] += 1
            taken[at[:count]] += 1
            left -= int(sums[count - 1]) if count else 0
            if count < len(at):
                break
        return taken


def fill(
    shelves: Mapping[str, GroupQueue], budgets: Mapping[str, int], taken: Mapping[str, Numbers]
) -> None:
    """Give what the groups left of their budgets to those that lack most, one trajectory each.

    That is again by largest remainder: what a group has left, over the size of its next trajectory.
    Equal ones go by name. A trajectory that does not fit into what is left of all is passed over.

    Args:
        shelves: group -> its trajectories.
        budgets: group -> its budget.
        taken: group -> how often each was taken; it is added to.
    """
    used = {name: int((shelves[name].units * counts).sum()) for name, counts in taken.items()}
    rest = sum(budgets[name] - used[name] for name in taken)
    wanting = []
    for name in taken:
        place = shelves[name].next()
        if place is not None and budgets[name] > used[name]:
            size = int(shelves[name].units[place])
            wanting.append(((used[name] - budgets[name]) / size, name, place, size))
    for _, name, place, size in sorted(wanting):
        if size <= rest:
            rest -= size
            shelves[name].used[place] += 1
            taken[name][place] += 1
