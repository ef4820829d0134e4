"""``adp merge``: several stores into one."""

from __future__ import annotations

from typing import Annotated

import typer

from adp.cli.manifest_text import print_sizes, summary
from adp.cli.options import JsonCounts, NewStore, Workers
from adp.cli.text import epilog, one_line, print_json, progress_bar, say
from adp.stores.merge import merge as run
from adp.stores.merge_latest import merge_latest
from adp_schema.manifest import Manifest

EPILOG = epilog("adp merge monday tuesday -o week", 2, 5)


def merge(
    stores: Annotated[
        list[str], typer.Argument(metavar="STORE...", help="Two stores or more; folders or URLs.")
    ],
    out: NewStore,
    latest: Annotated[
        bool, typer.Option("--latest", help="Drop runs of files that a later store has anew.")
    ] = False,
    workers: Workers = None,
    as_json: JsonCounts = False,
) -> None:
    """Put the trajectories of several stores into a new one, in the order given.

    A trajectory whose id an earlier store has too gets the next number (#2, #3). A store that has
    a file of the same name as an earlier one gets its own name as a folder before its files, so
    that an export writes both. A stopped run goes on when it is called again.

    Sessions that had grown when convert --since read them are in both stores; with --latest the
    earlier version goes.
    """
    with progress_bar("merging", quiet=as_json) as progress:
        merge_stores = merge_latest if latest else run
        manifest = merge_stores(stores, out, workers=workers, progress=progress)
    if as_json:
        print_json({**summary(manifest, out), "merge": manifest.lineage[-1].options})
    else:
        report(manifest, stores, out)


def report(manifest: Manifest, stores: list[str], out: str) -> None:
    """Print what the new store holds, and what had to change."""
    say(f"{len(stores)} stores into {out}")
    print_sizes(manifest)
    done = manifest.lineage[-1].options
    if count := done.get("renumbered"):
        ids = "id was" if count == 1 else "ids were"
        say(f"{count:,} {ids} there already and got the next number (#2, #3)")
    for number, folder in done.get("folders", {}).items():
        say(one_line(f"the files of {stores[int(number) - 1]} are under {folder}/ now"))
    say(f"next: adp info {out}")
