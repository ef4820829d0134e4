"""Long names as lines: nothing is lost while they fit, and they are cut when they do not."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from adp.workflows.report_page.label_lines import label_lines

NAMES = st.text("abcd_.: =é…", min_size=1, max_size=90)


def squeezed(text: str) -> str:
    return "".join(text.split())


@given(NAMES, st.integers(6, 30), st.integers(1, 4))
def test_lines_hold_the_name_or_its_ends(text, width, most):
    lines = label_lines(text, width, most)
    assert 1 <= len(lines) <= most
    assert all(len(line) <= width for line in lines)
    if len(text) <= width:
        assert len(lines) == 1
    shown = squeezed("".join(lines))
    if shown != squeezed(text):
        assert "…" in shown
        assert len(text) > width


def test_they_are_broken_behind_signs_into_about_the_same_length():
    assert label_lines("few calls", 22, 3) == ["few calls"]
    assert label_lines("conciseness.judged_concise", 22, 3) == ["conciseness.", "judged_concise"]
    assert label_lines("a" * 30, 22, 3) == ["a" * 22, "a" * 8]
