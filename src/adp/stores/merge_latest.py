"""Merging where later stores hold newer versions of the same files: sessions that have grown.

``adp convert --since`` notes in the table of sources which earlier version a file supersedes, by
its fingerprint. Its trajectories in the earlier stores are dropped before all is merged.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from adp.core.progress import Progress
from adp.stores import shards
from adp.stores.drop import DropOptions, drop, select
from adp.stores.merge import merge
from adp_schema.manifest import Manifest
from adp_schema.scratch import ScratchFolder
from adp_schema.views import quote_text

NOTE = "a later version of the file is in another store"


def superseded(stores: Sequence[str]) -> list[list[str]]:
    """For each store the files of which a later one has a newer version.

    Args:
        stores: finished stores, the earlier ones first.
    """
    rows = [shards.source_rows(shards.open_finished(path)).to_pylist() for path in stores]
    results: list[list[str]] = []
    newer: set[tuple[str, str]] = set()
    for sources in reversed(rows):
        names = {row["source_file"] for row in sources
                 if (row["source_file"], row["fingerprint"]) in newer}  # fmt: skip
        results.append(sorted(names))
        for row in sources:
            style = json.loads(row["style"] or "{}")
            newer |= {(row["source_file"], print_) for print_ in style.get("supersedes", ())}
    return results[::-1]


def merge_latest(
    stores: Sequence[str],
    out: str,
    *,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Manifest:
    """Merge finished stores, without trajectories of files that a later store has anew.

    Args:
        stores: two stores or more, the earlier ones first; local paths or URLs.
        out: folder of the new store; it must not hold anything else.
        workers: number of processes; None takes one a core.
        progress: told how far it is, in bytes.

    Raises:
        UsageError: fewer than two stores, or the same one twice.
        StoreError: one of them is no finished store.
        OutputExistsError: the output holds a store, or something that is none.
    """
    with ScratchFolder("merge") as folder:
        paths = []
        for number, (path, files) in enumerate(zip(stores, superseded(stores), strict=True)):
            if files:
                names = ", ".join(map(quote_text, files))
                kept = Path(folder) / str(number) / (Path(path).resolve().name or "store")
                kept.parent.mkdir()
                options = DropOptions(note=NOTE, workers=workers)
                drop(select(path, f"source_file IN ({names})"), str(kept), options=options)
                path = str(kept)
            paths.append(path)
        return merge(paths, out, workers=workers, progress=progress, latest=True)
