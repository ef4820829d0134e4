"""``adp tokens``: a store as tokens of a model, and what a window costs."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from adp.cli.manifest_text import top
from adp.cli.options import StorePath
from adp.cli.render_options import MaxLength, Model, Settings, Template, Window, render_options
from adp.cli.text import (
    console,
    counted,
    epilog,
    pairs,
    print_json,
    print_table,
    progress_bar,
    say,
    share,
)
from adp.rendering.drops import check_drops
from adp.rendering.lengths import RowLengths, lengths_of
from adp.rendering.report import RenderReport
from adp.rendering.run import render_store
from adp.rendering.spans import MORE_ROWS
from adp_schema.store import Store

ONE_ROW = (
    "--set history=one_row writes one row a trajectory; then some steps are trained after another "
    "context than at inference, and counted"
)

EPILOG = epilog("adp tokens my_store --model Qwen/Qwen3-8B", 2, 4, 5, 10)


def tokens(
    path: StorePath,
    model: Model,
    max_length: MaxLength = None,
    window: Window = None,
    chat_template: Template = None,
    settings: Settings = None,
    out: Annotated[
        str | None, typer.Option("--out", "-o", metavar="OUT", help="Keep the rows here.")
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes; one a core unless given.")
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Fail when a row lacks something of the store.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the numbers as JSON.")] = False,
) -> None:
    """Render a store with a model's chat template, and count: rows, tokens, what is trained.

    Says how long the rows are, what a window would cost, and which steps are lost and why. The
    rows are kept in a cache (ADP_CACHE), so that training does not render them again.

    With --strict, every count of something that is in the store and in no row is an error:
    reasoning, words, tools or messages that the template drops, steps that are not trained.
    """
    options = render_options(max_length, window, chat_template, settings)
    store = Store.open(path)
    with progress_bar("rendering", "", quiet=as_json) as progress:
        report = render_store(store, model, out, options, workers=workers, progress=progress)
    lengths = lengths_of(report.files())
    _show(report, lengths, max_length, as_json=as_json)
    if strict:
        check_drops(report.lost, report.notes)


def _show(
    report: RenderReport, lengths: RowLengths, max_length: int | None, *, as_json: bool
) -> None:
    if as_json:
        fields = asdict(lengths)
        if max_length is not None:
            del fields["windows"]  # the rows are cut already
        print_json({**vars(report), "lengths": fields})
        return
    screen = console()
    screen.print(pairs(_facts(report, lengths)))
    if max_length is None:
        screen.print()
        _print_windows(lengths)
        screen.print("lost: share of the trained tokens", style="dim")
    top("not trained: why", report.lost)
    top("written differently, or drifting", report.notes)
    if report.notes[MORE_ROWS]:
        say(f"hint: {ONE_ROW}")


def _facts(report: RenderReport, lengths: RowLengths) -> list[tuple[str, str]]:
    def spread(values: dict[float, int]) -> str:
        half, most, nearly, longest = values.values()
        return f"half up to {half:,}, 90 % up to {most:,}, 99 % up to {nearly:,}, all {longest:,}"

    left = f"; {counted(report.branches, 'branch', 'branches')} left out" if report.branches else ""
    trained = f"{report.trained_tokens:,} ({share(report.trained_tokens, report.tokens)})"
    steps = f"{report.trained:,} of {counted(report.steps, 'step')} that have a weight"
    return [
        ("trajectories", f"{report.trajectories:,}{left}"),
        ("rows", f"{report.rows:,}"),
        ("tokens", f"{report.tokens:,}"),
        ("trained tokens", trained),
        ("trained steps", steps),
        ("length of a row", spread(lengths.quantiles)),
        ("trained in a row", spread(lengths.trained)),
        ("rows are in", report.folder),
    ]


def _print_windows(lengths: RowLengths) -> None:
    rows = [
        (f"{cost.tokens:,}", share(cost.fits, cost.rows), share(cost.drop, 1),
         share(cost.keep_start, 1), share(cost.sliding, 1))
        for cost in lengths.windows
    ]  # fmt: skip
    numbers = ("window", "rows that fit", "lost by drop", "lost by keep_start")
    print_table((*numbers, "lost by sliding (about)"), rows, right=numbers)
