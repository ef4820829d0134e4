"""The plots of a report about data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from adp.stores.composition import Composition, Distribution, Rate
from adp.workflows.report_data.drawing import (
    BARS,
    GRID,
    MAIN,
    MUTED,
    WARN,
    Bar,
    Plot,
    bar_plot,
    draw_plot,
    font,
    lying,
    short_axis,
    short_label,
    whole_ticks,
)
from adp.workflows.report_data.words import percent, short_number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TOOLS, FEWEST = 20, 5
"""Tools of a plot; room in a histogram, in bars."""


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
        Bar(short_label(one.name), one.trajectories, remark=percent(one.share))
        for one in found.datasets
    ]
    return bar_plot("Trajectories by data set", bars, "trajectories")


def _models(found: Composition) -> Plot | None:
    named = [count for count in found.models.rows if count.name is not None]
    bars = [
        Bar(short_label(count.name), count.count, remark=percent(count.count, found.models.total))
        for count in found.models.rows
    ]
    return bar_plot("Trajectories by model", bars, "trajectories") if named else None


def _tools(found: Composition) -> Plot | None:
    bars = [
        Bar(
            short_label(tool.name),
            tool.calls,
            tool.errors,
            f"{percent(tool.errors, tool.known)} errors" if tool.known else "",
        )
        for tool in found.tools.rows[:TOOLS]
    ]
    return bar_plot("Calls by tool; the dark part are errors", bars, "calls", part="errors")


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
        axes.set_xticks(places_shown, [short_number(value) for value in labels], **font(10))
        axes.grid(axis="y", color=GRID, linewidth=0.8)
        axes.set_xlabel(f"{found.name} of a trajectory", color=MUTED, **font(10))
        axes.set_ylabel("trajectories", color=MUTED, **font(10))
        empty = max(0, FEWEST - len(found.bins)) / 2
        axes.set_xlim(-0.6 - empty, len(found.bins) - (0.4 if singles else 0) + empty)
        axes.set_ylim(0, whole_ticks().tick_values(0, max(counts))[-1])
        short_axis(axes.yaxis, whole=True)

    alt = (
        f"Histogram of {found.name} of a trajectory: median {found.p50:,}, "
        f"90 % up to {found.p90:,}, at most {found.max:,}"
    )
    return draw_plot(alt, paint, height=220)


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
        lying(axes, [one.name for one in shown])
        axes.set_xscale("symlog", linthresh=10)
        axes.set_xlim(left=-0.5)
        axes.set_ylim(len(shown) - 0.4, -0.6)
        axes.set_xlabel("characters: 10 % to 90 %, median, longest", color=MUTED, **font(10))
        axes.minorticks_off()
        short_axis(axes.xaxis)

    said = "; ".join(f"{one.name} median {one.p50:,}, longest {one.max:,}" for one in shown)
    return draw_plot(f"Characters of steps, calls and results: {said}", paint, 70 + 24 * len(shown))


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
                      **font(9))  # fmt: skip
        lying(axes, [short_label(one.name) for one in shown])
        axes.set_xlim(-4, 128)
        axes.set_xticks([0, 25, 50, 75, 100], ["0 %", "25 %", "50 %", "75 %", "100 %"], **font(10))
        words = f"success by {what}, with 95 % interval"
        axes.set_xlabel(words, color=MUTED, **font(10))

    said = "; ".join(
        f"{short_label(one.name)} {percent(one.rate)} of {one.known:,}" for one in shown[:5]
    )
    return draw_plot(f"Success by {what}: {said}", paint, height=58 + 20 * len(shown))
