"""The report of a loop: success, calls, length, format and training by round."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from adp.stores.plotting import GRID, INK, MUTED, font
from adp.workflows.loop.records import StageRecord
from adp.workflows.report_page import Page, write_pages
from adp.workflows.report_page.drawing import (
    SERIES,
    Plot,
    draw_plot,
    drawable,
    short_label,
    small_ticks,
)
from adp.workflows.report_page.model import Row, Section, TextTable, Tile, table
from adp.workflows.report_page.words import MISSING, name, number, percent, percents

if TYPE_CHECKING:
    from matplotlib.axes import Axes

REPORT = "report"


@dataclass(frozen=True)
class Shown:
    """A figure that the report shows.

    Attributes:
        title: what it is called.
        scorer: the scorer that gives it.
        metric: its name there.
        share: whether it lies between 0 and 1.
    """

    title: str
    scorer: str
    metric: str
    share: bool


SHOWN = (
    Shown("success", "outcome", "success", True),
    Shown("calls an episode", "efficiency", "calls", False),
    Shown("length in words", "reasoning_length", "reasoning_words", False),
    Shown("format valid", "format", "format_correct", True),
)
"""What is shown of each evaluation."""


@dataclass(frozen=True)
class LoopNumbers:
    """The numbers of a loop.

    Attributes:
        name: its name.
        about: what it does.
        records: its finished stages, in order.
    """

    name: str
    about: str
    records: Sequence[StageRecord]

    def figure(self, record: StageRecord, shown: Shown) -> Mapping[str, Any] | None:
        """A figure of an evaluation; None when it is not known."""
        for item in record.figures:
            if (item["scorer"], item["name"]) == (shown.scorer, shown.metric):
                return item if item["value"] is not None else None
        return None

    def evaluations(self) -> list[StageRecord]:
        """The evaluations."""
        return [record for record in self.records if record.kind == "eval"]

    def plain(self) -> dict[str, Any]:
        """As JSON."""
        rounds = []
        for record in self.evaluations():
            figures = {shown.metric: self.figure(record, shown) for shown in SHOWN}
            rounds.append({"round": record.round, "stage": record.stage, **figures})
        rows = [record.row() for record in self.records]
        return {"name": self.name, "about": self.about, "evaluations": rounds, "stages": rows}


def write_report(root: Path, numbers: LoopNumbers) -> list[Path]:
    """Write ``report.md``, and ``report.html`` where matplotlib is there; they replace older ones.

    Args:
        root: folder of the loop.
        numbers: its numbers.

    Returns:
        What was written.
    """
    return write_pages(report_page(numbers), root / REPORT)


def report_page(numbers: LoopNumbers) -> Page:
    """The page that shows the numbers of a loop."""
    rounds = max((record.round for record in numbers.records), default=0)
    seconds = sum(record.seconds for record in numbers.records)
    tiles = [
        Tile(number(rounds), "round" if rounds == 1 else "rounds"),
        Tile(number(len(numbers.records)), "stages done"),
        Tile(f"{seconds / 60:,.1f}", "minutes"),
    ]
    return Page(
        name=name(numbers.name),
        kind="Report of a loop",
        subtitle=name(numbers.about, 300) if numbers.about else "Rounds of stages",
        tiles=tiles,
        all_sections=list(_sections(numbers)),
        draw=partial(draw, numbers),
    )


def _sections(numbers: LoopNumbers) -> Iterator[Section]:
    yield Section(
        "rounds",
        "By round",
        ("In brackets: 95 % intervals, where there are any.",),
        plots=tuple(shown.title for shown in SHOWN),
        tables=(_by_round(numbers),) if numbers.evaluations() else (),
    )
    heads: tuple[str, ...]
    heads = ("#round", "stage", "method", "values", "#rows", "#trained tokens", "#steps", "result")
    trained: list[Row] = [_train_row(r) for r in numbers.records if r.kind == "train"]
    yield Section("training", "Training", tables=_tables("Train stages", heads, trained))
    data = [record for record in numbers.records if record.kind not in ("train", "eval")]
    heads = ("#round", "stage", "kind", "result")
    made: list[Row] = [(number(r.round), name(r.stage), r.kind, name(r.line, 200)) for r in data]
    yield Section("data", "Data", tables=_tables("Stages that make data", heads, made))
    every: list[Row] = [
        (number(r.round), name(r.stage), r.kind, f"{r.seconds:,.1f}", r.hash[:12])
        for r in numbers.records
    ]
    heads = ("#round", "stage", "kind", "#seconds", "hash of the result")
    yield Section("stages", "All stages", tables=_tables("In order", heads, every))


def _tables(title: str, heads: Sequence[str], rows: Sequence[Row]) -> tuple[TextTable, ...]:
    return (table(title, heads, rows),) if rows else ()


def _by_round(numbers: LoopNumbers) -> TextTable:
    heads = ("#round", "stage", "values", "#episodes", *(f"#{shown.title}" for shown in SHOWN))
    rows: list[Row] = []
    for record in numbers.evaluations():
        cells = [_cell(numbers.figure(record, shown), shown) for shown in SHOWN]
        episodes = number(record.counts.get("episodes"))
        row = (number(record.round), name(record.stage), _values(record), episodes, *cells)
        rows.append(row)
    return table("Evaluations", heads, rows, left_out=_unused(numbers.evaluations()))


def _unused(records: Sequence[StageRecord]) -> list[str]:
    return [] if any(record.values for record in records) else ["values"]


def _values(record: StageRecord) -> str:
    texts = [f"{key} {value}" for key, value in record.values.items()]
    return name(", ".join(texts), 100) if texts else MISSING


def _cell(figure: Mapping[str, Any] | None, shown: Shown) -> str:
    if figure is None:
        return MISSING
    text = percent(figure["value"]) if shown.share else _amount(figure["value"])
    if figure["low"] is None or figure["high"] is None:
        return text
    low = max(figure["low"], 0)  # nothing of what is shown can be less than 0
    high = figure["high"]
    interval = percents(low, high) if shown.share else f"{_amount(low)} to {_amount(high)}"
    return f"{text} ({interval})"


def _amount(value: float | None) -> str:
    if value is None:
        return MISSING
    return f"{value:,.2f}" if abs(value) < 100 else f"{value:,.0f}"


def _train_row(record: StageRecord) -> Row:
    counts = record.counts
    method = str(record.options.get("method", MISSING))
    return (
        *(number(record.round), name(record.stage), method, _values(record)),
        *(number(counts.get(key)) for key in ("rows", "trained_tokens", "steps")),
        name(record.line, 100).replace("->", "→"),  # a browser breaks a line behind a hyphen
    )


def draw(numbers: LoopNumbers) -> dict[str, Plot]:
    """Draw a line over the rounds for each figure; a series for each evaluation of a round."""
    plots = {}
    for shown in SHOWN:
        plot = _lines(numbers, shown)
        if plot is not None:
            plots[shown.title] = plot
    return plots


_TICKS = 12
"""Rounds that are named below a plot, at most."""


@dataclass(frozen=True)
class _Point:
    """A figure in a plot: where it stands, and how sure it is."""

    place: int
    value: float
    low: float
    high: float


def _points(numbers: LoopNumbers, shown: Shown) -> dict[str, list[_Point]]:
    """Stage -> its figures by round."""
    scale = 100 if shown.share else 1
    series: dict[str, list[_Point]] = {}
    for record in numbers.evaluations():
        figure = numbers.figure(record, shown)
        if figure is not None:
            value = scale * figure["value"]
            known = figure["low"] is not None and figure["high"] is not None
            low, high = (scale * max(figure[end], 0) if known else value for end in ("low", "high"))
            series.setdefault(record.stage, []).append(_Point(record.round, value, low, high))
    return series


def _lines(numbers: LoopNumbers, shown: Shown) -> Plot | None:
    series = _points(numbers, shown)
    if not series:
        return None
    labels: list[str] = []
    if len(series) > 1 and all(len(points) == 1 for points in series.values()):
        # Evaluations of one round are steps of one way, not lines of one point.
        labels = list(series)
        steps = [points[0] for points in series.values()]
        series = {"": [replace(point, place=place) for place, point in enumerate(steps)]}

    def paint(axes: Axes) -> None:
        for number_, (stage, points) in enumerate(series.items()):
            _draw_line(
                axes, name(stage, 24) if stage else "", points, SERIES[number_ % len(SERIES)]
            )
        places = sorted({point.place for points in series.values() for point in points})
        _draw_axes(axes, shown, places, labels)

    text = "; ".join(
        f"{name(stage or 'in order', 24)} " + ", ".join(f"{point.value:.4g}" for point in points)
        for stage, points in series.items()
    )
    height = 200 + (8 * max(map(len, labels)) if labels else 20)
    return draw_plot(f"{shown.title} by round: {text}", paint, height=height)


def _draw_line(axes: Axes, label: str, points: Sequence[_Point], colour: str) -> None:
    places = [point.place for point in points]
    lows, highs = [point.low for point in points], [point.high for point in points]
    # Between evaluations of one round there is nothing.
    line = "-" if label else "none"
    if label:
        axes.fill_between(places, lows, highs, color=colour, alpha=0.15, linewidth=0)
    for point in points:
        ends = [point.low, point.high]
        axes.plot([point.place] * 2, ends, color=colour, linewidth=2, alpha=0.5)
    values = [point.value for point in points]
    axes.plot(places, values, color=colour, marker="o", markersize=5, linewidth=1.8, linestyle=line,
              clip_on=False)  # fmt: skip
    if label:
        axes.annotate(f" {label}", (places[-1], values[-1]), color=INK, **font(10))


def _draw_axes(axes: Axes, shown: Shown, places: Sequence[int], labels: Sequence[str]) -> None:
    if labels:
        texts = [drawable(short_label(label)) for label in labels]
        axes.set_xticks(range(len(labels)), texts, rotation=90)
    else:
        axes.set_xticks(places[:: -(-len(places) // _TICKS)])
        axes.set_xlabel("round", color=MUTED, **font(10))
    axes.set_ylabel(f"{shown.title}{', %' if shown.share else ''}", color=MUTED, **font(10))
    axes.grid(axis="y", color=GRID, linewidth=0.8)
    axes.margins(x=0.15)
    axes.set_ylim(bottom=0, top=104 if shown.share else None)
    small_ticks(axes.xaxis)
    small_ticks(axes.yaxis)
