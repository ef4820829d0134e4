"""``adp sample``: some trajectories, the same ones on every machine."""

from __future__ import annotations

from typing import Annotated

import typer

from adp.cli.head import report
from adp.cli.text import epilog
from adp.stores.lookup import sample as draw
from adp_schema.store import Store

EPILOG = epilog("adp sample my_store -n 5 --seed 7", 2, 5)


def sample(
    path: Annotated[str, typer.Argument(metavar="STORE", help="Folder or URL of the store.")],
    count: Annotated[int, typer.Option("-n", min=1, help="How many.")] = 10,
    seed: Annotated[int, typer.Option(help="Another seed draws others.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print them as JSON.")] = False,
) -> None:
    """List some trajectories, drawn by a hash of seed and id: the same ones on every machine."""
    report(draw(Store.open(path), count, seed), as_json=as_json)
