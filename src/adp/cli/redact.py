"""``adp redact``: a new store without secrets and personal data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

import typer
from rich.text import Text

from adp.cli.manifest_text import print_sizes, summary
from adp.cli.options import JsonCounts, OptionalNewStore, OptionalStorePath, Workers
from adp.cli.text import (
    console,
    counted,
    epilog,
    print_json,
    print_table,
    progress_bar,
    say,
    visible,
)
from adp.stores.redact import Findings, RedactOptions, scan
from adp.stores.redact import redact as run
from adp.stores.redact.custom_rules import read_rules
from adp.stores.redact.options import all_kinds
from adp.stores.redact.run import findings_of
from adp.stores.shards import open_finished
from adp_schema.errors import FindingsError, UsageError

EPILOG = epilog("adp redact my_store --dry-run && adp redact my_store -o clean", 2, 3, 5, 8)


def redact(
    path: OptionalStorePath = None,
    out: OptionalNewStore = None,
    kinds: Annotated[
        list[str] | None,
        typer.Option(
            "--kinds", metavar="NAMES",
            help="Kinds or groups, with commas: secrets,email. To leave one out: --kinds=-phone.",
        ),
    ] = None,
    rules: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Your own rules: YAML or JSON with names and regexes."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be replaced, and write nothing.")
    ] = False,
    fail_on_findings: Annotated[
        bool, typer.Option("--fail-on-findings", help="With --dry-run: exit with 8 on a finding.")
    ] = False,
    places: Annotated[
        int, typer.Option(min=0, metavar="N", help="Places to show.")
    ] = 20,
    workers: Workers = None,
    list_kinds: Annotated[
        bool, typer.Option("--list", help="List the kinds, and which are looked for by default.")
    ] = False,
    as_json: JsonCounts = False,
) -> None:  # fmt: skip
    """Write a new store with placeholders for secrets and personal data.

    Every text of every table is searched: messages, arguments, results, ids, addresses of media,
    raw records, excerpts of rejected ones. [redacted:github-token] comes where a token was. The
    old store is not touched; remove it yourself. docs/redaction.md lists the kinds.
    """
    if list_kinds:
        show_kinds(as_json=as_json)
        return
    if path is None:
        raise UsageError("name a store; see: adp redact --help")
    if out is None and not dry_run:
        raise UsageError("say where the new store goes: -o NEW; or only look: --dry-run")
    options = replace(search_options(kinds, rules), places=places, workers=workers)
    if out is None or dry_run:
        look(path, options, fail=fail_on_findings, as_json=as_json)
    else:
        write(path, out, options, as_json=as_json)


def search_options(kinds: Sequence[str] | None, rules: str | None) -> RedactOptions:
    """What to look for, as the options --kinds and --rules say it.

    Raises:
        UsageError: there is no kind of a name, or a rule is wrong.
        InputError: the file of rules cannot be read.
    """
    return RedactOptions(
        kinds=tuple(name.strip() for words in kinds or () for name in words.split(",")),
        given=read_rules(rules) if rules else (),
    )


def look(path: str, options: RedactOptions, *, fail: bool, as_json: bool) -> None:
    """Say what would be replaced."""
    with progress_bar("looking", quiet=as_json) as progress:
        result = scan(open_finished(path), options, progress)
    if as_json:
        print_json({"redact": result.plain()})
    else:
        show(result, "would be replaced")
    if fail and result.total:
        raise FindingsError(f"{result.text()}; redact them with: adp redact {path} -o NEW")


def write(path: str, out: str, options: RedactOptions, *, as_json: bool) -> None:
    """Write the new store."""
    with progress_bar("redacting", quiet=as_json) as progress:
        manifest = run(open_finished(path), out, options, progress)
    findings = findings_of(manifest)
    if as_json:
        print_json({**summary(manifest, out), "redact": {"by_kind": findings.by_kind}})
        return
    show(findings, "replaced")
    print_sizes(manifest)
    say(f"next: adp info {out}")


def show(findings: Findings, word: str) -> None:
    """Print what was found."""
    screen = console()
    if not findings.total:
        screen.print("nothing was found")
        return
    where = ""
    if findings.trajectories:
        where = f" in {counted(findings.trajectories, 'trajectory', 'trajectories')}"
    say(f"{counted(findings.total, 'value')} {word}{where}")
    rows = [(kind, f"{count:,}") for kind, count in findings.by_kind.most_common()]
    print_table(("kind", "values"), rows, right=["values"], fold=["kind"])
    for place in findings.places:
        where = f"{place.trajectory_id} {place.path}" if place.trajectory_id else place.path
        line = f"  {place.kind}  {visible(where)}"
        screen.print(Text.assemble((line, "cyan"), f"  {visible(place.shown())}"), soft_wrap=True)
    more = findings.total - sum(place.count for place in findings.places)
    if findings.places and more:
        say(f"  and {more:,} more")


def show_kinds(*, as_json: bool) -> None:
    """List the kinds."""
    rows = all_kinds()
    if as_json:
        names = ("kind", "group", "what", "default")
        print_json({"kinds": [dict(zip(names, row, strict=True)) for row in rows]})
        return
    shown = [(kind, group, "yes" if default else "no", what) for kind, group, what, default in rows]
    print_table(("kind", "group", "default", "what it finds"), shown, fold=["what it finds"])
