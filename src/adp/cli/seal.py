"""``adp seal``: the end of a growing store."""

from __future__ import annotations

from typing import Annotated

import typer

from adp.cli.text import console, epilog

EPILOG = epilog("adp seal rollouts", 2, 5)


def seal(
    path: Annotated[str, typer.Argument(metavar="STORE", help="Folder of the growing store.")],
) -> None:
    """End a growing store: its journal becomes shards, and it never changes again."""
    from adp_schema.growing import seal as finish

    manifest = finish(path)
    console().print(
        f"sealed: {manifest.rows('trajectories'):,} trajectories in {path}", soft_wrap=True
    )
