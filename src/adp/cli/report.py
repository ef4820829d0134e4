"""``adp report``: reports for reading."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from adp.cli.options import ReportFile, StorePath
from adp.cli.text import epilog, print_json, progress_bar, say
from adp.stores.composition import CompositionOptions, composition
from adp.stores.locks import alone_at_file
from adp.workflows.report import Report, check_out
from adp.workflows.report_eval import EvaluationOptions, evaluation
from adp_schema.errors import UsageError
from adp_schema.store import Store

app = typer.Typer(
    name="report",
    add_completion=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Write a report for reading: about the data of a store, or about evaluations.",
    epilog=epilog("adp report data my_store -o report.html", 2, 5),
)


@app.callback()
def report() -> None:
    """Write a report for reading: about the data of a store, or about evaluations."""


@app.command(
    "data",
    short_help="What a store holds: one HTML file, or Markdown.",
    epilog=epilog("adp report data my_store -o report.html", 2, 5),
)
@alone_at_file
def data(
    path: StorePath,
    out: ReportFile = None,
    name: Annotated[
        str | None, typer.Option(metavar="NAME", help="Title; the name of the store else.")
    ] = None,
    examples: Annotated[
        int, typer.Option(min=0, max=100, metavar="NUMBER", help="Trajectories to show.")
    ] = 5,
    as_json: Annotated[bool, typer.Option("--json", help="Print the numbers as JSON.")] = False,
) -> None:
    """Report what a store holds: data sets, lengths, tools, success, errors, licenses, examples.

    Without -o it prints Markdown. The HTML file holds its plots, has no script and loads nothing.
    Branches are left out unless a number says otherwise. A file that is there is not replaced.
    """

    def make() -> Report:
        store = Store.open(path)
        with progress_bar("counting", "parts", quiet=False) as progress:
            options = CompositionOptions(name=name, examples=examples)
            return Report(composition(store, options, progress))

    _print(out, make, as_json=as_json)


@app.command(
    "eval",
    short_help="How agents did: one HTML file, or Markdown; several runs are compared.",
    epilog=epilog("adp report eval base_runs tuned_runs -o report.html", 2, 5),
)
@alone_at_file
def evaluations(
    paths: Annotated[list[str], typer.Argument(metavar="STORE", help="Folders or URLs of stores.")],
    out: ReportFile = None,
    name: Annotated[
        str | None, typer.Option(metavar="NAME", help="Title; the names of the stores else.")
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option(metavar="RUN", help="What the others are compared with; the first else."),
    ] = None,
    scores: Annotated[
        list[str] | None,
        typer.Option(metavar="FOLDER", help="Where the scores of each store are, if not in it."),
    ] = None,
    radar: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FIGURE",
            help="Figures of the profile: [LABEL=][SCORER.]FIGURE, with :less where less is "
            "better. ET-Agent's five else.",
        ),
    ] = None,
    examples: Annotated[
        int, typer.Option(min=0, max=100, metavar="NUMBER", help="Failures to show of each run.")
    ] = 3,
    as_json: Annotated[bool, typer.Option("--json", help="Print the numbers as JSON.")] = False,
) -> None:
    """Report evaluations: success, scores, pass@k, errors, tools, costs and failures.

    Each store is a run; one with the episodes of several policies is a run for each. The others
    are compared with the first over the tasks that both did. Without scores, it tells what the
    trajectories say. Every figure has its interval and its number of episodes; what broke and what
    is unscored stand apart. Without -o it prints Markdown.
    """

    def make() -> Report:
        options = EvaluationOptions(name, examples, baseline, scores or (), radar or ())
        with progress_bar("counting", "runs", quiet=False) as progress:
            stores = [Store.open(path) for path in paths]
            return Report(evaluation(stores, options, progress))

    _print(out, make, as_json=as_json)


def _print(out: Path | None, make: Callable[[], Report], *, as_json: bool) -> None:
    """Make a report, and print or write it."""
    check_out(out)
    if as_json and out is not None:
        raise UsageError("--json prints to standard output; leave out -o")
    made = make()
    if as_json:
        print_json(made.plain())
    elif out is None:
        sys.stdout.write(made.markdown())
    else:
        made.write(out)
        say(f"wrote {out}")
