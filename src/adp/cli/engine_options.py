"""The options --engine and --ray-address, which every command with --workers gets."""

from __future__ import annotations

import functools
from typing import Annotated, Any, Literal

import typer

Engine = Annotated[
    Literal["processes", "ray"] | None,
    typer.Option(help="What does the work; processes, or what ADP_ENGINE says."),
]
RayAddress = Annotated[
    str | None,
    typer.Option(
        metavar="HOST:PORT",
        help="Ray cluster that runs; else RAY_ADDRESS, or one of this machine alone.",
    ),
]


def let_choose_engine(command: Any) -> Any:
    """Give a command whose work is shared out an option for who does it.

    Args:
        command: a command; one without --workers stays as it is.
    """
    names = [param.name for param in command.params]
    if "workers" not in names:
        return command
    giver = typer.Typer(add_completion=False)
    giver.command()(_on_engine)
    options = [param for param in typer.main.get_command(giver).params if param.name != "help"]
    after = names.index("workers") + 1
    command.params[after:after] = options
    run = command.callback

    @functools.wraps(run)
    def on_engine(*, engine: str | None, ray_address: str | None, **given: Any) -> Any:
        from adp.stores.stage import use_engine

        with use_engine(engine, ray_address):
            return run(**given)

    command.callback = on_engine
    return command


def _on_engine(engine: Engine = None, ray_address: RayAddress = None) -> None:
    """Carry the options, which other commands get."""
