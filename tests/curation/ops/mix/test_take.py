"""Taking from a group, against one trajectory at a time."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from adp.curation.ops.mix.take import GroupQueue, fill


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
    fast, slow = GroupQueue(np.array(units, dtype=np.int64), epochs), Slow(units, epochs)
    for budget in budgets:
        assert fast.take(budget).tolist() == slow.take(budget)
    assert fast.left == sum(unit * left for unit, left in zip(units, slow.left, strict=True))


group = st.tuples(st.lists(st.integers(1, 9), max_size=5), st.integers(0, 30), st.integers(1, 3))


@given(st.lists(group, max_size=5))
def test_what_is_left_goes_to_the_largest_remainders(described):
    shelves = {
        f"g{n}": GroupQueue(np.array(units, dtype=np.int64), epochs)
        for n, (units, _, epochs) in enumerate(described)
    }
    budgets = {f"g{n}": budget for n, (_, budget, _) in enumerate(described)}
    taken = {name: queue.take(budgets[name]) for name, queue in shelves.items()}
    before = {name: counts.copy() for name, counts in taken.items()}
    left = {n: budgets[n] - int((shelves[n].units * before[n]).sum()) for n in shelves}
    rest = sum(left.values())
    sizes = {}
    for name, shelve in shelves.items():
        open_ = [p for p in range(len(shelve.units)) if shelve.used[p] < shelve.epochs]
        if open_ and left[name]:
            place = min(open_, key=lambda p, used=shelve.used: (used[p], p))
            sizes[name] = (int(shelve.units[place]), place)
    fill(shelves, budgets, taken)
    for name in sorted(sizes, key=lambda name: (-left[name] / sizes[name][0], name)):
        size, place = sizes[name]
        if size <= rest:
            rest -= size
            before[name][place] += 1
    assert {name: counts.tolist() for name, counts in taken.items()} == {
        name: counts.tolist() for name, counts in before.items()
    }
    assert all((queue.used <= queue.epochs).all() for queue in shelves.values())
