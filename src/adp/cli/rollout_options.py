"""Options of rollouts that `adp collect` and `adp eval` share."""

from __future__ import annotations

from typing import Annotated

import typer

from adp_schema.errors import UsageError


def _named(dataset: str | None) -> str | None:
    if dataset == "":
        raise UsageError("--dataset is empty; give a name, or leave it out")
    return dataset


PolicySpec = Annotated[
    str | None, typer.Option("--policy", "-p", metavar="P", help="Policy: NAME[:key=value,...].")
]
RunConfig = Annotated[
    str | None,
    typer.Option(
        "--config", metavar="FILE", help="M3's infer_agent.json, as it is; options given here win."
    ),
]
Out = Annotated[str | None, typer.Option("--out", "-o", metavar="STORE", help="The store.")]
AtOnce = Annotated[int, typer.Option(min=1, help="Episodes that run at once.")]
Dataset = Annotated[
    str | None,
    typer.Option(help="Data set of the trajectories; by default STORE's name.", callback=_named),
]
Failures = Annotated[
    int, typer.Option(min=1, help="Stop when so many in a row broke for one reason.")
]
Again = Annotated[bool, typer.Option("--retry-failed", help="Try the broken episodes again.")]
NoTimes = Annotated[
    bool, typer.Option("--no-times", help="Keep no times, which differ from run to run.")
]
Unsafe = Annotated[
    bool,
    typer.Option(
        "--unsafe-python",
        help="Let the environment python run programs without a sandbox, with all your rights.",
    ),
]
