"""``adp drop``: a new store without some trajectories."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from adp.cli.manifest_text import print_sizes, summary
from adp.cli.options import JsonCounts, OptionalNewStore, StorePath, Workers
from adp.cli.text import counted, epilog, print_json, print_table, progress_bar, say
from adp.stores.drop import DropOptions, DropSelection, select
from adp.stores.drop import drop as run
from adp_schema.errors import UsageError
from adp_schema.manifest import Manifest

EPILOG = epilog("adp drop my_store --where \"license = 'cc-by-nc-4.0'\" -o clean", 2, 5, 6)


def drop(
    path: StorePath,
    where: Annotated[
        str,
        typer.Option(
            metavar="SQL", help="Condition over the view all_trajectories; those it holds for go."
        ),
    ],
    out: OptionalNewStore = None,
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
    workers: Workers = None,
    as_json: JsonCounts = False,
) -> None:
    """Write a new store without the trajectories that meet a condition.

    Their branches go too, and everything that hangs from them and nothing else refers to: steps,
    calls, results, blobs, tasks, pairs, raw records. The new store holds no byte of them. Rejected
    records stay unless --drop-rejects is given: the same source may show through them. The old
    store is not touched; remove it yourself. A stopped run goes on when it is called again.
    """
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
    if not as_json:
        announce(selection, "go")
    with progress_bar("dropping", quiet=as_json) as progress:
        manifest = run(selection, out, options=options, progress=progress)
    if as_json:
        done = {**result, **manifest.lineage[-1].options}
        print_json({**summary(manifest, out), "drop": done})
    else:
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
    total = selection.store.manifest.rows("trajectories")
    also = f", {selection.branches:,} of them as branches of others" if selection.branches else ""
    say(f"{len(selection.seqs):,} of {total:,} trajectories {word}{also}")
    if selection.datasets:
        known = selection.store.manifest.datasets
        rows = [
            (name or "(none)", f"{count:,}", f"{known.get(name, count):,}")
            for name, count in selection.datasets.items()
        ]
        print_table(("data set", word, "of"), rows, right=[word, "of"], fold=["data set"])


def report(manifest: Manifest, selection: DropSelection, out: str) -> None:
    """Print what is left, and what to look at."""
    old = selection.store.manifest
    print_sizes(manifest)
    words = (("media", "blob"), ("tasks", "task"), ("pairs", "pair"), ("raw", "raw record"))
    gone = [
        counted(count, word)
        for table, word in words
        if (count := old.rows(table) - manifest.rows(table))
    ]
    if gone:
        say(f"gone with them: {', '.join(gone)}")
    if left := manifest.lineage[-1].options.get("constructed_steps"):
        say(f"{left:,} steps that were made from dropped trajectories are still there", "yellow")
    if rejects := manifest.rows("rejects"):
        line = f"{rejects:,} rejected or skipped records are still there; see: --drop-rejects"
        say(line, "yellow")
    say(f"next: adp info {out}")
