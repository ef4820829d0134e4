"""``adp conformance``: whether a format keeps or reports every leaf of some files."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from adp.cli.options import JsonReport
from adp.cli.text import counted, epilog, human_size, print_json, print_table, progress_bar, say
from adp.converters.conformance import OUTCOMES, ConformanceReport
from adp.converters.conformance import conformance as run
from adp_schema.errors import FindingsError

EPILOG = epilog("adp conformance my_format.py:CONVERTER samples/*.jsonl", 2, 3, 8)


def conformance(
    name: Annotated[
        str, typer.Argument(metavar="FORMAT", help="A format by its name, or FILE.py:CONVERTER.")
    ],
    samples: Annotated[
        list[str], typer.Argument(metavar="SAMPLE...", help="Files and folders of the format.")
    ],
    tries: Annotated[
        int, typer.Option(min=0, help="Leaves of one path that are changed; 0 changes all.")
    ] = 3,
    as_json: JsonReport = False,
) -> None:
    """Try whether a format keeps or reports every leaf of the records of some files.

    Each leaf is changed, and the record read again: a time to another time, a word to another one
    that the samples have there. Either other rows come out, or the report of losses names the
    leaf; what does neither is lost in silence, and the exit code is 8. So it is when a record is
    rejected, for its leaves are not tried, and when no record could be used. What is only in
    records that are skipped is not tried either, and is listed so.
    """
    with progress_bar("trying", quiet=as_json) as progress:
        report = run(name, samples, tries=tries, progress=progress)
    if as_json:
        print_json(asdict(report))
    else:
        _show(report)
    if faults := _faults(report):
        raise FindingsError("; ".join(faults))


def _faults(report: ConformanceReport) -> list[str]:
    """Why the format is not shown to keep or report every leaf."""
    faults = []
    if silent := len(report.silent()):
        faults.append(f"{counted(silent, 'path')} silent")
    if report.rejected:
        were = "record is" if report.rejected == 1 else "records are"
        faults.append(f"{report.rejected:,} {were} rejected, and what is in such is not tested")
    if not report.used:
        faults.append("no record could be used, so nothing is shown")
    return faults


def _show(report: ConformanceReport) -> None:
    rows = [(path.path, path.outcome, ", ".join(path.columns) or path.example)
            for path in report.paths]  # fmt: skip
    print_table(("path", "outcome", "where"), rows, fold=["path", "where"])
    skipped = report.records - report.used - report.rejected
    say(
        f"\n{report.format}: {counted(report.files, 'file')}, {counted(report.records, 'record')} "
        f"= {report.used:,} used + {skipped:,} skipped + {report.rejected:,} rejected"
    )
    for reason, count in sorted(report.reasons.items(), key=lambda pair: -pair[1])[:5]:
        say(f"  {count:,} {reason}")
    for outcome, meaning in OUTCOMES.items():
        count = sum(path.outcome == outcome for path in report.paths)
        if count:
            say(f"{counted(count, 'path')} {outcome}: {meaning}")
    if report.cpu_seconds:
        speed = human_size(int(report.bytes / report.cpu_seconds))
        say(
            f"read at {speed} a CPU second, one record at a time; "
            f"largest memory of the process {human_size(report.peak_bytes)}"
        )
