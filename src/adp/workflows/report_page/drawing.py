"""How plots look in a page: each in two sets of colours, for light and for dark ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from adp.core.extras import need
from adp.stores.plotting import (
    GRID,
    INK,
    MAIN,
    MUTED,
    WARN,
    font,
    font_file,
    remove_frame,
    svg,
)
from adp.workflows.report_page.words import cut_middle, name, percent, short_number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.ticker import MaxNLocator

GREEN, PURPLE, AMBER, TEAL = "#2c8a55", "#8457c2", "#a8790d", "#1d8496"
DARK = {
    INK: "#e8ebf0", MUTED: "#9aa5b4", GRID: "#323a45", MAIN: "#7aa5ff", WARN: "#ff9070",
    GREEN: "#5fd39a", PURPLE: "#c09bff", AMBER: "#f0c14b", TEAL: "#5fd0e6",
}  # fmt: skip
"""Colour on a light page -> colour on a dark one."""

SERIES = (MAIN, WARN, GREEN, PURPLE, AMBER, TEAL)
"""Colours of several series, in order."""

WIDTH = 420
"""Width of a plot in points."""

PERCENTS = ([0, 25, 50, 75, 100], ["0 %", "25 %", "50 %", "75 %", "100 %"])
"""Marks of an axis of shares, and what stands at them."""

BARS, LABEL = 20, 26
"""Bars of a plot, characters of a label."""

LINES = 30
"""Lines of a plot with dots."""


@dataclass(frozen=True)
class Plot:
    """A plot.

    Attributes:
        light: SVG for light pages.
        dark: SVG for dark pages.
        alt: the plot in words.
        height: its height in points; all are `WIDTH` wide.
    """

    light: bytes
    dark: bytes
    alt: str
    height: int


@dataclass(frozen=True)
class Bar:
    """A bar that lies: its label, how long it is, how much of it is another colour, a remark."""

    label: str
    value: int
    part: int = 0
    remark: str = ""


def bar_plot(title: str, bars: Sequence[Bar], unit: str, part: str = "") -> Plot | None:
    """Bars that lie, the first on top."""
    if not any(bar.value for bar in bars):
        return None
    shown = bars[:BARS]

    def paint(axes: Axes) -> None:
        places = range(len(shown))
        axes.barh(places, [bar.value for bar in shown], height=0.7, color=MAIN)
        if any(bar.part for bar in shown):
            axes.barh(places, [bar.part for bar in shown], height=0.7, color=WARN)
        for place, bar in enumerate(shown):
            words = f" {short_number(bar.value)}" + (f"  {bar.remark}" if bar.remark else "")
            axes.text(bar.value, place, words, va="center", color=MUTED, **font(9))
        lying(axes, [bar.label for bar in shown])
        axes.set_xlim(0, max(bar.value for bar in shown) * 1.38)
        axes.set_xlabel(unit, color=MUTED, **font(10))
        short_axis(axes.xaxis, integers=True)

    text = "; ".join(
        f"{bar.label} {bar.value:,}" + (f" ({bar.part:,} {part})" if bar.part else "")
        for bar in shown[:5]
    )
    return draw_plot(f"{title}: {text}", paint, height=58 + 19 * len(shown))


@dataclass(frozen=True)
class Dot:
    """A figure in a plot: its line, its run, and where it lies."""

    line: str
    series: int
    value: float
    low: float | None
    high: float | None


def dot_plot(
    alt: str, dots: Sequence[Dot], below: str, names: Sequence[str], *, shares: bool = True
) -> Plot | None:
    """A line for each figure, with a dot and an interval for each run.

    Args:
        alt: the plot in words.
        dots: the dots.
        below: what stands below the axis.
        names: the runs, for the legend; without them there is one run.
        shares: whether the axis is 0 to 100 %; else it is around 0, as differences are.
    """
    if not dots:
        return None
    lines = list(dict.fromkeys(dot.line for dot in dots))[:LINES]
    used = sorted({dot.series for dot in dots}) if names else []
    gap, scale = 0.62 / max(len(used), 1), 100 if shares else 1

    def paint(axes: Axes) -> None:
        if not shares:
            axes.axvline(0, color=MUTED, linewidth=1)
        for dot in dots:
            if dot.line not in lines:
                continue
            place: float = lines.index(dot.line)
            if used:
                place += (used.index(dot.series) - (len(used) - 1) / 2) * gap
            colour = SERIES[dot.series % len(SERIES)] if used else SERIES[0]
            if dot.low is not None and dot.high is not None:
                ends = [scale * dot.low, scale * dot.high]
                axes.plot(ends, [place, place], color=colour, linewidth=2.4, alpha=0.5)
            axes.plot([scale * dot.value], [place], "o", color=colour, markersize=6)
        lying(axes, lines)
        if shares:
            axes.set_xlim(-4, 104)
            axes.set_xticks(*PERCENTS, **font(10))
        else:
            small_ticks(axes.xaxis)
        axes.set_xlabel(below, color=MUTED, **font(10))
        run_legend(axes, [(names[item], item) for item in used])

    of_a_line = 20 if len(used) < 2 else 8 + 11 * len(used)
    return draw_plot(alt, paint, height=62 + of_a_line * len(lines) + 17 * len(used))


def tools_plot(tools: Iterable[tuple[str | None, int, int, int]]) -> Plot | None:
    """Calls by tool.

    Args:
        tools: name, calls, errors, and calls of which it is known whether they are errors.
    """
    bars = [
        Bar(short_label(tool), calls, wrong, f"{percent(wrong, known)} errors" if known else "")
        for tool, calls, wrong, known in tools
    ]
    return bar_plot("Calls by tool; the dark part are errors", bars, "calls", part="errors")


def short_label(text: str | None) -> str:
    """A name that fits beside a plot."""
    return cut_middle(name(text), LABEL)


def lying(axes: Axes, labels: Sequence[str]) -> None:
    """Write a label at each line of a plot, the first on top."""
    axes.set_yticks(range(len(labels)), [drawable(text) for text in labels], **font(10))
    axes.set_ylim(len(labels) - 0.4, -0.6)
    axes.grid(axis="x", color=GRID, linewidth=0.8)


def run_legend(axes: Axes, names: Sequence[tuple[str, int]]) -> None:
    """Name runs above a plot, one a line.

    Args:
        axes: the plot.
        names: each run with the number of its colour.
    """
    from matplotlib.lines import Line2D

    if not names:
        return
    marks = [Line2D([], [], color=SERIES[result % len(SERIES)], marker="o", linewidth=2)
             for _, result in names]  # fmt: skip
    labels = [drawable(short_label(text)) for text, _ in names]
    legend = axes.legend(marks, labels, loc="lower left", bbox_to_anchor=(0, 1), frameon=False,
                         borderaxespad=0, handlelength=1.4, labelspacing=0.25)  # fmt: skip
    for text in legend.get_texts():
        text.set(color=INK, **font(10))


def short_axis(axis: Any, *, integers: bool = False) -> None:
    """Write the numbers of an axis in short form."""
    if integers:
        axis.set_major_locator(whole_ticks())
    axis.set_major_formatter(lambda value, _: short_number(round(value, 6)))
    small_ticks(axis)


def small_ticks(axis: Any) -> None:
    """Write the numbers of an axis in the font of the plot."""
    for tick in axis.get_ticklabels():
        tick.set(**font(10))


def whole_ticks() -> MaxNLocator:
    """Marks of an axis at whole numbers."""
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(nbins=6, integer=True)


@cache
def _glyphs() -> frozenset[int]:
    from matplotlib.ft2font import FT2Font

    return frozenset(FT2Font(font_file()).get_charmap())


def drawable(text: str) -> str:
    """A text with a box for each character that the font does not have."""
    glyphs = _glyphs()
    return "".join(sign if ord(sign) in glyphs else "▯" for sign in text)


def draw_plot(alt: str, paint: Callable[[Axes], None], height: int) -> Plot:
    """Draw, and write the SVG in both sets of colours.

    Args:
        alt: the plot in words.
        paint: draws into axes without a frame.
        height: height in points.

    Raises:
        MissingExtraError: matplotlib is missing.
    """
    need("report")

    def paint_quietly(axes: Axes) -> None:
        remove_frame(axes)
        paint(axes)

    light = svg(paint_quietly, WIDTH, height, transparent=True)
    dark = light
    for colour, instead in DARK.items():
        dark = dark.replace(colour, instead)
    return Plot(light.encode(), dark.encode(), alt, height)
