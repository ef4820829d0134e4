"""``adp score``: numbers about trajectories, kept beside their store."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from adp.cli.text import epilog
from adp_schema.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import Console

    from adp.eval.scorer import Figure
    from adp.eval.scoring import References, ScoreReport, ScorerReport

EPILOG = epilog("adp score my_store --with outcome,tool_f1:arguments=ignore", 2, 3, 5)


def score(
    path: Annotated[
        str | None, typer.Argument(metavar="STORE", help="Folder or URL of the store.")
    ] = None,
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
        bool, typer.Option("--branches", help="Score branches too; they are no attempts in pass@k.")
    ] = False,
    concurrency: Annotated[
        int, typer.Option(min=1, help="Requests of a judge that run at once.")
    ] = 64,
    listed: Annotated[bool, typer.Option("--list", help="List the scorers, and end.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Run scorers over a store; no model is asked again, unless a scorer is a judge.

    The scores go into the folder scores of the store, a file a run, and are there in SQL as the
    view scores. The store itself stays as it is. Scores that were there already are not written
    again. What is unscored has a reason and is never 0.
    """
    from adp.cli.text import console, print_json
    from adp.core.progress import ConsoleProgress
    from adp.eval.scoring import ScoreOptions, choose, score_store
    from adp_schema.store import Store

    if listed:
        list_scorers(as_json=as_json)
        return
    if path is None:
        raise UsageError("name a store: adp score STORE --with NAME,NAME")
    if not scorers:
        raise UsageError("name scorers: --with NAME,NAME; adp score --list shows them")
    chosen = choose(scorers)
    store = Store.open(path)
    options = ScoreOptions(out, right(reference, tasks), branches, concurrency)
    with ConsoleProgress("scoring", "trajectories") as progress:
        report = score_store(store, chosen, options, progress)
    if as_json:
        print_json(asdict(report))
    else:
        show(report, console())


def right(reference: str | None, tasks: str | None) -> References | None:
    """What is right, besides what the store says.

    Raises:
        UsageError: it is given twice.
    """
    from pathlib import Path

    from adp.eval.scoring.references import from_store, from_tasks, references
    from adp.rollouts.collecting.task_files import read_task_file
    from adp_schema.store import Store

    if reference is not None and tasks is not None:
        raise UsageError("--reference and --tasks exclude each other")
    if reference is not None:
        return from_store(Store.open(reference))
    if tasks is None:
        return None
    if Path(tasks).is_file():
        return references(Path(tasks).name, read_task_file(Path(tasks), None).tasks)
    return from_tasks(Store.open(tasks))


def list_scorers(*, as_json: bool) -> None:
    """List the scorers that are there, with their settings."""
    from rich.text import Text

    from adp.cli.text import console, light_table, print_json
    from adp.eval.scorer import SCORERS

    kinds = SCORERS.all()
    if as_json:
        described = [
            {"name": kind.name, "about": kind.about, "settings": kind.settings.model_json_schema()}
            for kind in kinds
        ]
        print_json({"scorers": described})
        return
    table = light_table(
        "scorer", "what it measures", "settings", fold=["what it measures", "settings"]
    )
    for kind in kinds:
        names = ", ".join(kind.settings.model_fields) or "-"
        table.add_row(Text(kind.name), Text(kind.about), Text(names))
    console().print(table)


def show(report: ScoreReport, screen: Console) -> None:
    """Print what the scorers gave."""
    from rich.text import Text

    from adp.cli.text import counted, visible

    for scorer in report.scorers:
        screen.print(Text(visible(heading(scorer)), "bold"), soft_wrap=True)
        screen.print(figures_table(scorer.figures))
        screen.print()
        show_counts(screen, "unscored", scorer.unscored, "reason")
        show_counts(screen, "raised", scorer.raised, "a bug of the scorer")
    for kind, count in report.broken.items():
        screen.print(f"{counted(count, 'trajectory', 'trajectories')} broke: {kind}")
    if report.superseded:
        again = counted(report.superseded, "broken try", "broken tries")
        screen.print(f"{again} made again: left out")
    for helped in report.assisted:
        many = counted(helped.trajectories, "trajectory", "trajectories")
        text = f"{many} with an expert: {helped.words}; the figures are not the policy's own"
        screen.print(Text(visible(text)), soft_wrap=True)
    new = sum(item.new for item in report.scorers)
    where = f"in {visible(report.file)}" if report.file else "nothing was written"
    looked = counted(report.trajectories, "trajectory", "trajectories")
    screen.print(
        Text(f"{looked}, {counted(new, 'new score', 'new scores')}, {where}"), soft_wrap=True
    )


def heading(scorer_report: ScorerReport) -> str:
    """Name of a scorer with the settings that it was given."""
    from adp.eval.scoring import label

    return label(scorer_report.scorer, scorer_report.settings)


def figures_table(figures: Iterable[Figure]) -> Any:
    """Figures with their intervals."""
    from rich.text import Text

    from adp.cli.text import light_table, visible
    from adp.eval.metrics import folded

    numbers = ["value", "n", "tasks", "unscored", "broken"]
    heads = [
        "figure",
        "value",
        "95 % interval",
        "method",
        "n",
        "tasks",
        "unscored",
        "broken",
        "note",
    ]
    table = light_table(*heads, right=numbers, fold=["figure", "note"])
    for item in folded(list(figures)):
        known = item.low is not None and item.high is not None
        table.add_row(
            Text(visible(item.name)),
            "-" if item.value is None else f"{item.value:.4g}",
            f"{item.low:.4g} to {item.high:.4g}" if known else "-",
            item.method or "-",
            f"{item.count:,}",
            f"{item.tasks:,}",
            f"{item.unscored:,}",
            f"{item.infrastructure:,}",
            Text(visible(item.reason or "")),
        )
    return table


def show_counts(screen: Console, what: str, counts: dict[str, int], about: str) -> None:
    """Print reasons and how often each came up."""
    from rich.text import Text

    from adp.cli.text import light_table, visible

    if not counts:
        return
    table = light_table(what, about, right=[what], fold=[about])
    for reason, count in counts.items():
        table.add_row(f"{count:,}", Text(visible(reason)))
    screen.print(table)
    screen.print()
