"""The plots of a report about data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from adp.stores.composition import Composition, Distribution, Rate
from adp.stores.plotting import GRID, MAIN, MUTED, WARN, font
from adp.workflows.report_page.drawing import (
    BARS,
    PERCENTS,
    Bar,
    Plot,
    bar_plot,
    draw_plot,
    lying,
    short_axis,
    short_label,
    tools_plot,
    whole_ticks,
)
from adp.workflows.report_page.words import percent, short_number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TOOLS, FEWEST = 20, 5
"""Tools of a plot; room in a histogram, in bars."""


def draw(composition: Composition) -> dict[str, Plot]:
    """Draw all plots that a report of these numbers has.

    Args:
        composition: the numbers.

    Returns:
        Name of the plot -> the plot. Those without numbers are left out.
    """
    plots: dict[str, Plot | None] = {
        "datasets": _datasets(composition),
        "parts": _parts(composition.parts),
        "tools": _tools(composition),
        "models": _models(composition),
        "success by data set": _rates(
            "data set", [dataset.success for dataset in composition.datasets]
        ),
        "success by model": _rates("model", composition.by_model),
        "success by length": _rates("number of steps", composition.by_length, ordered=True),
    }
    for length in composition.lengths:
        plots[f"length {length.name}"] = _histogram(length)
    return {key: plot for key, plot in plots.items() if plot is not None}


def _datasets(composition: Composition) -> Plot | None:
    bars = [
        Bar(short_label(dataset.name), dataset.trajectories, remark=percent(dataset.share))
        for dataset in composition.datasets
    ]
    return bar_plot("Trajectories by data set", bars, "trajectories")


def _models(composition: Composition) -> Plot | None:
    models = composition.models
    bars = [
        Bar(short_label(count.name), count.count, remark=percent(count.count, models.total))
        for count in models.rows
    ]
    named = any(count.name is not None for count in models.rows)
    return bar_plot("Trajectories by model", bars, "trajectories") if named else None


def _tools(composition: Composition) -> Plot | None:
    tools = composition.tools.rows[:TOOLS]
    return tools_plot((tool.name, tool.calls, tool.errors, tool.known) for tool in tools)


def _histogram(distribution: Distribution) -> Plot | None:
    """Bars that stand."""
    if not distribution.n:
        return None
    singles = all(item.low == item.high for item in distribution.bins)

    def paint(axes: Axes) -> None:
        places = range(len(distribution.bins))
        counts = [item.count for item in distribution.bins]
        axes.bar(places, counts, width=0.86, color=MAIN, align="center" if singles else "edge")
        if singles:
            ticks = [(float(place), result.low) for place, result in enumerate(distribution.bins)]
        else:
            ends = [item.low for item in distribution.bins] + [distribution.bins[-1].high + 1]
            ticks = [(place - 0.07, end) for place, end in enumerate(ends)]
        step = -(-len(ticks) // 13)
        places_shown, labels = zip(*ticks[::step], strict=True)
        axes.set_xticks(places_shown, [short_number(value) for value in labels], **font(10))
        axes.grid(axis="y", color=GRID, linewidth=0.8)
        axes.set_xlabel(f"{distribution.name} of a trajectory", color=MUTED, **font(10))
        axes.set_ylabel("trajectories", color=MUTED, **font(10))
        empty = max(0, FEWEST - len(distribution.bins)) / 2
        axes.set_xlim(-0.6 - empty, len(distribution.bins) - (0.4 if singles else 0) + empty)
        axes.set_ylim(0, whole_ticks().tick_values(0, max(counts))[-1])
        short_axis(axes.yaxis, integers=True)

    alt = (
        f"Histogram of {distribution.name} of a trajectory: median {distribution.p50:,}, "
        f"90 % up to {distribution.p90:,}, at most {distribution.max:,}"
    )
    return draw_plot(alt, paint, height=220)


def _parts(distributions: Sequence[Distribution]) -> Plot | None:
    """From 10 % to 90 % as a line, the median as a dot, the maximum as a tick."""
    shown = [distribution for distribution in distributions if distribution.n]
    if not shown:
        return None

    def paint(axes: Axes) -> None:
        for place, result in enumerate(shown):
            low, high, most = result.p10 or 0, result.p90 or 0, result.max or 0
            axes.plot([low, high], [place, place], color=MAIN, linewidth=6, alpha=0.45,
                      solid_capstyle="round")  # fmt: skip
            axes.plot([result.p50 or 0], [place], "o", color=MAIN, markersize=8)
            axes.plot([most], [place], "|", color=WARN, markersize=12, markeredgewidth=2)
        lying(axes, [item.name for item in shown])
        axes.set_xscale("symlog", linthresh=10)
        axes.set_xlim(left=-0.5)
        axes.set_ylim(len(shown) - 0.4, -0.6)
        axes.set_xlabel("characters: 10 % to 90 %, median, longest", color=MUTED, **font(10))
        axes.minorticks_off()
        short_axis(axes.xaxis)

    text = "; ".join(f"{item.name} median {item.p50:,}, longest {item.max:,}" for item in shown)
    return draw_plot(f"Characters of steps, calls and results: {text}", paint, 70 + 24 * len(shown))


def _rates(what: str, rates: Sequence[Rate], *, ordered: bool = False) -> Plot | None:
    """A dot for each rate, with its interval as a line."""
    shown = [rate for rate in rates if rate.known][: None if ordered else BARS]
    if not shown:
        return None

    def paint(axes: Axes) -> None:
        for place, result in enumerate(shown):
            low, high = 100 * (result.low or 0), 100 * (result.high or 0)
            axes.plot([low, high], [place, place], color=MAIN, linewidth=2.4, alpha=0.5)
            axes.plot([100 * (result.rate or 0)], [place], "o", color=MAIN, markersize=7)
            axes.text(107, place, f"n = {short_number(result.known)}", va="center", color=MUTED,
                      **font(9))  # fmt: skip
        lying(axes, [short_label(item.name) for item in shown])
        axes.set_xlim(-4, 128)
        axes.set_xticks(*PERCENTS, **font(10))
        words = f"success by {what}, with 95 % interval"
        axes.set_xlabel(words, color=MUTED, **font(10))

    text = "; ".join(
        f"{short_label(item.name)} {percent(item.rate)} of {item.known:,}" for item in shown[:5]
    )
    return draw_plot(f"Success by {what}: {text}", paint, height=58 + 20 * len(shown))
