"""Drawing with matplotlib: SVG without scripts, links or fonts to load.

The same numbers give the same bytes: the font is the one that matplotlib brings, as outlines, and
its settings are its defaults.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK, MUTED, GRID, MAIN, WARN = "#20262e", "#667080", "#dfe3e8", "#3b6fd4", "#d0593b"

POINTS = 72
"""Points an inch."""


def svg(
    paint: Callable[[Axes], None], width: float, height: float, *, transparent: bool = False
) -> str:
    """Draw a plot.

    Args:
        paint: draws into the axes.
        width: its width in points.
        height: its height in points.
        transparent: whether the page shows through.

    Returns:
        The SVG.
    """
    import matplotlib.style
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    fixed = {"svg.hashsalt": "adp", "svg.fonttype": "path", "axes.unicode_minus": False}
    with matplotlib.style.context(["default", fixed]):
        figure = Figure(figsize=(width / POINTS, height / POINTS), layout="constrained")
        FigureCanvasSVG(figure)
        paint(figure.add_subplot())
        data = io.BytesIO()
        metadata = {"Date": None, "Creator": None}
        figure.savefig(data, format="svg", transparent=transparent or None, metadata=metadata)
    # The comments say what the outlines of letters stand for: texts from the data.
    return re.sub(r"\s*<!--.*?-->", "", data.getvalue().decode(), flags=re.DOTALL)


def remove_frame(axes: Axes) -> None:
    """Leave only the line below the plot, and give the labels the colour of texts."""
    for side, spine in axes.spines.items():
        spine.set_visible(side == "bottom")
        spine.set_color(GRID)
    axes.tick_params(length=0, colors=INK)
    axes.set_axisbelow(True)


def font(size: float) -> dict[str, Any]:
    """Settings of a text: the font that matplotlib brings, and no formulas in it."""
    from matplotlib.font_manager import FontProperties

    return {"fontproperties": FontProperties(fname=font_file(), size=size), "parse_math": False}


@cache
def font_file() -> str:
    """The font that matplotlib brings."""
    import matplotlib

    return f"{matplotlib.get_data_path()}/fonts/ttf/DejaVuSans.ttf"
