"""``adp publish``: a store as a data set on the Hugging Face Hub."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from adp.cli.options import StorePath, Workers
from adp.cli.redact import search_options
from adp.cli.text import (
    console,
    counted,
    epilog,
    human_size,
    light_table,
    one_line,
    print_json,
    print_table,
    progress_bar,
    say,
)
from adp.converters.sts.trace import Form
from adp.core.input_files import read_text
from adp.stores.licenses import assess
from adp.stores.shards import open_finished
from adp.workflows.publish.folder import Prepared, facts_of_folder
from adp.workflows.publish.options import PublishOptions
from adp.workflows.publish.publish import Published, UploadOptions, check_first
from adp.workflows.publish.publish import publish as run
from adp.workflows.publish.repo import RepoId
from adp.workflows.publish.traces import TracesWritten
from adp.workflows.publish.upload import Uploaded
from adp_schema.errors import InputError, UsageError, unknown_name

EPILOG = epilog("adp publish my_store alice/agent-runs --dry-run --out folder", 2, 5, 8, 9)
COLOURS = {"ok": "", "note": "yellow", "refuse": "bold red"}
LICENSE_COLOURS = {**COLOURS, "note": ""}
TOP = 20
LOSSES = 3


Repo = Annotated[str, typer.Argument(metavar="OWNER/NAME", help="Name of the data set on the Hub.")]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out", metavar="FOLDER", help="Folder to prepare it in; one in the cache by default."
    ),
]
Private = Annotated[bool, typer.Option("--private", help="Make it a private data set.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Do everything but the upload.")]
Traces = Annotated[
    bool,
    typer.Option("--traces", help="Publish OWNER/NAME-traces too, for the Hub's trace viewer."),
]
TracesForm = Annotated[
    str, typer.Option("--traces-form", metavar="FORM", help="sts, or pi, which keeps tool calls.")
]
Redact = Annotated[
    bool, typer.Option("--redact", help="Replace secrets and personal data by placeholders.")
]
AllowFindings = Annotated[
    bool, typer.Option("--allow-findings", help="Publish what was found as it is.")
]
Kinds = Annotated[
    list[str] | None,
    typer.Option("--kinds", metavar="NAMES", help="What to look for, as in adp redact."),
]
Rules = Annotated[
    str | None, typer.Option(metavar="FILE", help="Your own rules, as in adp redact.")
]
AcceptLicenses = Annotated[
    bool, typer.Option("--accept-licenses", help="Publish whatever the licenses say.")
]
LicenseName = Annotated[
    str | None,
    typer.Option("--license", metavar="LICENSE", help="License of what states none: your own."),
]
AllTables = Annotated[
    bool, typer.Option("--all-tables", help="Publish the tables raw and rejects too.")
]
Tag = Annotated[
    str | None, typer.Option(metavar="TAG", help="Name of this revision, such as v1.0.0.")
]
Message = Annotated[str | None, typer.Option(metavar="TEXT", help="What the commit says.")]
Title = Annotated[str | None, typer.Option(metavar="TEXT", help="Name of the data set for people.")]
Date = Annotated[
    str | None,
    typer.Option(metavar="DATE", help="Date of publication, such as 2026-05-03, for Croissant."),
]
About = Annotated[
    Path | None,
    typer.Option("--about", metavar="FILE", help="Your own Markdown for the data card."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print what was made as JSON.")]


def publish(
    path: StorePath,
    repo: Repo,
    private: Private = False,
    dry_run: DryRun = False,
    out: Out = None,
    traces: Traces = False,
    traces_form: TracesForm = "sts",
    redact: Redact = False,
    allow_findings: AllowFindings = False,
    kinds: Kinds = None,
    rules: Rules = None,
    accept_licenses: AcceptLicenses = False,
    license_name: LicenseName = None,
    all_tables: AllTables = False,
    tag: Tag = None,
    message: Message = None,
    title: Title = None,
    date: Date = None,
    about: About = None,
    workers: Workers = None,
    as_json: AsJson = False,
) -> None:
    """Publish a store as a data set on the Hugging Face Hub.

    What goes up is a folder: the store, rows for training made from it, a data card, Croissant
    metadata and checksums. Licenses, secrets and personal data are looked at first, and stop it.
    The tables raw and rejects stay at home. A stopped call goes on when it is made again.
    """
    name = RepoId.parse(repo)
    if redact and allow_findings:
        raise UsageError("--redact and --allow-findings exclude each other; leave one out")
    form = known_form(traces_form)
    options = PublishOptions(
        title=title,
        license=license_name,
        tag=tag,
        date=date,
        redact=redact,
        allow_findings=allow_findings,
        search=search_options(kinds, rules),
        accept_licenses=accept_licenses,
        all_tables=all_tables,
        about=about_text(about) if about is not None else None,
        traces=traces,
        workers=workers,
    )
    upload = None if dry_run else UploadOptions(private=private, message=message)
    check_first(path, name, options, upload)
    if not as_json:
        show_licenses(path, options)
    with progress_bar("publishing", "", quiet=as_json) as progress:
        done = run(
            path, name, out=out, options=options, upload=upload, progress=progress,
            traces=form if traces else None, checked=True,
        )  # fmt: skip
    if as_json:
        print_json(facts(done))
    else:
        report(done)


def known_form(name: str) -> Form:
    """The form of the sessions.

    Raises:
        UsageError: there is none of this name.
    """
    if name not in ("sts", "pi"):
        raise UsageError(unknown_name("form", name, ["sts", "pi"]))
    return "pi" if name == "pi" else "sts"


def about_text(file: Path) -> str:
    """The text of a file.

    Raises:
        InputError: it is missing, or no text.
    """
    try:
        return read_text(file, "utf-8-sig")
    except OSError as error:
        raise InputError(f"cannot read {file}: {error.strerror}") from error


def facts(done: Published) -> dict[str, Any]:
    """What a program wants to know about a publication."""
    made = facts_of_folder(done.prepared)
    extra_keys = asdict(done.traces) if done.traces else None
    for item in (made, extra_keys or {}):
        # One in the cache is removed after the upload.
        if item and not Path(item["folder"]).exists():
            item["folder"] = None
    return {
        **made,
        "traces": extra_keys,
        "uploaded": [asdict(entry) for entry in done.uploaded],
    }


def show_licenses(path: str, options: PublishOptions) -> None:
    """Print what is mixed, before anything stops it."""
    assessment = assess(open_finished(path), options.license)
    screen = console()
    table = light_table("data set", "license", "counts as", "rows", "what to know",
                        right=["rows"], fold=["data set", "what to know"])  # fmt: skip
    names = [one_line(row.dataset or "(none)", 60) for row in assessment.rows[:TOP]]
    longest = max((len(word) for name in names for word in name.split()), default=0)
    table.columns[0].min_width = max(10, min(longest, 28))
    for row in assessment.rows[:TOP]:
        table.add_row(
            Text(one_line(row.dataset or "(none)", 60)),
            Text(one_line(row.license or "-", 30)),
            # A note is about something else than the license, so it is the note that is coloured.
            Text(f"{row.id}: {row.kind}" if row.id else row.kind, LICENSE_COLOURS[row.verdict]),
            f"{row.trajectories:,}",
            Text(one_line("; ".join(row.reasons)), COLOURS[row.verdict]),
        )
    screen.print(table)
    if len(assessment.rows) > TOP:
        screen.print(f"and {len(assessment.rows) - TOP:,} more")
    if refused := assessment.refused():
        rows = sum(row.trajectories for row in refused)
        say(f"{counted(rows, 'trajectory', 'trajectories')} may not be free to publish", "bold red")
    screen.print()


def report(done: Published) -> None:
    """Print what was made, and what to do next."""
    made = done.prepared
    show_configs(made)
    if made.findings.total:
        kinds = ", ".join(f"{count:,} {kind}" for kind, count in made.findings.kinds.items())
        word = "replaced" if made.redacted else "PUBLISHED AS THEY ARE"
        say(f"findings {word}: {kinds}", "yellow" if made.redacted else "bold red")
    place = f", in {made.folder}" if made.folder.exists() else ""
    say(f"{counted(len(made.files), 'file')}, {human_size(made.size)}{place}")
    if done.traces is not None:
        show_traces(done.traces)
    for item in done.uploaded:
        say(happened(item))
    if not done.uploaded:
        say("nothing was uploaded; look at it, then call again without --dry-run")


def show_traces(made: TracesWritten) -> None:
    """Print what was written for the data set of sessions."""
    place = f", in {made.folder}" if Path(made.folder).exists() else ""
    say(f"traces: {counted(made.files, 'session')}, {human_size(made.size)}{place}")
    if made.losses:
        worst = sorted(made.losses.items(), key=lambda item: (-item[1], item[0]))
        words = "; ".join(f"{count:,} {one_line(what, 100)}" for what, count in worst[:LOSSES])
        more = f"; and {len(worst) - LOSSES:,} more kinds" if len(worst) > LOSSES else ""
        say(f"traces do not hold: {words}{more}")
    for warning in made.warnings:
        say(f"traces: {warning}", "yellow")


def happened(value: Uploaded) -> str:
    """What an upload did, in words."""
    if not value.commits:
        return f"{value.url}: all of it was there already, no commit"
    removed = f", {counted(value.deleted, 'file')} removed" if value.deleted else ""
    sent = f"{counted(value.sent, 'file')} in {counted(value.commits, 'commit')}"
    return f"uploaded to {value.url}: {sent}{removed}"


def show_configs(made: Prepared) -> None:
    """Print the configs and their splits."""
    rows = [
        (config.name, f"{config.rows:,}", f"{config.files:,}", human_size(config.size),
         ", ".join(f"{split.name} {split.rows:,}" for split in config.splits))
        for config in made.configs
    ]  # fmt: skip
    numbers = ("rows", "files", "size")
    print_table(("config", *numbers, "splits"), rows, right=numbers)
    console().print()
