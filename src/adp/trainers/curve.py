"""The loss over the steps, as SVG."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from adp.stores.plotting import GRID, MAIN, MUTED, WARN, font, remove_frame, svg

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH, HEIGHT = 560, 300
"""Size of the plot in points."""


def loss_curve(log: Sequence[dict[str, Any]]) -> str:
    """Draw the loss; of GRPO, the reward.

    Args:
        log: entries with ``step``, and ``loss``, ``eval_loss`` or ``reward``.

    Returns:
        The SVG.
    """
    # The loss of GRPO is about 0 all the time; what it goes by is the reward.
    # It is null where all episodes of a step broke.
    shown = "reward" if any(item.get("reward") is not None for item in log) else "loss"
    trained = [(item["step"], item[shown]) for item in log if item.get(shown) is not None]
    measured = [(item["step"], item["eval_loss"]) for item in log if "eval_loss" in item]

    return _plot([(trained, MAIN, shown), (measured, WARN, "eval_loss")], shown)


def figure_curve(log: Sequence[dict[str, Any]], metric: str) -> str:
    """Draw a figure that the model was tried for during the training.

    Args:
        log: entries with ``step`` and the figure, named with ``eval_``.
        metric: name of the figure.

    Returns:
        The SVG.
    """
    name = f"eval_{metric}"
    points = sorted({item["step"]: item[name] for item in log if name in item}.items())
    return _plot([(points, MAIN, name)], metric)


Points = Sequence[tuple[int, float]]


def _plot(lines: Sequence[tuple[Points, str, str]], shown: str) -> str:
    """Lines with their colours and names, as SVG."""

    def paint(axes: Axes) -> None:
        from matplotlib.ticker import MaxNLocator

        for number, (points, colour, name) in enumerate(lines):
            _draw(axes, points, colour, name, above=number == 0)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.ticklabel_format(axis="y", useOffset=False)
        axes.set_ylabel(shown, color=MUTED, **font(10))
        axes.set_xlabel("step", color=MUTED, **font(10))
        axes.grid(axis="y", color=GRID, linewidth=0.8)
        remove_frame(axes)
        for label in (*axes.get_xticklabels(), *axes.get_yticklabels()):
            label.set(**font(10))

    return svg(paint, WIDTH, HEIGHT)


def _draw(axes: Axes, points: Points, colour: str, name: str, *, above: bool) -> None:
    """One line with its name at its end; two that end at one place have it above and below."""
    if not points:
        return
    steps, values = zip(*points, strict=True)
    marker = "o" if len(points) < 3 or name.startswith("eval_") else ""
    axes.plot(steps, values, color=colour, linewidth=1.8, marker=marker, markersize=4)
    axes.annotate(
        f" {name} {values[-1]:.4g}", (steps[-1], values[-1]), color=colour,
        annotation_clip=False, va="bottom" if above else "top", **font(10),
    )  # fmt: skip
