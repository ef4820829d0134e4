"""Write, judge and read BFCL's files of results."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from adp.cli.text import epilog
from adp.stores.locks import alone, held
from adp_schema.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rich.console import Console

    from adp_bfcl.loader import Rejected
    from adp_bfcl.results import WrittenResults
    from adp_bfcl.scores import VerdictReport

app = typer.Typer(
    name="bfcl",
    add_completion=False,
    rich_markup_mode=None,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Write, judge and read files of the Berkeley Function Calling Leaderboard.",
    epilog=epilog("adp bfcl results runs -o result && adp bfcl judge result", 2, 3, 5, 10),
)

_SHOWN = 5
"""So many rejected rows are shown."""

Folder = Annotated[
    Path, typer.Argument(metavar="RESULT", help="Folder of results, or that of one model in it.")
]
Data = Annotated[
    Path | None,
    typer.Option(metavar="FOLDER", help="Folder of questions; those of installed bfcl-eval else."),
]
ModeOption = Annotated[
    Literal["fc", "prompt"] | None,
    typer.Option(help="Form of the answers; seen from the model's name and the answers else."),
]
Json = Annotated[bool, typer.Option("--json", help="Print the counts as JSON.")]


@app.callback()
def bfcl() -> None:
    """Write, judge and read files of the Berkeley Function Calling Leaderboard."""


@app.command(
    "results",
    short_help="Write runs as BFCL's result files, for bfcl evaluate.",
    epilog=epilog("adp bfcl results runs --model gpt-4o-2024-11-20-FC -o result", 2, 5, 10),
)
def results(
    path: Annotated[str, typer.Argument(metavar="RUNS", help="Folder or URL of the store.")],
    out: Annotated[
        Path,
        typer.Option("-o", "--out", metavar="RESULT", help="Folder; each model gets one in it."),
    ],
    model: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Name of the model; what the runs say else."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Write the answers of a store as BFCL's result files, a folder for each model.

    Of several attempts at a question the first that is whole is written. bfcl evaluate wants the
    name of a model that it knows, and reads the answers the way of that model: those of
    gpt-4o-2024-11-20-FC fit function-calling mode, those of gpt-4o-2024-11-20 prompt mode.
    """
    from adp.cli.text import console, print_json
    from adp.core.progress import ConsoleProgress as Bar
    from adp.core.progress import Silent
    from adp_bfcl.results import write_results
    from adp_schema.store import Store

    store = Store.open(path)
    with Silent() if as_json else Bar("reading", "trajectories") as progress:
        progress.total(store.manifest.rows("trajectories"))
        written = write_results(_watched(store.trajectories(), progress), out, model=model)
    if as_json:
        print_json(_written(written, out))
        return
    screen = console()
    for file, count in written.files.items():
        _say(screen, f"{count:>6,}  {file}")
    _say_sum(
        screen, "trajectories", written.trajectories, "written", written.rows, written.left_out
    )
    _say(screen, f"next: adp bfcl judge {out}")


@app.command(
    "judge",
    short_help="Judge result files, and write BFCL's score files.",
    epilog=epilog("adp bfcl judge result -o score", 2, 3, 5),
)
@alone
def judge(
    folder: Folder,
    out: Annotated[
        Path | None,
        typer.Option("-o", "--out", metavar="SCORE", help="Write score files into this folder."),
    ] = None,
    data: Data = None,
    mode: ModeOption = None,
    rules: Annotated[
        Literal["official", "fixed"],
        typer.Option(help="Verdicts of BFCL's own checkers, or without their known faults."),
    ] = "official",
    as_json: Json = False,
) -> None:
    """Judge a folder of results, of adp or of bfcl generate, and print the figures of each model.

    A row is judged, unjudged for a reason, or rejected because it cannot be read; together they are
    all rows. A figure of version 4 that needs a category without results has no value.
    """
    from adp.cli.text import console, print_json
    from adp_bfcl.loader import by_id
    from adp_bfcl.scores import judge_results, write_scores

    _there(folder)
    report = judge_results(folder, by_id(data), mode=mode, rules=rules)
    files = held(write_scores)(report, out) if out is not None else {}
    if as_json:
        print_json({"results": str(folder), "rules": rules, **report.plain(),
                    "files": {str(file): count for file, count in files.items()}})  # fmt: skip
        return
    screen = console()
    for model in report.models():
        _say_model(screen, report, model)
    _say_rejected(screen, report.rejected)
    _say_sum(screen, "rows", report.rows, "judged", report.judged_rows, report.left_out)
    if files:
        _say(screen, f"{len(files):,} score files in {out}")


@app.command(
    "import",
    short_help="Read result files into a store, for adp score and the reports.",
    epilog=epilog(
        "adp bfcl import result -o from_bfcl && adp score from_bfcl --with bfcl", 2, 3, 5, 10
    ),
)
def import_results(
    folder: Folder,
    out: Annotated[str, typer.Option("-o", "--out", metavar="STORE", help="The new store.")],
    data: Data = None,
    mode: ModeOption = None,
    as_json: Json = False,
) -> None:
    """Read a folder of results into a store: a trajectory each row, with its question as the task.

    Result files have no answers of tools, so the steps are those of the user and the agent.
    """
    from adp.cli.text import console, print_json
    from adp_bfcl.imported_results import store_results
    from adp_bfcl.loader import by_id

    _there(folder)
    done = store_results(folder, out, by_id(data), mode=mode)
    if as_json:
        print_json({"store": out, **done.plain()})
        return
    screen = console()
    _say_rejected(screen, done.rejected)
    _say_sum(screen, "rows", done.rows, "trajectories", done.trajectories, done.left_out)
    _say(screen, f"next: adp score {out} --with bfcl")


def _there(folder: Path) -> None:
    if not folder.is_dir():
        raise InputError(f"{folder} is no folder; name one with BFCL's result files")


def _watched(trajectories: Iterable[Any], progress: Any) -> Iterator[Any]:
    for trajectory in trajectories:
        progress.advance(1)
        yield trajectory


def _written(written: WrittenResults, out: Path) -> dict[str, Any]:
    return {
        "results": str(out),
        "trajectories": written.trajectories,
        "written": written.rows,
        "left_out": written.left_out,
        "modes": written.modes,
        "files": {str(file): count for file, count in written.files.items()},
    }


def _say(screen: Console, line: str) -> None:
    from rich.text import Text

    from adp.cli.text import visible

    screen.print(Text(visible(line)), soft_wrap=True)


def _say_sum(
    screen: Console, what: str, full: int, used: str, number: int, rest: Mapping[str, int]
) -> None:
    """Say that everything is somewhere: ``rows 10 = judged 8 + rejected 2``."""
    parts = "".join(f" + {count:,} ({reason})" for reason, count in rest.items())
    _say(screen, f"{what} {full:,} = {used} {number:,}{parts}")


def _say_rejected(screen: Console, rejected: Sequence[Rejected]) -> None:
    for item in rejected[:_SHOWN]:
        _say(screen, f"rejected: {item}")
    if len(rejected) > _SHOWN:
        _say(screen, f"and {len(rejected) - _SHOWN:,} rejected rows more; --json lists all")


def _say_model(screen: Console, report: VerdictReport, model: str) -> None:
    """Print the accuracy of each category, and the figures of version 4."""
    from rich.text import Text

    from adp.cli.text import light_table, visible
    from adp_bfcl.categories import in_short

    counts, accuracy, unjudged = (
        report.counts(model),
        report.accuracy(model),
        report.unjudged(model),
    )
    screen.print(Text(visible(f"{model} ({report.modes[model]})"), "bold"), soft_wrap=True)
    table = light_table("category", "accuracy", "right", "judged", "unjudged",
                        right=["accuracy", "right", "judged", "unjudged"])  # fmt: skip
    for category in report.categories(model):
        count = counts.get(category, 0)
        share = accuracy.get(category)
        shown = "-" if share is None else f"{share:.4f}"
        right = f"{round((share or 0) * count):,}"
        table.add_row(category, shown, right, f"{count:,}", f"{unjudged.get(category, 0):,}")
    screen.print(table)
    screen.print()
    table = light_table("v4", "value", "note", right=["value"], fold=["note"])
    for name, part in report.overall(model).items():
        if part.value is not None:
            table.add_row(name, f"{part.value:.4f}", "")
        elif set(part.parts) & set(counts):
            table.add_row(name, "-", Text(f"no results: {in_short(part.missing)}"))
    screen.print(table)
    screen.print()
