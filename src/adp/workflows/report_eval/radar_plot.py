"""The profile of runs as a picture: an axis for each figure, a polygon for each run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from adp.stores.plotting import GRID, INK, MUTED, font
from adp.workflows.report_eval.cells import plain_number
from adp.workflows.report_eval.model import EvaluatedRun, RadarAxis
from adp.workflows.report_page.drawing import (
    SERIES,
    Plot,
    draw_plot,
    drawable,
    run_legend,
)
from adp.workflows.report_page.label_lines import label_lines
from adp.workflows.report_page.words import name, percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_RINGS = (0.25, 0.5, 0.75, 1.0)
_HEIGHT = 330
_LABEL, _LABEL_LINES, _LINE = 22, 3, 12
"""Characters of a line of a label, lines of it, and the height of one in points."""


def radar_plot(
    axes_of: Sequence[RadarAxis], runs: Sequence[EvaluatedRun], title: str = "Profile"
) -> Plot | None:
    """Draw a profile; None without axes.

    Args:
        axes_of: its axes, the first on top and the others clockwise.
        runs: the runs, in the order of the values.
        title: what to call it.
    """
    if not axes_of:
        return None
    angles = [math.pi / 2 - 2 * math.pi * place / len(axes_of) for place in range(len(axes_of))]

    def paint(axes: Axes) -> None:
        _web(axes, axes_of, angles)
        for number in range(len(runs)):
            _polygon(axes, [axis.places[number] for axis in axes_of], angles, number)
        if len(runs) > 1:
            run_legend(axes, [(run.name, number) for number, run in enumerate(runs)])

    text = "; ".join(
        f"{axis.label} " + ", ".join(_value(axis, value) for value in axis.values)
        for axis in axes_of
    )
    more = 17 * len(runs) if len(runs) > 1 else 0
    return draw_plot(f"{title}: {text}", paint, height=_HEIGHT + more)


def _value(axis: RadarAxis, value: float | None) -> str:
    return percent(value) if axis.share else plain_number(value)


def _point(angle: float, radius: float) -> tuple[float, float]:
    return radius * math.cos(angle), radius * math.sin(angle)


def _web(axes: Axes, axes_of: Sequence[RadarAxis], angles: Sequence[float]) -> None:
    """Rings, spokes and labels."""
    for ring in _RINGS:
        corners = [_point(angle, ring) for angle in [*angles, angles[0]]]
        axes.plot(*zip(*corners, strict=True), color=GRID, linewidth=1)
    for axis, angle in zip(axes_of, angles, strict=True):
        axes.plot(*zip((0, 0), _point(angle, 1), strict=True), color=GRID, linewidth=1)
        across, up = _point(angle, 1.08)
        side = "center" if abs(across) < 0.05 else ("left" if across > 0 else "right")
        level = "bottom" if up > 0.95 else ("top" if up < -0.95 else "center")
        lines = label_lines(drawable(name(axis.label)), _LABEL, _LABEL_LINES)
        axes.text(across, up, "\n".join(lines), ha=side, va=level, color=INK, linespacing=1.1,
                  **font(10))  # fmt: skip
        if known := [value for value in axis.values if value is not None]:
            best = min(known) if axis.less else max(known)
            more = _LINE * (len(lines) - 1)
            down = {"bottom": 12 + more, "top": -11 - more, "center": -11 - more / 2}[level]
            axes.annotate(f"best {_value(axis, best)}", (across, up), xytext=(0, down),
                          textcoords="offset points", ha=side, va=level, color=MUTED,
                          **font(8))  # fmt: skip
    axes.set_aspect("equal")
    axes.set_xlim(-1.75, 1.75)
    axes.set_ylim(min(map(math.sin, angles)) * 1.08 - 0.25, 1.35)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.spines["bottom"].set_visible(False)


def _polygon(
    axes: Axes, places: Sequence[float | None], angles: Sequence[float], number: int
) -> None:
    """The polygon of a run; open where a figure of it is missing."""
    colour = SERIES[number % len(SERIES)]
    points = [
        None if place is None else _point(angle, place)
        for place, angle in zip(places, angles, strict=True)
    ]
    for first, second in zip(points, [*points[1:], points[0]], strict=True):
        if first is not None and second is not None:
            axes.plot(*zip(first, second, strict=True), color=colour, linewidth=2)
    known = [point for point in points if point is not None]
    if len(known) == len(points):
        axes.fill(*zip(*known, strict=True), color=colour, alpha=0.12, linewidth=0)
    if known:
        axes.plot(*zip(*known, strict=True), "o", color=colour, markersize=5)
