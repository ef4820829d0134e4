"""``adp new``: a small package with a plug-in and its test, or a copy of a shipped loop."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from adp.cli.text import epilog

EPILOG = epilog("adp new scorer politeness && cd politeness && python -m pytest", 2, 5)


class PluginType(StrEnum):
    """What can be written."""

    FORMAT = "format"
    EXPORTER = "exporter"
    OP = "op"
    SCORER = "scorer"
    ENVIRONMENT = "environment"
    POLICY = "policy"
    LOOP = "loop"


def new(
    kind: Annotated[PluginType, typer.Argument(metavar="KIND", help="What to write.")],
    name: Annotated[
        str,
        typer.Argument(help="Its name: lower case letters, digits and _; or a shipped loop."),
    ],
    out: Annotated[
        Path | None,
        typer.Option("-o", "--out", help="Folder to write; ./NAME else. Of a loop, the file."),
    ] = None,
) -> None:
    """Write a small package with a plug-in, its test and what installs it; or a copy of a loop.

    KIND is format, exporter, op, scorer, environment or policy. The plug-in works at once by
    FILE.py:NAME, and by its name after `pip install -e` of the folder. Of the kind loop, the file
    of a shipped loop is written to ./NAME.yaml, to be changed: adp new loop et_agent.
    """
    if kind is PluginType.LOOP:
        from adp.workflows.loop.shipped import copy_loop

        file = copy_loop(name, out or Path(f"{name}.yaml"))
        typer.echo(f"wrote {file}")
        typer.echo(f"next: adp loop {file} --dry-run")
        return
    from adp.workflows.new_plugin import write_plugin

    plugin = write_plugin(kind.value, name, out or Path(name))
    for path in plugin.files:
        typer.echo(f"wrote {path}")
    typer.echo(f"next: cd {plugin.folder} && python -m pytest")
    typer.echo(f"      {plugin.call}")
