"""``adp export``: a store into another format, or into the file of a trainer."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from adp.cli.losses_text import print_losses
from adp.cli.manifest_text import top
from adp.cli.options import JsonReport, NamesOfTools, StorePath
from adp.cli.text import counted, epilog, print_json, progress_bar, say
from adp.converters.branches import LONELY
from adp.converters.export import ExportReport
from adp.converters.records import NOTHING
from adp.trainers.export.registry import is_exporter
from adp.trainers.export.run import RowsReport
from adp.workflows.exporting import ExportOptions, export_store
from adp_schema.store import Store

EPILOG = epilog("adp export my_store --to openai_chat -o chats", 2, 4, 5, 10)

Branches = Annotated[
    list[str] | None,
    typer.Option(
        metavar="KIND",
        help="Trainers: a kind of branch to write too, or all. Formats: rows, see above.",
    ),
]
NoBranches = Annotated[
    bool, typer.Option("--no-branches", help="Leave all branches out, which is then no loss.")
]
Flavour = Annotated[
    str | None, typer.Option(metavar="NAME", help="Way to write the format; see: adp formats.")
]
Single = Annotated[
    str | None, typer.Option(metavar="FILE", help="Write all into one file of this name.")
]
Structured = Annotated[
    bool,
    typer.Option(
        "--structured",
        help="Write calls that stood in texts as calls, also in the format that they came from.",
    ),
]
SystemPrompt = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="Agent harnesses: a text file with the system prompt."),
]
Strict = Annotated[bool, typer.Option("--strict", help="Stop when something would be lost.")]


def export(
    path: StorePath,
    to: Annotated[
        str,
        typer.Option("--to", metavar="FORMAT", help="Format or exporter; see: adp formats."),
    ],
    out: Annotated[str, typer.Option("--out", "-o", metavar="OUT", help="Folder for the files.")],
    model: Annotated[
        str | None,
        typer.Option(metavar="MODEL", help="Trainers: whose tokens; a folder, Hub name, or tiny."),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Trainers: an option, as expand=true."),
    ] = None,
    system_prompt: SystemPrompt = None,
    tool_names: NamesOfTools = None,
    structured: Structured = False,
    branches: Branches = None,
    no_branches: NoBranches = False,
    flavour: Flavour = None,
    single: Single = None,
    strict: Strict = False,
    as_json: JsonReport = False,
) -> None:
    """Write a store out in another format, or as the file of a trainer.

    Of a format, it says what that cannot hold. Where a format has no place for a branch in its
    run, one that is a run by itself (attempt, subagent, continuation) becomes a record of its own.
    Other branches (alternate, fork, rewind, revision) and what preference pairs reject are left
    out and reported, for who trains on all records would train on them; --branches rows writes
    them, too.

    A trainer's file holds exactly the trained steps, and a README.md beside it says how to train
    on it. Where a trainer cannot mark single steps, the export is refused, or each step gets a
    row of its own: --set expand=true.
    """
    options = ExportOptions.model_validate(
        {
            "to": to,
            "model": model,
            "set": tuple(settings or ()),
            "system_prompt": system_prompt,
            "tool_names": tool_names,
            "structured": structured,
            "branches": tuple(branches or ()),
            "no_branches": no_branches,
            "flavour": flavour,
            "single": single,
            "strict": strict,
        }
    )
    store = Store.open(path)
    options.check()
    unit = "" if is_exporter(to) else "trajectories"
    with progress_bar("exporting", unit, quiet=as_json) as progress:
        report = export_store(store, out, options, progress)
    if as_json:
        print_json(asdict(report))
    elif isinstance(report, RowsReport):
        _show_rows(report, out)
    else:
        _show(report, out, no_branches=no_branches)


def _show(report: ExportReport, out: str, *, no_branches: bool) -> None:
    """Say how much of a format was written, and what it could not hold."""
    say(f"{counted(report.records, 'record')} in {counted(report.files, 'file')} under {out}")
    if report.branches_left_out:
        are = counted(report.branches_left_out, "branch is", "branches are")
        way = "" if no_branches else "; --branches rows writes such as records of their own"
        say(f"{are} left out{way}")
    if LONELY in report.losses:
        lonely = counted(report.losses[LONELY], "branch", "branches")
        say(f"{lonely} among them; --no-branches leaves them out")
    if NOTHING in report.losses:
        say(f"{counted(report.losses[NOTHING], 'run is', 'runs are')} left out, without a message")
    print_losses(report.losses)
    if report.next is not None:
        first = "" if report.files == 1 else f" (the first of {report.files:,} files)"
        say(f"next: {report.next}{first}")


def _show_rows(report: RowsReport, out: str) -> None:
    """Say how much of a store is in the file of a trainer."""
    unit = "trained steps" if report.unit == "steps" else report.unit
    trained = f"{report.in_rows:,} of {report.in_store:,} {unit}"
    say(f"{counted(report.rows, 'row')} under {out}: {trained}")
    top(f"left out ({unit}: why)", report.left_out)
    top("written differently (how often: what)", report.changed)
    say(f"next: {out}/README.md says how to train on it")
