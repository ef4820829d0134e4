"""``adp sample``: some trajectories, the same ones on every machine."""

from __future__ import annotations

from typing import Annotated

import typer

from adp.cli.head import report
from adp.cli.options import Count, StorePath
from adp.cli.text import epilog
from adp.stores.lookup import sample as draw
from adp_schema.store import Store

EPILOG = epilog("adp sample my_store -n 5 --seed 7", 2, 5)


def sample(
    path: StorePath,
    count: Count = 10,
    seed: Annotated[int, typer.Option(help="Another seed draws others.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print them as JSON.")] = False,
) -> None:
    """List some trajectories, drawn by a hash of seed and id: the same ones on every machine."""
    report(draw(Store.open(path), count, seed), as_json=as_json)
