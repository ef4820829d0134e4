"""``adp seal``: the end of a growing store."""

from __future__ import annotations

from typing import Annotated

import typer

from adp.cli.manifest_text import stored, summary
from adp.cli.options import JsonCounts
from adp.cli.text import counted, epilog, human_size, print_json, progress_bar, say
from adp_schema.seal_store import seal as finish

EPILOG = epilog("adp seal rollouts", 2, 5)


def seal(
    path: Annotated[str, typer.Argument(metavar="STORE", help="Folder of the growing store.")],
    as_json: JsonCounts = False,
) -> None:
    """End a growing store: its journal becomes shards, and it never changes again.

    Writers that still append get an error. Shards that were sealed early are cut anew, so the
    finished store follows from the trajectories and their order alone. A stopped call is to be
    repeated; sealing a sealed store does nothing.
    """
    with progress_bar("sealing", quiet=as_json) as progress:
        manifest = finish(path, progress=progress)
    if as_json:
        print_json(summary(manifest, path))
        return
    files = counted(len(manifest.tables["trajectories"]), "shard")
    held = counted(manifest.counts.trajectories, "trajectory", "trajectories")
    say(f"sealed: {held} in {files}, {human_size(stored(manifest))}")
    say(f"next: adp info {path}")
