"""``adp validate``: what is wrong with the trajectories of a store or of files."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console as Screen
from rich.padding import Padding
from rich.text import Text

from adp.cli.convert import FollowLinks, equation
from adp.cli.text import console, epilog, light_table, print_json, visible
from adp.core.progress import ConsoleProgress, Silent
from adp.stores.checks.model import SEVERITIES, Check, CheckResult
from adp.stores.checks.registry import GROUPS
from adp.stores.checks.run import EXAMPLES, chosen
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
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
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
    from adp.converters.run import ConvertOptions
    from adp.workflows.validate import validate as run

    with ConsoleProgress("converting") as progress:
        report = run(
            sources,
            checks=check or [],
            examples=examples,
            verify=verify,
            options=ConvertOptions(format=format_name, follow_links=follow_links),
            progress=Silent() if as_json else progress,
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


def show(results: list[CheckResult], check_results: list[CheckResult], not_run: list[str]) -> None:
    """Print the checks that found something, then a summary."""
    screen = console()
    for result in check_results:
        show_result(screen, result)
        screen.print()
    counted = {
        severity: [
            check_result
            for check_result in check_results
            if check_result.check.severity == severity
        ]
        for severity in SEVERITIES
    }
    words = [
        f"{count:,} {severity}{'' if count == 1 else 's'}"
        for severity, hits in counted.items()
        for count in [sum(hit.findings for hit in hits)]
    ]
    ran = f"{len(results)} check{'' if len(results) == 1 else 's'}"
    line = f"{ran}, {len(check_results)} found something: {', '.join(words)}"
    screen.print(Text(line, "bold"))
    if not_run:
        line = f"{len(not_run)} checks were not run, because the store is damaged"
        screen.print(Text(line, "bold red"))


def show_result(screen: Screen, result: CheckResult) -> None:
    """Print what one check found."""
    check = result.check
    places = f"{result.findings:,} found"
    if result.trajectories:
        runs = "trajectory" if result.trajectories == 1 else "trajectories"
        places += f" in {result.trajectories:,} {runs}"
    head = Text.assemble(
        (f"{check.severity} ", COLOURS[check.severity]), (check.id, "bold"), f"  {places}"
    )
    screen.print(head)
    for words in (check.what, f"To mend: {check.remedy}"):
        screen.print(Padding(Text(words, "dim"), (0, 0, 0, 2), expand=False))
    for example in result.examples:
        place = " ".join(word for word in (example.trajectory_id, example.path) if word)
        screen.print(Text(f"  {visible(place)}", "cyan"), soft_wrap=True)
        if example.excerpt:
            screen.print(Text(f"      {visible(example.excerpt)}"), soft_wrap=True)


def show_checks(checks: list[Check], *, as_json: bool) -> None:
    """List checks."""
    if as_json:
        described = [
            {
                "check": check.id,
                "severity": check.severity,
                "what": check.what,
                "mend": check.remedy,
            }
            for check in checks
        ]
        print_json({"checks": described})
        return
    wanted = {check.id for check in checks}
    screen = console()
    for title, group in GROUPS.items():
        rows = [item for item in group if item.id in wanted]
        if not rows:
            continue
        table = light_table("severity", "check", "what it finds", fold=["what it finds"])
        for row in rows:
            table.add_row(Text(row.severity, COLOURS[row.severity]), row.id, Text(row.what))
        screen.print(Text(title, "bold underline"))
        screen.print(table)
        screen.print()


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
