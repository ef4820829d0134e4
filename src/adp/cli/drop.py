"""``adp drop``: a new store without some trajectories."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from adp.cli.convert import summary
from adp.cli.merge import print_sizes
from adp.cli.text import console, counted, epilog, light_table, print_json, visible
from adp.core.progress import ConsoleProgress, Silent
from adp_schema.errors import UsageError
from adp_schema.manifest import Manifest

if TYPE_CHECKING:
    from adp.stores.drop import DropSelection

EPILOG = epilog("adp drop my_store --where \"license = 'cc-by-nc-4.0'\" -o clean", 2, 5, 6)


def drop(
    path: Annotated[str, typer.Argument(metavar="STORE", help="Folder or URL of the store.")],
    where: Annotated[
        str,
        typer.Option(
            metavar="SQL", help="Condition over the view all_trajectories; those it holds for go."
        ),
    ],
    out: Annotated[
        str | None, typer.Option("--out", "-o", metavar="NEW", help="Folder of the new store.")
    ] = None,
    note: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="Why; it is kept in the new store, the condition not."),
    ] = None,
    drop_rejects: Annotated[
        bool, typer.Option("--drop-rejects", help="Leave out the rejected and skipped records too.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say how many would go, and write nothing.")
    ] = False,
    workers: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Processes; one a core by default.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the counts as JSON.")] = False,
) -> None:
    """Write a new store without the trajectories that meet a condition.

    Their branches go too, and everything that hangs from them and nothing else refers to: steps,
    calls, results, blobs, tasks, pairs, raw records. The new store holds no byte of them. Rejected
    records stay unless --drop-rejects is given: the same source may show through them. The old
    store is not touched; remove it yourself. A stopped run goes on when it is called again.
    """
    from adp.stores.drop import DropOptions, select
    from adp.stores.drop import drop as run

    if out is None and not dry_run:
        raise UsageError("say where the new store goes: -o NEW; or only look: --dry-run")
    selection = select(path, where)
    result = facts(selection)
    if out is None or dry_run:
        if as_json:
            print_json({"drop": result})
        else:
            announce(selection, "would go")
        return
    options = DropOptions(note=note, drop_rejects=drop_rejects, workers=workers)
    if as_json:
        manifest = run(selection, out, options=options, progress=Silent())
        done = {**result, **manifest.lineage[-1].options}
        print_json({**summary(manifest, out), "drop": done})
        return
    announce(selection, "go")
    with ConsoleProgress("dropping") as progress:
        manifest = run(selection, out, options=options, progress=progress)
    report(manifest, selection, out)


def facts(selection: DropSelection) -> dict[str, Any]:
    """What a program wants to know about a selection."""
    return {
        "matched": selection.matched,
        "branches": selection.branches,
        "dropped": len(selection.seqs),
        "datasets": selection.datasets,
    }


def announce(selection: DropSelection, word: str) -> None:
    """Print what goes, by data set."""
    screen = console()
    total = selection.store.manifest.rows("trajectories")
    also = f", {selection.branches:,} of them as branches of others" if selection.branches else ""
    screen.print(f"{len(selection.seqs):,} of {total:,} trajectories {word}{also}", soft_wrap=True)
    if not selection.datasets:
        return
    known = selection.store.manifest.datasets
    table = light_table("data set", word, "of", right=[word, "of"], fold=["data set"])
    for name, count in selection.datasets.items():
        table.add_row(Text(visible(name or "(none)")), f"{count:,}", f"{known.get(name, count):,}")
    screen.print(table)


def report(manifest: Manifest, selection: DropSelection, out: str) -> None:
    """Print what is left, and what to look at."""
    screen = console()
    old = selection.store.manifest
    print_sizes(manifest)
    words = (("media", "blob"), ("tasks", "task"), ("pairs", "pair"), ("raw", "raw record"))
    gone = [
        counted(count, word)
        for table, word in words
        if (count := old.rows(table) - manifest.rows(table))
    ]
    if gone:
        screen.print(f"gone with them: {', '.join(gone)}", soft_wrap=True)
    if left := manifest.lineage[-1].options.get("constructed_steps"):
        line = f"{left:,} steps that were made from dropped trajectories are still there"
        screen.print(Text(line, "yellow"), soft_wrap=True)
    if rejects := manifest.rows("rejects"):
        line = f"{rejects:,} rejected or skipped records are still there; see: --drop-rejects"
        screen.print(Text(line, "yellow"), soft_wrap=True)
    screen.print(f"next: adp info {out}", soft_wrap=True)
