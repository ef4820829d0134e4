"""Largest remainder, and the bounds, against the slow way by definition."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from adp.curation.allocate import allocate, exact, largest_remainder

weights = st.sampled_from([0, 1, 1, 2, 3, 0.35, 0.1, 1e-6, 1e6]) | st.floats(0, 10)
parts = st.lists(st.tuples(weights, st.integers(0, 40), st.integers(0, 12)), min_size=1, max_size=7)


def slow_quotas(total, rows):
    """Quotas within bounds: freeze what breaks a bound, and divide the rest again."""
    live = [place for place, (weight, most, _) in enumerate(rows) if weight > 0 and most > 0]
    low = {place: min(rows[place][2], rows[place][1]) for place in live}
    high = {place: rows[place][1] for place in live}
    rest = Fraction(min(total, sum(high.values())))
    fromkeys = dict.fromkeys(range(len(rows)), Fraction())
    while live:
        whole = sum(exact(rows[place][0]) for place in live)
        quota = {place: rest * exact(rows[place][0]) / whole for place in live}
        over = sum(max(quota[place] - high[place], 0) for place in live)
        under = sum(max(low[place] - quota[place], 0) for place in live)
        frozen = {
            place: high[place] if quota[place] >= high[place] else low[place]
            for place in live
            if (over >= under and quota[place] > high[place])
            or (under >= over and quota[place] < low[place])
        } or quota
        for place, amount in frozen.items():
            fromkeys[place] = Fraction(amount)
            rest -= amount
            live.remove(place)
    return [fromkeys[place] for place in range(len(rows))]


@given(st.integers(0, 200), parts)
@example(20, [(1, 2, 0), (1, 40, 0), (1, 40, 0)])
@example(20, [(1e6, 40, 0), (1e-6, 40, 3), (1, 5, 0)])
def test_parts_follow_the_quotas(total, rows):
    most = [row[1] for row in rows]
    least = [row[2] for row in rows]
    low = sum(min(a, b) for w, b, a in rows if w > 0)
    given_weights = [exact(row[0]) for row in rows]
    if low > total:
        with pytest.raises(ValueError, match="least parts"):
            allocate(total, given_weights, most, least)
        return
    result = allocate(total, given_weights, most, least)
    quotas = slow_quotas(total, rows)
    assert sum(result) == min(total, sum(b for w, b, _ in rows if w > 0))
    assert result == largest_remainder(quotas)
    for part, quota, bound in zip(result, quotas, most, strict=True):
        assert abs(part - quota) < 1
        assert part <= bound


@given(st.lists(st.fractions(0, 30), min_size=1, max_size=8))
def test_largest_remainders_are_rounded_up(quotas):
    quotas.append(-sum(quotas, Fraction()) % 1)
    result = largest_remainder(quotas)
    assert sum(result) == sum(quotas)
    rest = [(quota % 1, -place) for place, quota in enumerate(quotas)]
    up = [rest[place] for place, part in enumerate(result) if part > quotas[place]]
    kept = [rest[place] for place, part in enumerate(result) if part < quotas[place]]
    assert not up or not kept or min(up) > max(kept)


@given(st.integers(0, 300), parts)
def test_stop_never_cuts_a_share(total, rows):
    given_weights = [exact(row[0]) for row in rows]
    most = [row[1] for row in rows]
    result = allocate(total, given_weights, most, short="stop")
    whole = sum(given_weights, Fraction())
    reached = sum(result)
    assert reached <= total
    for part, weight, bound in zip(result, given_weights, most, strict=True):
        assert part <= bound
        assert not whole or abs(part - reached * weight / whole) < 1
    if whole and reached < total:  # one more would not fit
        assert any((reached + 1) * w / whole > b for w, b in zip(given_weights, most, strict=True))


def test_shares_are_what_is_written():
    shares = [exact(share) for share in (0.35, 0.30, 0.20, 0.15)]
    assert allocate(20, shares, [100] * 4) == [7, 6, 4, 3]
    assert sum(shares) == 1


def test_equal_remainders_go_to_the_first():
    assert allocate(10, [Fraction(1)] * 4, [9] * 4) == [3, 3, 2, 2]
