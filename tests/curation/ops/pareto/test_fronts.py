"""Fronts and crowding distances, against the quadratic definition."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adp.curation.ops.pareto.fronts import choose, crowding, fronts

few = st.sampled_from([0.0, -0.0, 0.25, 1.0, 2.0, -1.5])
many = st.floats(-1e6, 1e6)


def points(dimensions, most=30):
    row = st.tuples(*[few] * dimensions) | st.tuples(*[many] * dimensions)
    return st.lists(row, min_size=1, max_size=most)


def dominates(p, q):
    return all(a >= b for a, b in zip(p, q, strict=True)) and any(
        a > b for a, b in zip(p, q, strict=True)
    )


def slow_fronts(values):
    """Peel: a front is what no other point that is left dominates."""
    left = list(range(len(values)))
    results = []
    while left:
        front = [p for p in left if not any(dominates(values[q], values[p]) for q in left)]
        results.append(front)
        left = [p for p in left if p not in front]
    return results


def slow_choose(values, count):
    """Front by front, with lists that are sorted in place, as the sampling is written down."""
    chosen = []
    for front in slow_fronts(values):
        room = count - len(chosen)
        if len(front) <= room:
            chosen += front
            continue
        distance = dict.fromkeys(front, 0.0)
        for axis in range(len(values[0])):
            front.sort(key=lambda p, axis=axis: values[p][axis])
            scale = values[front[-1]][axis] - values[front[0]][axis]
            if scale == 0:
                continue
            distance[front[0]] = distance[front[-1]] = math.inf
            for before, here, after in zip(front, front[1:], front[2:], strict=False):
                distance[here] += (values[after][axis] - values[before][axis]) / scale
        front.sort(key=lambda p: distance[p], reverse=True)
        return chosen + front[:room], {p: distance[p] for p in front} if room else {}
    return chosen, {}


def check(values, count):
    chosen, numbers, distances = choose(np.array(values), count)
    for number, front in enumerate(slow_fronts(values)):
        assert np.flatnonzero(numbers == number).tolist() == front
    wanted, cut = slow_choose(values, count)
    assert chosen.tolist() == sorted(wanted)
    assert {p: d for p, d in enumerate(distances.tolist()) if not math.isnan(d)} == cut


@given(points(2), st.integers(1, 32))
def test_two_objectives(values, count):
    check(values, count)


@given(st.lists(st.tuples(few, few), min_size=1, max_size=60), st.integers(1, 60))
def test_two_objectives_with_many_ties(values, count):
    check(values, count)


@given(st.integers(1, 4).flatmap(lambda d: points(d, 20)), st.integers(1, 22))
def test_any_number_of_objectives(values, count):
    check(values, count)


@given(st.lists(st.tuples(few, few, few), min_size=1, max_size=40), st.integers(1, 40))
def test_three_objectives_with_many_ties(values, count):
    check(values, count)


@pytest.mark.parametrize("kind", ["even", "tied", "one front", "chain", "equal"])
@pytest.mark.parametrize("dimensions", [2, 3])
def test_larger_inputs(kind, dimensions):
    draw = np.random.default_rng(5)
    values = draw.random((90, dimensions))
    if kind == "tied":
        values = np.round(values * 6)
    elif kind == "one front":
        values[:, 1] = -values[:, 0]
    elif kind == "chain":
        values[:] = values[:, :1]
    elif kind == "equal":
        values[:] = 0.5
    for count in (1, 40, 89, 90, 400):
        check(values.tolist(), count)


def test_equal_points_stay_in_their_order():
    order, distances = crowding(np.array([[1.0, 0.0]] * 4))
    assert order.tolist() == [0, 1, 2, 3]
    assert distances.tolist() == [0.0] * 4


def test_of_equal_distances_the_smaller_last_objective_comes_first():
    values = np.array([[3.0, 0.0], [2.0, 1.0], [1.0, 2.0], [0.0, 3.0]])
    order, distances = crowding(values)
    assert distances.tolist() == pytest.approx([math.inf, 4 / 3, 4 / 3, math.inf])
    assert order.tolist() == [0, 3, 1, 2]
    assert crowding(values[::-1])[0].tolist() == [3, 0, 2, 1]


def test_no_point_is_no_front():
    assert fronts(np.zeros((0, 2))).tolist() == []
    assert choose(np.zeros((0, 2)), 5)[0].tolist() == []
