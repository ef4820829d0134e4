"""How plots are drawn: SVG without scripts, links or fonts to load.

Each comes in two sets of colours, for light and for dark pages. The same numbers give the same
bytes: the fonts are those that matplotlib brings, and its settings are its defaults.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from adp.core.extras import need
from adp.workflows.report_data.words import cut_middle, name, short_number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.ticker import MaxNLocator

INK, MUTED, GRID, MAIN, WARN = "#20262e", "#667080", "#dfe3e8", "#3b6fd4", "#d0593b"
GREEN, PURPLE, AMBER, TEAL = "#2c8a55", "#8457c2", "#a8790d", "#1d8496"
DARK = {
    INK: "#e8ebf0", MUTED: "#9aa5b4", GRID: "#323a45", MAIN: "#7aa5ff", WARN: "#ff9070",
    GREEN: "#5fd39a", PURPLE: "#c09bff", AMBER: "#f0c14b", TEAL: "#5fd0e6",
}  # fmt: skip
"""Colour on a light page -> colour on a dark one."""

SERIES = (MAIN, WARN, GREEN, PURPLE, AMBER, TEAL)
"""Colours of several series, in order."""

WIDTH, POINTS = 420, 72
"""Width of a plot in points, and points an inch."""

BARS, LABEL = 20, 26
"""Bars of a plot, characters of a label."""


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
        short_axis(axes.xaxis, whole=True)

    text = "; ".join(
        f"{bar.label} {bar.value:,}" + (f" ({bar.part:,} {part})" if bar.part else "")
        for bar in shown[:5]
    )
    return draw_plot(f"{title}: {text}", paint, height=58 + 19 * len(shown))


def short_label(text: str | None) -> str:
    """A name that fits beside a plot."""
    return cut_middle(name(text), LABEL)


def lying(axes: Axes, labels: Sequence[str]) -> None:
    """Write a label at each line of a plot, the first on top."""
    axes.set_yticks(range(len(labels)), [drawable(text) for text in labels], **font(10))
    axes.set_ylim(len(labels) - 0.4, -0.6)
    axes.grid(axis="x", color=GRID, linewidth=0.8)


def short_axis(axis: Any, *, whole: bool = False) -> None:
    """Write the numbers of an axis in short form."""
    if whole:
        axis.set_major_locator(whole_ticks())
    axis.set_major_formatter(lambda value, _: short_number(round(value, 6)))
    for tick in axis.get_ticklabels():
        tick.set(**font(10))


def whole_ticks() -> MaxNLocator:
    """Marks of an axis at whole numbers."""
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(nbins=6, integer=True)


def font(size: float) -> dict[str, Any]:
    """Settings of a text: the font that matplotlib brings, and no formulas in it."""
    from matplotlib.font_manager import FontProperties

    return {"fontproperties": FontProperties(fname=_font_file(), size=size), "parse_math": False}


@cache
def _font_file() -> str:
    import matplotlib

    return f"{matplotlib.get_data_path()}/fonts/ttf/DejaVuSans.ttf"


@cache
def _glyphs() -> frozenset[int]:
    from matplotlib.ft2font import FT2Font

    return frozenset(FT2Font(_font_file()).get_charmap())


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
    import matplotlib.style
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    fixed = {"svg.hashsalt": "adp", "svg.fonttype": "path", "axes.unicode_minus": False}
    with matplotlib.style.context(["default", fixed]):
        figure = Figure(figsize=(WIDTH / POINTS, height / POINTS), layout="constrained")
        FigureCanvasSVG(figure)
        axes = figure.add_subplot()
        _quiet(axes)
        paint(axes)
        data = io.BytesIO()
        figure.savefig(
            data, format="svg", transparent=True, metadata={"Date": None, "Creator": None}
        )
    # The comments say what the outlines of letters stand for: texts from the data.
    light = re.sub(r"\s*<!--.*?-->", "", data.getvalue().decode(), flags=re.DOTALL)
    dark = light
    for colour, instead in DARK.items():
        dark = dark.replace(colour, instead)
    return Plot(light.encode(), dark.encode(), alt, height)


def _quiet(axes: Axes) -> None:
    """Take away the frame and set the colours that `DARK` knows."""
    for side, spine in axes.spines.items():
        spine.set_visible(side == "bottom")
        spine.set_color(GRID)
    axes.tick_params(length=0, colors=INK)
    axes.set_axisbelow(True)
