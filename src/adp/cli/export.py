"""``adp export``: a store into another format, or into the file of a trainer."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer

from adp.cli.losses_text import print_losses
from adp.cli.manifest_text import top
from adp.cli.options import JsonReport, NamesOfTools, StorePath
from adp.cli.text import counted, epilog, print_json, progress_bar, say
from adp.converters.branches import LONELY
from adp.converters.export import ExportReport
from adp.converters.export import export as write
from adp.converters.records import NOTHING
from adp.converters.registry import formats
from adp.core.code_files import unknown_item
from adp.core.input_files import read_text
from adp.trainers.export.registry import exporters, is_exporter
from adp.trainers.export.run import export_rows
from adp_schema.errors import UsageError
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
    store = Store.open(path)
    if no_branches and branches:
        raise UsageError("--branches and --no-branches exclude each other")
    if is_exporter(to):
        if flavour is not None or single is not None or structured:
            words = "--flavour, --single and --structured"
            raise UsageError(f"{to} is for a trainer; leave out {words}")
        given = [*(settings or []), *_prompt_setting(system_prompt)]
        given += [f"tool_names={tool_names}"] if tool_names else []
        asked = (store, to, out, given, model, branches or [])
        _rows(*asked, strict=strict, as_json=as_json)
        return
    if ":" not in to and to not in formats:
        raise UsageError(unknown_item("format or exporter", to, [*formats, *exporters]))
    if model is not None or settings or system_prompt is not None:
        raise UsageError(f"{to} is for no trainer; leave out --model, --set and --system-prompt")
    if branches and branches != ["rows"]:
        raise UsageError(f"{to} is for no trainer, where --branches takes the word rows alone")
    with progress_bar("exporting", "trajectories", quiet=as_json) as progress:
        report = write(
            store, to, out, flavour=flavour, single=single, strict=strict,
            branches=True if branches else False if no_branches else None,
            tool_names=tool_names, structured=structured, progress=progress,
        )  # fmt: skip
    if as_json:
        print_json(asdict(report))
    else:
        _show(report, out, no_branches=no_branches)


def _prompt_setting(path: str | None) -> list[str]:
    """The option of a harness's exporter that a file of text is."""
    return [] if path is None else [f"system_prompt={json.dumps(read_text(path))}"]


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


def _rows(
    store: Store,
    to: str,
    out: str,
    settings: list[str],
    model: str | None,
    branches: list[str],
    *,
    strict: bool,
    as_json: bool,
) -> None:
    """Write the file of a trainer."""
    with progress_bar("exporting", "", quiet=as_json) as progress:
        report = export_rows(
            *(store, to, out, settings),
            model=model,
            branches=branches,
            progress=progress,
            strict=strict,
        )
    if as_json:
        print_json(asdict(report))
        return
    unit = "trained steps" if report.unit == "steps" else report.unit
    trained = f"{report.in_rows:,} of {report.in_store:,} {unit}"
    say(f"{counted(report.rows, 'row')} under {out}: {trained}")
    top(f"left out ({unit}: why)", report.left_out)
    top("written differently (how often: what)", report.changed)
    say(f"next: {out}/README.md says how to train on it")
