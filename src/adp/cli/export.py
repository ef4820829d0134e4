"""``adp export``: a store into another format."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from adp.cli.convert import top
from adp.cli.text import console, counted, epilog, print_json
from adp.core.progress import Console, Silent
from adp_schema.store import Store

EPILOG = epilog("adp export my_store --to openai_chat -o chats", 2, 4, 5)


def export(
    path: Annotated[str, typer.Argument(metavar="STORE", help="Folder or URL of the store.")],
    to: Annotated[str, typer.Option("--to", metavar="FORMAT", help="Format; see: adp formats.")],
    out: Annotated[str, typer.Option("--out", "-o", metavar="OUT", help="Folder for the files.")],
    flavour: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Way to write the format; see: adp formats."),
    ] = None,
    single: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write all into one file of this name.")
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Stop when something would be lost.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Write a store out in another format, and say what that format cannot hold."""
    from adp.converters.export import export as write

    store = Store.open(path)
    progress: Silent | Console = Silent() if as_json else Console("exporting", "trajectories")
    with progress:
        report = write(
            store, to, out, flavour=flavour, single=single, strict=strict, progress=progress
        )
    if as_json:
        print_json(asdict(report))
        return
    written = f"{counted(report.records, 'record')} in {counted(report.files, 'file')}"
    console().print(f"{written} under {out}", soft_wrap=True)
    top("lost (path: reason)", report.losses)
