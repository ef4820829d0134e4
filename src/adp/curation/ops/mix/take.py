"""Which trajectories of a group go into the mixture, and how often."""

from __future__ import annotations

from typing import Any

import numpy as np

Numbers = np.ndarray[Any, np.dtype[np.int64]]


class Shelf:
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
