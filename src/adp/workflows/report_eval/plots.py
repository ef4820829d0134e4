"""The plots of a report about evaluations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from adp.eval.scorer import Figure
from adp.stores.plotting import GRID, MUTED, font
from adp.workflows.report_eval.capabilities import capability_axes
from adp.workflows.report_eval.folded import unchanged
from adp.workflows.report_eval.model import EvaluatedRun, Evaluation
from adp.workflows.report_eval.radar_plot import radar_plot
from adp.workflows.report_page.drawing import (
    PERCENTS,
    SERIES,
    Bar,
    Dot,
    Plot,
    bar_plot,
    dot_plot,
    draw_plot,
    lying,
    run_legend,
    short_label,
    small_ticks,
    tools_plot,
)
from adp.workflows.report_page.words import percent, short_number

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw(evaluation: Evaluation) -> dict[str, Plot]:
    """Draw all plots that a report of these numbers has.

    Args:
        evaluation: the numbers.

    Returns:
        Name of the plot -> the plot. Those without numbers are left out.
    """
    names = [run.name for run in evaluation.runs]
    plots: dict[str, Plot | None] = {
        "success": _success(evaluation.runs),
        "differences": _differences(evaluation),
        "radar": radar_plot(evaluation.radar, evaluation.runs),
        "capabilities": radar_plot(
            capability_axes(evaluation), evaluation.runs, title="Capabilities"
        ),
        "scores": _shares("Scores", _score_dots(evaluation.runs), names),
        "passes": _passes(evaluation.runs),
        "errors": _errors(evaluation.runs),
        "tools": _tools(evaluation.runs),
    }
    for by in dict.fromkeys(group.by for run in evaluation.runs for group in run.groups):
        dots = [
            dot
            for place, run in enumerate(evaluation.runs)
            for group in run.groups
            if group.by == by
            for dot in _dots(group.name, place, group.success)
        ]
        plots[f"by {by}"] = _shares(f"Success by {by}", dots, names)
    return {key: plot for key, plot in plots.items() if plot is not None}


def _dots(line: str | None, series: int, figure: Figure) -> Iterator[Dot]:
    """The dot of a figure, if it has a value."""
    if figure.value is not None:
        yield Dot(short_label(line), series, figure.value, figure.low, figure.high)


def _success(runs: Sequence[EvaluatedRun]) -> Plot | None:
    dots = [dot for place, run in enumerate(runs) for dot in _dots(run.name, place, run.success)]
    text = "; ".join(f"{dot.line} {percent(dot.value)}" for dot in dots[:5])
    return dot_plot(f"Success: {text}", dots, "success, with 95 % interval", [])


def _score_dots(runs: Sequence[EvaluatedRun]) -> list[Dot]:
    """Shares; other figures have scales of their own."""
    lines = _lines(
        (scorer.label, figure.name)
        for run in runs
        for scorer in run.scorers
        for figure in scorer.figures
    )
    dots: list[Dot] = []
    for place, run in enumerate(runs):
        for scorer in run.scorers:
            for figure in scorer.figures:
                if _unit(figure):
                    dots += _dots(lines[scorer.label, figure.name], place, figure)
    return dots


def _lines(pairs: Iterable[tuple[str | None, str]]) -> dict[tuple[str | None, str], str]:
    """What figures of scorers are called: their names, after the scorer where several have one."""
    known = set(pairs)
    often = Counter(name for _, name in known)
    return {
        (scorer, name): f"{scorer}: {name}" if scorer is not None and often[name] > 1 else name
        for scorer, name in known
    }


def _unit(figure: Figure) -> bool:
    ends = (figure.value, figure.low, figure.high)
    return not figure.amount and all(0 <= end <= 1 for end in ends if end is not None)


def _shares(title: str, dots: Sequence[Dot], names: Sequence[str]) -> Plot | None:
    lines = dict.fromkeys(dot.line for dot in dots)
    if not lines:
        return None
    shown = [
        f"{line} " + ", ".join(percent(dot.value) for dot in dots if dot.line == line)
        for line in list(lines)[:5]
    ]
    words = f"{title[:1].lower()}{title[1:]}, with 95 % interval"
    return dot_plot(f"{title}: {'; '.join(shown)}", dots, words, names if len(names) > 1 else [])


def _differences(evaluation: Evaluation) -> Plot | None:
    """Differences of shares to the baseline, around 0."""
    numbers = {run.name: place for place, run in enumerate(evaluation.runs)}
    lines = _lines((item.scorer, item.metric) for item in evaluation.comparisons)
    same = unchanged(evaluation.comparisons)
    dots: list[Dot] = []
    for comparison in evaluation.comparisons:
        figure = comparison.difference.figure
        wide = any(abs(end or 0) > 1 for end in (figure.value, figure.low, figure.high))
        if figure.amount or wide or (comparison.scorer, comparison.metric) in same:
            continue
        line = lines[comparison.scorer, comparison.metric]
        dots += _dots(line, numbers[comparison.second], figure)
    alt = "; ".join(f"{dot.line} {dot.value:+.3f}" for dot in dots[:5])
    below = "difference to the baseline, with 95 % interval"
    names = [run.name for run in evaluation.runs]
    return dot_plot(f"Differences to the baseline: {alt}", dots, below, names, shares=False)


def _passes(runs: Sequence[EvaluatedRun]) -> Plot | None:
    """pass@k as a line, pass^k as a broken one."""
    curves = []
    for place, run in enumerate(runs):
        for start in ("pass@", "pass^"):
            points = [
                (int(item.name.removeprefix(start)), 100 * item.value)
                for item in run.passes
                if item.name.startswith(start) and item.value is not None
            ]
            if points:
                curves.append((place, start, points))
    most = max((k for _, _, points in curves for k, _ in points), default=1)
    if most < 2:
        return None

    def paint(axes: Axes) -> None:
        for place, start, points in curves:
            xs, ys = zip(*points, strict=True)
            style = "-" if start == "pass@" else "--"
            axes.plot(xs, ys, style, color=SERIES[place % len(SERIES)], marker="o", markersize=5)
        ks = sorted({k for _, _, points in curves for k, _ in points})
        if most > 8:
            axes.set_xscale("log", base=2)
            axes.minorticks_off()
        axes.set_xticks(ks, [str(k) for k in ks], **font(10))
        axes.set_yticks(*PERCENTS, **font(10))
        axes.set_ylim(-4, 104)
        axes.grid(axis="y", color=GRID, linewidth=0.8)
        axes.set_xlabel("k: pass@k as a line, pass^k broken", color=MUTED, **font(10))
        if len(runs) > 1:
            run_legend(
                axes, [(runs[item].name, item) for item in dict.fromkeys(c[0] for c in curves)]
            )

    text = "; ".join(
        f"{short_label(runs[place].name)} {start}{points[-1][0]} {points[-1][1]:.1f} %"
        for place, start, points in curves[:6]
    )
    more = 17 * len(runs) if len(runs) > 1 else 0
    return draw_plot(f"Several attempts: {text}", paint, height=230 + more)


def _errors(runs: Sequence[EvaluatedRun]) -> Plot | None:
    """Errors an episode, by type."""
    if len(runs) == 1:
        results = runs[0].results
        rows = [
            Bar(short_label(error.name), error.count, remark=percent(error.count, results))
            for error in runs[0].errors
        ]
        return bar_plot("Errors by type", rows, "results that are errors")
    counts = [_summed((error.name, error.count) for error in run.errors) for run in runs]
    names = list(dict.fromkeys(name for count in counts for name in count))
    return _grouped("Errors an episode, by type", names, runs, counts, "errors an episode")


def _tools(runs: Sequence[EvaluatedRun]) -> Plot | None:
    """Calls of tools."""
    if len(runs) == 1:
        return tools_plot((tool.name, tool.calls, tool.errors, tool.results)
                          for tool in runs[0].tools)  # fmt: skip
    counts = [_summed((tool.name, tool.calls) for tool in run.tools) for run in runs]
    calls = _summed(item for count in counts for item in count.items())
    names = sorted(calls, key=lambda call: (-calls[call], call is None, call or ""))
    return _grouped("Calls an episode, by tool", names, runs, counts, "calls an episode")


def _summed(counts: Iterable[tuple[str | None, int]]) -> Counter[str | None]:
    total: Counter[str | None] = Counter()
    for name, count in counts:
        total[name] += count
    return total


def _grouped(
    title: str,
    names: Sequence[str | None],
    runs: Sequence[EvaluatedRun],
    counts: Sequence[Counter[str | None]],
    unit: str,
) -> Plot | None:
    """A bar for each run at each name."""
    shown = list(names)[:12]
    values = [
        [count[kind] / max(run.episodes, 1) for kind in shown]
        for run, count in zip(runs, counts, strict=True)
    ]
    if not any(any(row) for row in values):
        return None
    thick = 0.8 / len(runs)

    def paint(axes: Axes) -> None:
        most = max(max(row) for row in values)
        for index, row in enumerate(values):
            places = [place + (index - (len(runs) - 1) / 2) * thick for place in range(len(shown))]
            axes.barh(places, row, height=0.9 * thick, color=SERIES[index % len(SERIES)])
            for place, value in zip(places, row, strict=True):
                words = f" {short_number(round(value, 2))}"
                axes.text(value, place, words, va="center", color=MUTED, **font(8))
        lying(axes, [short_label(kind) for kind in shown])
        axes.set_xlim(0, most * 1.18)
        small_ticks(axes.xaxis)
        axes.set_xlabel(unit, color=MUTED, **font(10))
        run_legend(axes, [(run.name, index) for index, run in enumerate(runs)])

    text = "; ".join(
        f"{short_label(kind)} " + ", ".join(f"{row[place]:.2f}" for row in values)
        for place, kind in enumerate(shown[:5])
    )
    height = 62 + (8 + 12 * len(runs)) * len(shown) + 17 * len(runs)
    return draw_plot(f"{title}: {text}", paint, height)
