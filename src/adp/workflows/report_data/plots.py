"""The plots of a report, as SVG without scripts, links or fonts to load.

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

from adp.core.composition import Composition, Distribution, Rate
from adp.workflows.report_data.words import cut_middle, name, percent, short_number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.ticker import MaxNLocator

INK, MUTED, GRID, MAIN, WARN = "#20262e", "#667080", "#dfe3e8", "#3b6fd4", "#d0593b"
DARK = {INK: "#e8ebf0", MUTED: "#9aa5b4", GRID: "#323a45", MAIN: "#7aa5ff", WARN: "#ff9070"}
"""Colour on a light page -> colour on a dark one."""

WIDTH, POINTS = 420, 72
"""Width of a plot in points, and points an inch."""

BARS, TOOLS, LABEL, FEWEST = 20, 20, 26, 5
"""Bars of a plot, tools of a plot, characters of a label; room in a histogram, in bars."""


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
class _Bar:
    label: str
    value: int
    part: int = 0
    remark: str = ""


def draw(found: Composition) -> dict[str, Plot]:
    """Draw all plots that a report of these numbers has.

    Args:
        found: the numbers.

    Returns:
        Name of the plot -> the plot. Those without numbers are left out.
    """
    plots: dict[str, Plot | None] = {
        "datasets": _datasets(found),
        "parts": _parts(found.parts),
        "tools": _tools(found),
        "models": _models(found),
        "success by data set": _rates("data set", [one.success for one in found.datasets]),
        "success by model": _rates("model", found.by_model),
        "success by length": _rates("number of steps", found.by_length, ordered=True),
    }
    for one in found.lengths:
        plots[f"length {one.name}"] = _histogram(one)
    return {key: plot for key, plot in plots.items() if plot is not None}


def _datasets(found: Composition) -> Plot | None:
    bars = [
        _Bar(_label(one.name), one.trajectories, remark=percent(one.share))
        for one in found.datasets
    ]
    return _bars("Trajectories by data set", bars, "trajectories")


def _models(found: Composition) -> Plot | None:
    named = [count for count in found.models.rows if count.name is not None]
    bars = [
        _Bar(_label(count.name), count.count, remark=percent(count.count, found.models.total))
        for count in found.models.rows
    ]
    return _bars("Trajectories by model", bars, "trajectories") if named else None


def _tools(found: Composition) -> Plot | None:
    bars = [
        _Bar(
            _label(tool.name),
            tool.calls,
            tool.errors,
            f"{percent(tool.errors, tool.known)} errors" if tool.known else "",
        )
        for tool in found.tools.rows[:TOOLS]
    ]
    return _bars("Calls by tool; the dark part are errors", bars, "calls", part="errors")


def _bars(title: str, bars: Sequence[_Bar], unit: str, part: str = "") -> Plot | None:
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
            axes.text(bar.value, place, words, va="center", color=MUTED, **_font(9))
        _lying(axes, [bar.label for bar in shown])
        axes.set_xlim(0, max(bar.value for bar in shown) * 1.38)
        axes.set_xlabel(unit, color=MUTED, **_font(10))
        _short_axis(axes.xaxis, whole=True)

    said = "; ".join(
        f"{bar.label} {bar.value:,}" + (f" ({bar.part:,} {part})" if bar.part else "")
        for bar in shown[:5]
    )
    return _plot(f"{title}: {said}", paint, height=58 + 19 * len(shown))


def _histogram(found: Distribution) -> Plot | None:
    """Bars that stand."""
    if not found.n:
        return None
    singles = all(one.low == one.high for one in found.bins)

    def paint(axes: Axes) -> None:
        places = range(len(found.bins))
        counts = [one.count for one in found.bins]
        axes.bar(places, counts, width=0.86, color=MAIN, align="center" if singles else "edge")
        if singles:
            ticks = [(float(place), one.low) for place, one in enumerate(found.bins)]
        else:
            ends = [one.low for one in found.bins] + [found.bins[-1].high + 1]
            ticks = [(place - 0.07, end) for place, end in enumerate(ends)]
        step = -(-len(ticks) // 13)
        places_shown, labels = zip(*ticks[::step], strict=True)
        axes.set_xticks(places_shown, [short_number(value) for value in labels], **_font(10))
        axes.grid(axis="y", color=GRID, linewidth=0.8)
        axes.set_xlabel(f"{found.name} of a trajectory", color=MUTED, **_font(10))
        axes.set_ylabel("trajectories", color=MUTED, **_font(10))
        empty = max(0, FEWEST - len(found.bins)) / 2
        axes.set_xlim(-0.6 - empty, len(found.bins) - (0.4 if singles else 0) + empty)
        axes.set_ylim(0, _whole_ticks().tick_values(0, max(counts))[-1])
        _short_axis(axes.yaxis, whole=True)

    alt = (
        f"Histogram of {found.name} of a trajectory: median {found.p50:,}, "
        f"90 % up to {found.p90:,}, at most {found.max:,}"
    )
    return _plot(alt, paint, height=220)


def _parts(found: Sequence[Distribution]) -> Plot | None:
    """From 10 % to 90 % as a line, the median as a dot, the maximum as a tick."""
    shown = [one for one in found if one.n]
    if not shown:
        return None

    def paint(axes: Axes) -> None:
        for place, one in enumerate(shown):
            low, high, most = one.p10 or 0, one.p90 or 0, one.max or 0
            axes.plot([low, high], [place, place], color=MAIN, linewidth=6, alpha=0.45,
                      solid_capstyle="round")  # fmt: skip
            axes.plot([one.p50 or 0], [place], "o", color=MAIN, markersize=8)
            axes.plot([most], [place], "|", color=WARN, markersize=12, markeredgewidth=2)
        _lying(axes, [one.name for one in shown])
        axes.set_xscale("symlog", linthresh=10)
        axes.set_xlim(left=-0.5)
        axes.set_ylim(len(shown) - 0.4, -0.6)
        axes.set_xlabel("characters: 10 % to 90 %, median, longest", color=MUTED, **_font(10))
        axes.minorticks_off()
        _short_axis(axes.xaxis)

    said = "; ".join(f"{one.name} median {one.p50:,}, longest {one.max:,}" for one in shown)
    return _plot(f"Characters of steps, calls and results: {said}", paint, 70 + 24 * len(shown))


def _rates(what: str, rates: Sequence[Rate], *, ordered: bool = False) -> Plot | None:
    """A dot for each rate, with its interval as a line."""
    shown = [one for one in rates if one.known][: None if ordered else BARS]
    if not shown:
        return None

    def paint(axes: Axes) -> None:
        for place, one in enumerate(shown):
            low, high = 100 * (one.low or 0), 100 * (one.high or 0)
            axes.plot([low, high], [place, place], color=MAIN, linewidth=2.4, alpha=0.5)
            axes.plot([100 * (one.rate or 0)], [place], "o", color=MAIN, markersize=7)
            axes.text(107, place, f"n = {short_number(one.known)}", va="center", color=MUTED,
                      **_font(9))  # fmt: skip
        _lying(axes, [_label(one.name) for one in shown])
        axes.set_xlim(-4, 128)
        axes.set_xticks([0, 25, 50, 75, 100], ["0 %", "25 %", "50 %", "75 %", "100 %"], **_font(10))
        words = f"success by {what}, with 95 % interval"
        axes.set_xlabel(words, color=MUTED, **_font(10))

    said = "; ".join(
        f"{_label(one.name)} {percent(one.rate)} of {one.known:,}" for one in shown[:5]
    )
    return _plot(f"Success by {what}: {said}", paint, height=58 + 20 * len(shown))


def _label(text: str | None) -> str:
    return cut_middle(name(text), LABEL)


def _lying(axes: Axes, labels: Sequence[str]) -> None:
    axes.set_yticks(range(len(labels)), [_drawable(label) for label in labels], **_font(10))
    axes.set_ylim(len(labels) - 0.4, -0.6)
    axes.grid(axis="x", color=GRID, linewidth=0.8)


def _short_axis(axis: Any, *, whole: bool = False) -> None:
    if whole:
        axis.set_major_locator(_whole_ticks())
    axis.set_major_formatter(lambda value, _: short_number(round(value, 6)))
    for label in axis.get_ticklabels():
        label.set(**_font(10))


def _whole_ticks() -> MaxNLocator:
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(nbins=6, integer=True)


def _font(size: float) -> dict[str, Any]:
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


def _drawable(text: str) -> str:
    """A text with a box for each character that the font does not have."""
    glyphs = _glyphs()
    return "".join(sign if ord(sign) in glyphs else "▯" for sign in text)


def _plot(alt: str, paint: Callable[[Axes], None], height: int) -> Plot:
    """Draw, and write the SVG in both sets of colours."""
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
