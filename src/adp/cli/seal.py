"""``adp seal``: the end of a growing store."""

from __future__ import annotations

from typing import Annotated

import typer

from adp.cli.convert import summary
from adp.cli.text import console, counted, epilog, human_size, print_json
from adp.core.progress import ConsoleProgress, Silent

EPILOG = epilog("adp seal rollouts", 2, 5)


def seal(
    path: Annotated[str, typer.Argument(metavar="STORE", help="Folder of the growing store.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print the counts as JSON.")] = False,
) -> None:
    """End a growing store: its journal becomes shards, and it never changes again.

    Writers that still append get an error. Shards that were sealed early are cut anew, so the
    finished store follows from the trajectories and their order alone. A stopped call is to be
    repeated; sealing a sealed store does nothing.
    """
    from adp_schema.seal_store import seal as finish

    if as_json:
        print_json(summary(finish(path, progress=Silent()), path))
        return
    with ConsoleProgress("sealing") as progress:
        manifest = finish(path, progress=progress)
    files = manifest.tables["trajectories"]
    size = sum(shard.size for shards in manifest.tables.values() for shard in shards)
    screen = console()
    screen.print(
        f"sealed: {counted(manifest.counts.trajectories, 'trajectory', 'trajectories')} in "
        f"{counted(len(files), 'shard')}, {human_size(size)}",
        soft_wrap=True,
    )
    screen.print(f"next: adp info {path}", soft_wrap=True)
