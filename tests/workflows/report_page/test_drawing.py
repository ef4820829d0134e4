"""Plots have room for their lines."""

from __future__ import annotations

import pytest

from adp.workflows.report_page.drawing import Dot, dot_plot


@pytest.mark.parametrize("names", [[], ["a"], ["a", "b"]])
@pytest.mark.parametrize("shares", [True, False])
def test_each_line_of_dots_has_room_for_its_name(names: list[str], shares: bool) -> None:
    def height(lines: int) -> int:
        dots = [
            Dot(f"method {line}", series, 0.1 * line, None, None)
            for line in range(lines)
            for series in range(max(1, len(names)))
        ]
        plot = dot_plot("alt", dots, "below", names, shares=shares)
        assert plot is not None
        return plot.height

    assert (height(9) - height(1)) / 8 >= 18  # names are 13 points high
