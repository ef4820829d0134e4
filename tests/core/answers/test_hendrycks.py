"""MATH's own equality: what its authors say of it, and laws."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adp.core.answers.hendrycks import is_equiv, strip_or_same, strip_string

PIECES = st.sampled_from(
    ["\\frac", "\\dfrac", "\\sqrt", "\\text{ ", "\\left(", "\\right)", "\\%", "\\$", "^\\circ"]
) | st.sampled_from(
    ["{", "}", "(", ")", "0.5", ".5", "1", "2", "-", "/", "=", "x", " ", "\n", "\\!", "\\\\"]
)
FORMULAS = st.lists(PIECES, max_size=9).map("".join)


@pytest.mark.parametrize(
    ("text", "other", "same"),
    [
        ("\\dfrac12", "\\frac{1}{2}", True),
        ("\\tfrac1{72}", "\\frac{1}{72}", True),
        ("0.5", "1/2", True),
        (".5", "0.5", True),
        ("-3/4", "\\frac{-3}{4}", True),
        ("x=5", "5", True),
        ("xyz=5", "5", False),
        ("\\sqrt3", "\\sqrt{3}", True),
        ("5\\text{ cm}", "5", True),
        ("5\\text{cm}", "5", False),
        ("90^\\circ", "90", True),
        ("90^{\\circ}", "90", True),
        ("\\left( 1, 2 \\right)", "(1,2)", True),
        ("10\\%", "10", True),
        ("\\$10", "10", True),
        ("1,\\!000", "1,000", True),
        # What it does not know, and `math_equal` does.
        ("1,000", "1000", False),
        ("0.25", "\\frac{1}{4}", False),
        ("1.0", "1", False),
        ("03/4", "3/4", False),
        # Formulas that cannot be cleaned are compared as they are.
        ("\\sqrt", "\\sqrt", True),
        ("\\frac", "", False),
        ("1\\text{ a}\\text{ b}", "1\\text{ a}\\text{ b}", True),
    ],
)
def test_equality(text, other, same):
    assert is_equiv(text, other) is same
    assert is_equiv(other, text) is same


@given(FORMULAS, FORMULAS, FORMULAS)
def test_it_is_an_equivalence_of_what_can_be_cleaned(one_text, other, third):
    assert is_equiv(one_text, one_text)
    assert is_equiv(one_text, other) == is_equiv(other, one_text)
    try:
        cleaned = [strip_string(text) for text in (one_text, other, third)]
    except ValueError:
        return
    assert is_equiv(one_text, other) == (cleaned[0] == cleaned[1])
    if is_equiv(one_text, other) and is_equiv(other, third):
        assert is_equiv(one_text, third)


@given(FORMULAS)
def test_a_clean_formula_has_no_spaces_and_no_line_ends(text):
    cleaned = strip_or_same(text)
    assert cleaned == text or not set(cleaned) & {" ", "\n"}


@given(st.integers(-999, 999), st.integers(1, 999))
def test_a_ratio_is_a_fraction(top, bottom):
    assert strip_string(f"{top}/{bottom}") == f"\\frac{{{top}}}{{{bottom}}}"
    assert is_equiv(f"{top}/{bottom}", f"\\dfrac{{{top}}}{{{bottom}}}")
