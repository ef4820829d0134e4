"""The report of a comparison: one table, and charts of what it is about."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from adp.eval.scorer import Figure
from adp.workflows.compare.numbers import ComparedMethod, ComparisonResult
from adp.workflows.loop.report import Shown
from adp.workflows.report_page import Page, write_pages
from adp.workflows.report_page.drawing import Dot, Plot, dot_plot, short_label
from adp.workflows.report_page.model import Row, Section, TextTable, Tile, table
from adp.workflows.report_page.words import MISSING, name, number, percent, percents

REPORT = "report"


def write_comparison(result: ComparisonResult, root: Path) -> list[Path]:
    """Write ``report.md``, and ``report.html`` where matplotlib is there; they replace older ones.

    Args:
        result: the numbers.
        root: folder of the comparison.

    Returns:
        What was written.
    """
    return write_pages(comparison_page(result), root / REPORT)


def comparison_page(result: ComparisonResult) -> Page:
    """The page that shows a comparison."""
    seconds = sum(run.seconds for method in result.methods for run in method.seeds)
    seeds = max(len(method.seeds) for method in result.methods)
    tiles = [
        Tile(number(len(result.methods)), "methods"),
        Tile(number(seeds), "seed" if seeds == 1 else "seeds"),
        Tile(number(len(result.failures)), "failed"),
        Tile(f"{seconds / 60:,.1f}", "minutes"),
    ]
    return Page(
        name=f"Methods on {name(result.measured)}",
        kind="Comparison of methods",
        subtitle=f"The model {name(result.model)}, trained by each method and measured alike",
        tiles=tiles,
        all_sections=list(_sections(result)),
        draw=partial(draw, result),
    )


def _sections(result: ComparisonResult) -> Iterator[Section]:
    lines = [
        f"The baseline is {name(result.baseline)}. In brackets: 95 % intervals, where there are "
        "any; of differences paired by task."
    ]
    if result.tokens is not None:
        lines.append(f"All were to see {result.tokens:,} tokens under the loss.")
    heads, rows = table_rows(result)
    heads = tuple(heads)
    yield Section("methods", "Methods", tuple(lines), plots=("figures", "differences"),
                  tables=(table("By method", heads, rows),))  # fmt: skip
    if any(len(method.seeds) > 1 for method in result.methods):
        text = (
            "Intervals over tasks say what other tasks would change, those over seeds what another "
            "training would."
        )
        yield Section("seeds", "Seeds", (text,), tables=(_seeds(result),))
    failed: list[Row] = [(name(key), name(why, 400)) for key, why in result.failures.items()]
    if failed:
        heads = ("method", "reason")
        yield Section("failures", "Failures", tables=(table("What failed", heads, failed),))


def table_rows(result: ComparisonResult) -> tuple[tuple[str, ...], list[Row]]:
    """The table: its heads, those of numbers with ``#``, and a row a method."""
    first = result.shown[0]
    heads = (
        *("method", "#trajectories", "#trained tokens", "#steps", "#seconds"),
        *(f"#{shown.title}" for shown in result.shown),
        f"#{first.title} less baseline",
    )
    return heads, [_row(result, method) for method in result.methods]


def _row(result: ComparisonResult, method: ComparedMethod) -> Row:
    shown = result.shown
    difference = method.differences.get(shown[0].metric)
    if method.failed:
        last = "failed"
    elif difference is None:
        last = MISSING
    else:
        last = cell(difference.figure, shown[0], signed=True)
    done = [run for run in method.seeds if not run.failed]
    sums = [
        _same([getattr(run, key) for run in done])
        for key in ("trajectories", "trained_tokens", "steps")
    ]
    seconds = f"{sum(run.seconds for run in method.seeds):,.0f}"
    figures = [cell(method.figures[item.metric], item) for item in shown]
    return (name(method.name), *sums, seconds, *figures, last)


def _same(values: list[int | None]) -> str:
    """A number of every seed, or from the least to the most."""
    known = sorted({value for value in values if value is not None})
    if not known:
        return MISSING
    return number(known[0]) if len(known) == 1 else f"{known[0]:,} to {known[-1]:,}"


def cell(figure: Figure, shown: Shown, *, signed: bool = False) -> str:
    """A figure with its interval.

    Args:
        figure: the figure.
        shown: how it is shown: shares in percent.
        signed: it is a difference: shares in points, with a sign.
    """
    if figure.value is None:
        return MISSING
    ends = None if figure.low is None or figure.high is None else (figure.low, figure.high)
    if signed:
        scale, digits = (100, ".1f") if shown.share else (1, ".3g")
        text = f"{scale * figure.value:+{digits}}"
        return text if ends is None else (
            f"{text} ({scale * ends[0]:+{digits}} to {scale * ends[1]:+{digits}})"
        )  # fmt: skip
    if shown.share:
        text = percent(figure.value)
        return text if ends is None else f"{text} ({percents(max(ends[0], 0), min(ends[1], 1))})"
    text = f"{figure.value:,.4g}"
    return text if ends is None else f"{text} ({ends[0]:,.4g} to {ends[1]:,.4g})"


def _seeds(result: ComparisonResult) -> TextTable:
    first = result.shown[0]
    count = max(len(method.seeds) for method in result.methods)
    heads = ("method", *(f"#seed {seed}" for seed in range(count)), "#over seeds",
             "#less baseline, over seeds")  # fmt: skip
    rows: list[Row] = []
    for method in result.methods:
        values = {run.seed: run.values.get(first.metric) for run in method.seeds}
        cells = [_value(values.get(seed), first) for seed in range(count)]
        difference = method.differences_over_seeds.get(first.metric)
        last = MISSING if difference is None else cell(difference.figure, first, signed=True)
        rows.append((name(method.name), *cells, cell(method.over_seeds[first.metric], first), last))
    return table(f"{first.title} by seed", heads, rows)


def _value(value: float | None, shown: Shown) -> str:
    if value is None:
        return MISSING
    return percent(value) if shown.share else f"{value:,.4g}"


def draw(result: ComparisonResult) -> dict[str, Plot]:
    """Draw what the comparison is about, and the differences to the baseline."""
    first = result.shown[0]
    figures = {method.name: method.figures[first.metric] for method in result.methods}
    differences = {
        method.name: method.differences[first.metric].figure
        for method in result.methods
        if first.metric in method.differences
    }
    plots = {
        "figures": _plot(figures, first.title, shares=first.share),
        "differences": _plot(differences, f"{first.title}, difference to {result.baseline}"),
    }
    return {key: plot for key, plot in plots.items() if plot is not None}


def _plot(figures: dict[str, Figure], title: str, *, shares: bool = False) -> Plot | None:
    dots = [
        Dot(short_label(key), 0, figure.value, figure.low, figure.high)
        for key, figure in figures.items()
        if figure.value is not None
    ]
    if not dots:
        return None
    text = "; ".join(f"{dot.line} {dot.value:.4g}" for dot in dots[:5])
    below = f"{title}, with 95 % interval"
    return dot_plot(f"{title}: {text}", dots, below, [], shares=shares)
