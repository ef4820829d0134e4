"""Numbers that cannot be added up are unscored, and never stop a figure."""

from __future__ import annotations

import math
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from adp.eval.metrics import (
    evidence_figure,
    is_number,
    mean_figures,
    paired_difference,
    ratio_figure,
)
from tests.eval.metrics.rows import scored

ODD = st.one_of(
    st.sampled_from([math.nan, math.inf, -math.inf, 1e308, -1e308, 1e154, 1e100, 0.0, 1.0]),
    st.floats(),
)


def ends(figure):
    return [item for item in (figure.value, figure.low, figure.high) if item is not None]


@given(st.lists(st.tuples(ODD, ODD), min_size=2, max_size=8))
def test_every_figure_of_odd_numbers_is_finite(pairs):
    first = [scored(result, task=str(place)) for place, (result, _) in enumerate(pairs)]
    second = [scored(other, task=str(place)) for place, (_, other) in enumerate(pairs)]
    (mean,) = mean_figures(first, ["success"])
    known = [result for result, _ in pairs if math.isfinite(result) and abs(result) <= 1e100]
    assert (mean.count, mean.unscored) == (len(known), len(pairs) - len(known))
    assert (mean.value is None) == (not known)
    difference = paired_difference(first, second, "success").figure
    assert all(map(math.isfinite, ends(mean) + ends(difference)))


@given(st.lists(st.tuples(ODD, ODD), min_size=1, max_size=6))
def test_ratios_of_odd_numbers_are_finite(pairs):
    rows = []
    for place, values in enumerate(pairs):
        for metric, value in zip(("top", "bottom"), values, strict=True):
            row = scored(value, metric=metric, task=str(place))
            rows.append(replace(row, score=replace(row.score, evidence={"n": value, "of": 2})))
    for figure in (
        ratio_figure(rows, "top", "bottom", "r", amount=True),
        evidence_figure(rows, "top", ("n", "of"), "e"),
    ):
        assert all(map(math.isfinite, ends(figure)))


def test_what_is_a_number():
    assert [is_number(item) for item in (None, math.nan, 1e101, -1e101, 1e100, 0)] == [
        *(False, False, False, False), True, True,
    ]  # fmt: skip
    (figure,) = mean_figures([scored(1e200)], ["success"])
    assert "no usual one" in figure.reason
