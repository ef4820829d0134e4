"""``adp formats``: what can be read and written."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.text import Text

from adp.cli.text import console, epilog, light_table, print_json

EPILOG = epilog("adp formats", 2)


def formats(
    as_json: Annotated[bool, typer.Option("--json", help="Print the formats as JSON.")] = False,
) -> None:
    """List the formats: names for --from and --to, directions, and how files are laid out."""
    from adp.converters.registry import formats as known

    rows = [
        {
            "name": name,
            "title": converter.title,
            "reads": hasattr(converter, "read"),
            "writes": hasattr(converter, "write"),
            "container": converter.container,
            "version": converter.version,
        }
        for name in known
        for converter in [known.get(name)]
    ]
    if as_json:
        print_json(rows)
        return
    table = light_table("name", "title", "directions", "container", fold=["name", "title"])
    for row in rows:
        both = [word for word, has in (("read", row["reads"]), ("write", row["writes"])) if has]
        words = (str(row["name"]), str(row["title"]), ", ".join(both), str(row["container"]))
        table.add_row(*map(Text, words))
    console().print(table)
