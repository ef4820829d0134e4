"""Taking from a group, against one trajectory at a time."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from adp.curation.ops.mix.take import Shelf


class Slow:
    def __init__(self, units, epochs):
        self.units, self.left = units, [epochs] * len(units)

    def take(self, budget):
        taken = [0] * len(self.units)
        rest = budget
        while True:
            fits = [p for p, unit in enumerate(self.units) if unit <= budget and self.left[p]]
            if not fits:
                return taken
            place = max(fits, key=lambda p: (self.left[p], -p))
            if self.units[place] > rest:
                return taken
            taken[place] += 1
            self.left[place] -= 1
            rest -= self.units[place]


@given(
    st.lists(st.integers(1, 9), max_size=8),
    st.integers(1, 4),
    st.lists(st.integers(0, 60), max_size=4),
)
def test_takes_like_one_at_a_time(units, epochs, budgets):
    fast, slow = Shelf(np.array(units, dtype=np.int64), epochs), Slow(units, epochs)
    for budget in budgets:
        assert fast.take(budget).tolist() == slow.take(budget)
    assert fast.left == sum(unit * left for unit, left in zip(units, slow.left, strict=True))
