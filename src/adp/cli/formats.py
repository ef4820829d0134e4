"""``adp formats``: what can be read and written, and the files for trainers."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.text import Text

from adp.cli.text import console, epilog, light_table, print_json

EPILOG = epilog("adp formats", 2)


def formats(
    as_json: Annotated[bool, typer.Option("--json", help="Print the formats as JSON.")] = False,
) -> None:
    """List the formats: names for --from and --to, directions, and how files are laid out.

    Then the exporters for trainers: names for --to of adp export, what they take, and how they say
    what is trained.
    """
    from adp.converters.registry import formats as known
    from adp.converters.user_format import is_written

    rows = [
        {
            "name": name,
            "title": converter.title,
            "reads": True,
            "writes": is_written(converter),
            "container": converter.container,
            "version": converter.version,
        }
        for name in known
        for converter in [known.get(name)]
    ]
    if as_json:
        print_json({"formats": rows, "exporters": _trainers()})
        return
    table = light_table("name", "title", "directions", "container", fold=["name", "title"])
    for row in rows:
        both = [word for word, has in (("read", row["reads"]), ("write", row["writes"])) if has]
        words = (str(row["name"]), str(row["title"]), ", ".join(both), str(row["container"]))
        table.add_row(*map(Text, words))
    screen = console()
    screen.print(table)
    screen.print("\nfor trainers: adp export STORE --to NAME --set OPTION=VALUE -o OUT")
    table = light_table("name", "title", "takes", "mask", "file", fold=["name", "title"])
    for row in _trainers():
        table.add_row(*(Text(str(row[key])) for key in ("name", "title", "takes", "mask", "file")))
    screen.print(table)


def _trainers() -> list[dict[str, Any]]:
    """The exporters for trainers."""
    from adp.trainers.export.registry import exporters

    return [
        {
            "name": exporter.name,
            "title": exporter.title,
            "takes": exporter.takes,
            "mask": exporter.mask,
            "file": exporter.file,
            "options": sorted(exporter.options.model_fields),
        }
        for exporter in exporters.all()
    ]
