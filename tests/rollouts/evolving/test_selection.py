"""Selection of the best, against a direct reference."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from adp.rollouts.evolving.selection import Standing, select_best

QUALITY = st.sampled_from([0.0, 0.25, 0.8, 0.81, 1.0])
MEMBERS = st.lists(st.tuples(QUALITY, st.integers(0, 4)), min_size=1, max_size=7)


def reference(members, used):
    """ET-Agent's rule, written by comparing each with each: no sorting."""

    def better(left, right):
        if members[left][0] != members[right][0]:
            return members[left][0] > members[right][0]
        if members[left][1] != members[right][1]:
            return members[left][1] < members[right][1]
        return left < right

    def best(among):
        return next(i for i in among if all(i == k or better(i, k) for k in among))

    free = [i for i in range(len(members)) if i not in used]
    return best(free) if free else best(range(len(members)))


@given(MEMBERS, st.sets(st.integers(0, 6)), st.booleans())
def test_it_is_the_best_that_was_not_used(members, used, first_is_used):
    standings = [Standing(*item) for item in members]
    chosen = select_best(standings, used, first_is_used=first_is_used)
    assert chosen == reference(members, used | {0} if first_is_used else used)


@given(MEMBERS)
def test_each_is_taken_once_and_then_the_best_again(members):
    standings = [Standing(*item) for item in members]
    used: list[int] = []
    for _ in members:
        used.append(select_best(standings, used))
    assert sorted(used) == list(range(len(members)))
    assert select_best(standings, used) == used[0]


def test_the_switch_matters_only_where_a_buffer_begins_with_several():
    right, wrong = Standing(1.0, 2), Standing(0.0, 1)
    assert select_best([right], first_is_used=True) == select_best([right]) == 0
    assert select_best([right, wrong]) == 0
    assert select_best([right, wrong], first_is_used=True) == 1
