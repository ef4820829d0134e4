"""``adp score``: numbers about trajectories, kept beside their store."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Annotated

import typer

from adp.cli.options import JsonReport, OptionalStorePath
from adp.cli.text import console, counted, epilog, print_json, print_table, progress_bar, say
from adp.eval.metrics import folded
from adp.eval.scorer import SCORERS, Figure
from adp.eval.scoring import (
    ScoreOptions,
    ScoreReport,
    choose,
    label,
    score_store,
)
from adp.eval.scoring.given_references import given_references
from adp.eval.tiny_tool_use_results import write_results
from adp_schema.errors import UsageError
from adp_schema.store import Store

EPILOG = epilog("adp score my_store --with outcome,tool_f1:arguments=ignore", 2, 3, 5)


def score(
    path: OptionalStorePath = None,
    scorers: Annotated[
        list[str] | None,
        typer.Option(
            "--with",
            metavar="SCORERS",
            help="Scorers with their settings: tool_f1,answer:manner=squad; or YAML files.",
        ),
    ] = None,
    reference: Annotated[
        str | None,
        typer.Option(metavar="STORE", help="Take the runs of this store for the right ones."),
    ] = None,
    tasks: Annotated[
        str | None, typer.Option(metavar="FILE", help="Take the tasks of this file or store.")
    ] = None,
    out: Annotated[
        str | None,
        typer.Option("-o", "--out", metavar="FOLDER", help="Put the scores here, not beside it."),
    ] = None,
    branches: Annotated[
        bool,
        typer.Option(
            "--branches", help="Score other branches too; they are no attempts in pass@k."
        ),
    ] = False,
    concurrency: Annotated[
        int, typer.Option(min=1, help="Requests of a judge that run at once.")
    ] = 64,
    results: Annotated[
        str | None,
        typer.Option(
            "--results",
            metavar="FILE",
            help="Write figures and cases as Tiny Tool Use does, such as evaluation_results.json.",
        ),
    ] = None,
    listed: Annotated[bool, typer.Option("--list", help="List the scorers, and end.")] = False,
    as_json: JsonReport = False,
) -> None:
    """Run scorers over a store; no model is asked again, unless a scorer is a judge.

    The scores go into the folder scores of the store, a file a run, and are there in SQL as the
    view scores. The store itself stays as it is. Scores that were there already are not written
    again. What is unscored has a reason and is never 0.
    """
    if listed:
        list_scorers(as_json=as_json)
        return
    if path is None:
        raise UsageError("name a store: adp score STORE --with NAME,NAME")
    if results is not None and not scorers:
        show_results(Store.open(path), results, as_json=as_json)
        return
    if not scorers:
        raise UsageError("name scorers: --with NAME,NAME; adp score --list shows them")
    chosen = choose(scorers)
    store = Store.open(path)
    options = ScoreOptions(out, given_references(reference, tasks), branches, concurrency)
    with progress_bar("scoring", "trajectories", quiet=False) as progress:
        report = score_store(store, chosen, options, progress)
    if as_json:
        print_json(asdict(report))
    else:
        show(report)
    if results is not None:
        show_results(store, results, as_json=as_json, quiet=as_json)


def show_results(store: Store, place: str, *, as_json: bool = False, quiet: bool = False) -> None:
    """Write results as Tiny Tool Use does, and print its figures.

    Raises:
        EmptyResultError: no run has a task that expects a tool.
    """
    value = write_results(store, place)
    if quiet:
        return
    if as_json:
        print_json({name: entry for name, entry in value.items() if name != "details"})
        return
    for name in ("tool_accuracy", "format_accuracy", "execution_accuracy", "response_quality"):
        say(f"{name}: {value[name]:.3f}")
    broken = f", {value['broken']:,} broken left out" if value["broken"] else ""
    say(f"{counted(value['total_cases'], 'case')}{broken}, in {place}")


def list_scorers(*, as_json: bool) -> None:
    """List the scorers that are there, with their settings."""
    kinds = SCORERS.all()
    if as_json:
        described = [
            {"name": kind.name, "about": kind.about, "settings": kind.settings.model_json_schema()}
            for kind in kinds
        ]
        print_json({"scorers": described})
        return
    rows = [(kind.name, kind.about, ", ".join(kind.settings.model_fields) or "-") for kind in kinds]
    heads = ("scorer", "what it measures", "settings")
    print_table(heads, rows, fold=["what it measures", "settings"])


def show(report: ScoreReport) -> None:
    """Print what the scorers gave."""
    screen = console()
    for scorer in report.scorers:
        say(label(scorer.scorer, scorer.settings), "bold")
        show_figures(scorer.figures)
        screen.print()
        show_counts("unscored", scorer.unscored, "reason")
        show_counts("raised", scorer.raised, "a bug of the scorer")
        for name, cost in scorer.costs.items():
            say(f"{name}: {cost.words}")
    for kind, count in report.broken.items():
        screen.print(f"{counted(count, 'trajectory', 'trajectories')} broke: {kind}")
    if report.superseded:
        again = counted(report.superseded, "broken try", "broken tries")
        screen.print(f"{again} made again: left out")
    for helped in report.assisted:
        many = counted(helped.trajectories, "trajectory", "trajectories")
        say(f"{many} with an expert: {helped.words}; the figures are not the policy's own")
    new = sum(item.new for item in report.scorers)
    where = f"in {report.file}" if report.file else "nothing was written"
    looked = counted(report.trajectories, "trajectory", "trajectories")
    say(f"{looked}, {counted(new, 'new score', 'new scores')}, {where}")


def show_figures(figures: Iterable[Figure]) -> None:
    """Print figures with their intervals."""
    rows = []
    for item in folded(list(figures)):
        known = item.low is not None and item.high is not None
        counts = (item.count, item.tasks, item.unscored, item.infrastructure)
        rows.append(
            (item.name, "-" if item.value is None else f"{item.value:.4g}",
             f"{item.low:.4g} to {item.high:.4g}" if known else "-", item.method or "-",
             *(f"{count:,}" for count in counts), item.reason or "")
        )  # fmt: skip
    numbers = ["n", "tasks", "unscored", "broken"]
    heads = ("figure", "value", "95 % interval", "method", *numbers, "note")
    print_table(heads, rows, right=["value", *numbers], fold=["figure", "note"])


def show_counts(what: str, counts: dict[str, int], about: str) -> None:
    """Print reasons and how often each came up."""
    if counts:
        rows = [(f"{count:,}", reason) for reason, count in counts.items()]
        print_table((what, about), rows, right=[what], fold=[about])
        console().print()
