"""Arguments and options that several commands take."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

StorePath = Annotated[str, typer.Argument(metavar="STORE", help="Folder or URL of the store.")]
OptionalStorePath = Annotated[
    str | None, typer.Argument(metavar="STORE", help="Folder or URL of the store.")
]
NewStore = Annotated[
    str, typer.Option("--out", "-o", metavar="NEW", help="Folder of the new store.")
]
OptionalNewStore = Annotated[
    str | None, typer.Option("--out", "-o", metavar="NEW", help="Folder of the new store.")
]
Workers = Annotated[
    int | None, typer.Option(min=1, metavar="N", help="Processes; one a core by default.")
]
FollowLinks = Annotated[
    bool, typer.Option("--follow-links", help="Read what links lead to, outside of SRC as well.")
]
DialectName = Annotated[
    str | None,
    typer.Option(
        "--dialect", metavar="NAME",
        help="Grammar of the actions in texts, or none; see: adp formats --dialects.",
    ),
]  # fmt: skip
NamesOfTools = Annotated[
    Literal["adp", "source"] | None,
    typer.Option(
        "--tool-names", metavar="NAMES",
        help="Names of tools: adp (terminal, python, file_editor, finish, ...) or source.",
    ),
]  # fmt: skip
Count = Annotated[int, typer.Option("-n", min=1, help="How many.")]
ReportFile = Annotated[
    Path | None,
    typer.Option("-o", "--out", metavar="FILE", help="A new file that ends in .html or .md."),
]
JsonCounts = Annotated[bool, typer.Option("--json", help="Print the counts as JSON.")]
JsonReport = Annotated[bool, typer.Option("--json", help="Print the report as JSON.")]
