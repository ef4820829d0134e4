"""Formulas that are compared by their values."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adp.core.answers.verified import verified_equal

pytest.importorskip("math_verify", reason="needs the extra math")

NUMBERS = st.builds(Fraction, st.integers(-99, 99), st.integers(1, 20))


@pytest.mark.parametrize(
    ("text", "other", "same"),
    [
        ("x+1", "1+x", True),
        ("\\sqrt{8}", "2\\sqrt2", True),
        ("0.25", "\\frac14", True),
        ("x=5", "5", True),
        ("(1,2)", "(2,1)", False),
        ("", "4", False),
        ("", "", True),
        ("4" * 2000, "4" * 2000, True),
        ("9^{9^{9^{9}}}", "1", False),
    ],
)
def test_values(text, other, same):
    assert verified_equal(text, other) is same


@settings(max_examples=30, deadline=None)
@given(NUMBERS, NUMBERS)
def test_fractions_are_equal_as_numbers(first, second):
    def written(value):
        return f"\\frac{{{value.numerator * 2}}}{{{value.denominator * 2}}}"

    assert verified_equal(written(first), written(second)) == (first == second)
