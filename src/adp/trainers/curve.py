"""The loss over the steps, as SVG without scripts, links or fonts to load.

The same numbers give the same bytes: the font is the one that matplotlib brings, as outlines, and
its settings are its defaults.
"""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from typing import Any

INK, MUTED, GRID, MAIN, WARN = "#20262e", "#667080", "#dfe3e8", "#3b6fd4", "#d0593b"

WIDTH, HEIGHT, POINTS = 560, 300, 72
"""Size of the plot in points, and points an inch."""


def loss_curve(log: Sequence[dict[str, Any]]) -> str:
    """Draw the loss; of GRPO, the reward.

    Args:
        log: entries with ``step``, and ``loss``, ``eval_loss`` or ``reward``.

    Returns:
        The SVG.
    """
    import matplotlib.style
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure
    from matplotlib.font_manager import FontProperties
    from matplotlib.ticker import MaxNLocator

    file = f"{matplotlib.get_data_path()}/fonts/ttf/DejaVuSans.ttf"
    font: dict[str, Any] = {"fontproperties": FontProperties(fname=file, size=10)}
    # The loss of GRPO is about 0 all the time; what it goes by is the reward.
    shown = "reward" if any("reward" in item for item in log) else "loss"
    trained = [(item["step"], item[shown]) for item in log if shown in item]
    measured = [(item["step"], item["eval_loss"]) for item in log if "eval_loss" in item]
    fixed = {"svg.hashsalt": "adp", "svg.fonttype": "path", "axes.unicode_minus": False}
    with matplotlib.style.context(["default", fixed]):
        figure = Figure(figsize=(WIDTH / POINTS, HEIGHT / POINTS), layout="constrained")
        FigureCanvasSVG(figure)
        axes = figure.add_subplot()
        _draw(axes, trained, MAIN, shown, font, above=True)
        _draw(axes, measured, WARN, "eval_loss", font, above=False)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.ticklabel_format(axis="y", useOffset=False)
        axes.set_ylabel(shown, color=MUTED, **font)
        axes.set_xlabel("step", color=MUTED, **font)
        axes.grid(axis="y", color=GRID, linewidth=0.8)
        for side, spine in axes.spines.items():
            spine.set_visible(side == "bottom")
            spine.set_color(GRID)
        axes.tick_params(length=0, colors=INK)
        axes.set_axisbelow(True)
        for label in (*axes.get_xticklabels(), *axes.get_yticklabels()):
            label.set(**font)
        data = io.BytesIO()
        figure.savefig(data, format="svg", metadata={"Date": None, "Creator": None})
    return re.sub(r"\s*<!--.*?-->", "", data.getvalue().decode(), flags=re.DOTALL)


def _draw(
    axes: Any,
    points: Sequence[tuple[int, float]],
    colour: str,
    name: str,
    font: dict[str, Any],
    *,
    above: bool,
) -> None:
    """One line with its name at its end; two that end at one place have it above and below."""
    if not points:
        return
    steps, values = zip(*points, strict=True)
    marker = "o" if len(points) < 3 or name == "eval_loss" else ""
    axes.plot(steps, values, color=colour, linewidth=1.8, marker=marker, markersize=4)
    axes.annotate(
        f" {name} {values[-1]:.4g}", (steps[-1], values[-1]), color=colour,
        annotation_clip=False, va="bottom" if above else "top", **font,
    )  # fmt: skip
