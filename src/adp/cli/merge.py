"""``adp merge``: several stores into one."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.text import Text

from adp.cli.convert import equation, stored, summary
from adp.cli.text import console, epilog, human_size, one_line, print_json
from adp.core.progress import ConsoleProgress, Silent
from adp_schema.manifest import Manifest

EPILOG = epilog("adp merge monday tuesday -o week", 2, 5)

_TABLES = (
    ("trajectories", "trajectories"),
    ("steps", "steps"),
    ("tool_calls", "calls"),
    ("observations", "observations"),
)


def merge(
    stores: Annotated[
        list[str], typer.Argument(metavar="STORE...", help="Two stores or more; folders or URLs.")
    ],
    out: Annotated[
        str, typer.Option("--out", "-o", metavar="NEW", help="Folder of the new store.")
    ],
    workers: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Processes; one a core by default.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the counts as JSON.")] = False,
) -> None:
    """Put the trajectories of several stores into a new one, in the order given.

    A trajectory whose id an earlier store has too gets the next number (#2, #3). A store that has
    a file of the same name as an earlier one gets its own name as a folder before its files, so
    that an export writes both. A stopped run goes on when it is called again.
    """
    from adp.stores.merge import merge as run

    if as_json:
        manifest = run(stores, out, workers=workers, progress=Silent())
        print_json({**summary(manifest, out), "merge": manifest.lineage[-1].options})
        return
    with ConsoleProgress("merging") as progress:
        manifest = run(stores, out, workers=workers, progress=progress)
    report(manifest, stores, out)


def report(manifest: Manifest, stores: list[str], out: str) -> None:
    """Print what the new store holds, and what had to change."""
    screen = console()
    screen.print(f"{len(stores)} stores into {out}", soft_wrap=True)
    print_sizes(manifest)
    done = manifest.lineage[-1].options
    if count := done.get("renumbered"):
        ids = "id was" if count == 1 else "ids were"
        screen.print(
            f"{count:,} {ids} there already and got the next number (#2, #3)", soft_wrap=True
        )
    for number, folder in done.get("folders", {}).items():
        line = f"the files of {stores[int(number) - 1]} are under {folder}/ now"
        screen.print(Text(one_line(line)), soft_wrap=True)
    screen.print(f"next: adp info {out}", soft_wrap=True)


def print_sizes(manifest: Manifest) -> None:
    """Print the counts of a new store."""
    screen = console()
    screen.print(equation(manifest))
    rows = [f"{manifest.rows(table):,} {word}" for table, word in _TABLES]
    screen.print(", ".join(rows), soft_wrap=True)
    screen.print(f"{human_size(stored(manifest))} written")
