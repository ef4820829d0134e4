"""``adp doctor``: what files hold, how complete it is, and what of it is not understood."""

from __future__ import annotations

from typing import Annotated

import typer

from adp.cli.completeness_text import show_completeness
from adp.cli.losses_text import print_losses
from adp.cli.manifest_text import top
from adp.cli.options import FollowLinks, JsonReport
from adp.cli.text import counted, epilog, print_json, print_table, progress_bar, say
from adp.converters.framing import SIDE_FRAMINGS
from adp.converters.run import ConvertOptions
from adp.workflows.doctor import Diagnosis, diagnose

EPILOG = epilog("adp doctor ~/.codex/sessions", 2, 3)


def doctor(
    sources: Annotated[
        list[str], typer.Argument(metavar="FILE...", help="Files and folders, or agent names.")
    ],
    wanted: Annotated[
        str | None, typer.Option("--from", metavar="FORMAT", help="Read all as this format.")
    ] = None,
    follow_links: FollowLinks = False,
    as_json: JsonReport = False,
) -> None:
    """Say what files hold, how complete their runs are, and what of them is not understood.

    They are converted into a store that is not kept. Missing are parts that the source did not
    record: system prompts, tool schemas, results of calls, runs of subagents, earlier history.
    The version is that of the format, where a file names it. Of the calls, those answered have a
    result; results may be more, as a call may have several, and some answer no call.
    """
    options = ConvertOptions(format=wanted, follow_links=follow_links)
    with progress_bar("reading", quiet=as_json) as progress:
        report = diagnose(sources, options=options, progress=progress)
    if as_json:
        print_json(report.as_json())
    else:
        _show(report)


def _show(report: Diagnosis) -> None:
    heads = ("file", "format", "version", "agent", "used", "skipped", "rejected", "steps", "calls",
             "answered", "results", "reasoning", "errors")  # fmt: skip
    rows = [
        (file.source_file, file.format or "-", file.version or "-", file.agent or "-",
         f"{file.used:,}", f"{file.skipped:,}", f"{file.rejected:,}", f"{file.steps:,}",
         f"{file.calls:,}", f"{file.answered:,}", f"{file.results:,}", f"{file.reasoning:,}",
         f"{file.errors:,}")
        for file in report.files
        if file.framing not in SIDE_FRAMINGS
    ]  # fmt: skip
    print_table(heads, rows, right=heads[4:], fold=["file", "format", "version", "agent"])
    sides = sum(file.framing in SIDE_FRAMINGS for file in report.files)
    counts = report.counts
    remark = f", {counted(sides, 'file')} of these beside others" if sides else ""
    say(f"\nrecords {counts.records:,} = used {counts.used:,} + skipped {counts.skipped:,} + "
        f"rejected {counts.rejected:,}{remark}")  # fmt: skip
    show_completeness(report.formats)
    for file in report.files:
        if file.reason:
            say(f"not read in {file.source_file}: {file.reason}", "yellow")
    top("kept, not understood", report.unknown)
    print_losses(report.losses)
