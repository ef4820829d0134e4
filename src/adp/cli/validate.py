"""``adp validate``: what is wrong with the trajectories of a store or of files."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.padding import Padding
from rich.text import Text

from adp.cli.manifest_text import equation
from adp.cli.options import FollowLinks, JsonReport
from adp.cli.text import console, counted, epilog, print_json, print_table, progress_bar, say
from adp.converters.run import ConvertOptions
from adp.stores.checks.model import SEVERITIES, Check, CheckResult
from adp.stores.checks.registry import GROUPS
from adp.stores.checks.run import EXAMPLES, chosen
from adp.workflows.validate import validate as run
from adp_schema.errors import DamagedStoreError, FindingsError, UsageError, unknown_name

EPILOG = epilog("adp validate my_store --fail-on warning", 2, 3, 5, 8)
COLOURS = {"error": "bold red", "warning": "yellow", "note": "cyan"}
FAIL_ON = ("error", "warning", "never")


def validate(
    sources: Annotated[
        list[str] | None,
        typer.Argument(metavar="STORE|FILE...", help="One store, or files and folders."),
    ] = None,
    check: Annotated[
        list[str] | None,
        typer.Option("--check", metavar="ID", help="Run this check only; may be repeated."),
    ] = None,
    examples: Annotated[
        int, typer.Option(min=0, metavar="N", help="Examples to show of each check.")
    ] = EXAMPLES,
    fail_on: Annotated[
        str, typer.Option(metavar="SEVERITY", help="Exit with 8 on: error, warning, or never.")
    ] = "error",
    verify: Annotated[
        bool, typer.Option("--verify", help="Hash every file of the store again.")
    ] = False,
    format_name: Annotated[
        str | None,
        typer.Option("--from", metavar="FORMAT", help="Format of the files; see: adp formats."),
    ] = None,
    follow_links: FollowLinks = False,
    list_checks: Annotated[
        bool, typer.Option("--list", help="List the checks and what to do about each.")
    ] = False,
    as_json: JsonReport = False,
) -> None:
    """Check trajectories: links, order, roles, arguments, texts, media, and the store itself.

    Files that are no store are converted into a temporary one first. Each check counts its
    findings and shows the first ones; docs/checks.md explains all of them.
    """
    if fail_on not in FAIL_ON:
        raise UsageError(unknown_name("severity", fail_on, FAIL_ON))
    if list_checks:
        show_checks(chosen(check or []), as_json=as_json)
        return
    if not sources:
        raise UsageError("name a store, or files to check; see: adp validate --help")
    with progress_bar("converting", quiet=as_json) as progress:
        report = run(
            sources,
            checks=check or [],
            examples=examples,
            verify=verify,
            options=ConvertOptions(format=format_name, follow_links=follow_links),
            progress=progress,
        )
    if as_json:
        print_json(report.as_json())
    else:
        if report.converted:
            console().print(equation(report.manifest))
        show(report.results, report.failed(), report.not_run)
    if report.damaged:
        raise DamagedStoreError(report.damaged)
    failing = report.fails(fail_on) if fail_on != "never" else []
    if failing:
        raise FindingsError(sentence(failing, fail_on))


def show(results: list[CheckResult], failed: list[CheckResult], not_run: list[str]) -> None:
    """Print the checks that found something, then a summary."""
    for result in failed:
        show_result(result)
        console().print()
    words = []
    for severity in SEVERITIES:
        findings = [result.findings for result in failed if result.check.severity == severity]
        words.append(counted(sum(findings), severity))
    ran = counted(len(results), "check")
    say(f"{ran}, {len(failed)} found something: {', '.join(words)}", "bold")
    if not_run:
        say(f"{len(not_run)} checks were not run, because the store is damaged", "bold red")


def show_result(result: CheckResult) -> None:
    """Print what one check found."""
    check, screen = result.check, console()
    places = f"{result.findings:,} found"
    if result.trajectories:
        places += f" in {counted(result.trajectories, 'trajectory', 'trajectories')}"
    head = Text.assemble(
        (f"{check.severity} ", COLOURS[check.severity]), (check.id, "bold"), f"  {places}"
    )
    screen.print(head)
    for words in (check.what, f"To mend: {check.remedy}"):
        screen.print(Padding(Text(words, "dim"), (0, 0, 0, 2), expand=False))
    for example in result.examples:
        place = " ".join(word for word in (example.trajectory_id, example.path) if word)
        say(f"  {place}", "cyan")
        if example.excerpt:
            say(f"      {example.excerpt}")


def show_checks(checks: list[Check], *, as_json: bool) -> None:
    """List checks."""
    if as_json:
        described = [
            {"check": check.id, "severity": check.severity, "what": check.what,
             "mend": check.remedy}
            for check in checks
        ]  # fmt: skip
        print_json({"checks": described})
        return
    wanted = {check.id for check in checks}
    for title, group in GROUPS.items():
        rows = [
            (Text(check.severity, COLOURS[check.severity]), check.id, check.what)
            for check in group
            if check.id in wanted
        ]
        if rows:
            say(title, "bold underline")
            heads = ("severity", "check", "what it finds")
            print_table(heads, rows, fold=["what it finds"])
            console().print()


def sentence(failing: list[CheckResult], fail_on: str) -> str:
    """What to say when the command fails."""
    findings = sum(result.findings for result in failing)
    names = ", ".join(result.check.id for result in failing[:5])
    more = f" and {len(failing) - 5} more" if len(failing) > 5 else ""
    kind, what = ("finding", "it") if findings == 1 else ("findings", "them")
    easier = "never" if fail_on == "error" else "error"
    return (
        f"{findings:,} {kind} to fail on ({names}{more}); mend {what}, or call with "
        f"--fail-on {easier}"
    )
