"""``adp formats``: what can be read and written, and the files for trainers."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from adp.cli.text import console, epilog, print_json, print_table

EPILOG = epilog("adp formats", 2)


def formats(
    dialects: Annotated[
        bool, typer.Option("--dialects", help="List the grammars of actions in texts.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the formats as JSON.")] = False,
    datasets: Annotated[
        bool, typer.Option("--datasets", help="List the data sets that have a recipe instead.")
    ] = False,
) -> None:
    """List the formats: names for --from and --to, directions, and how files are laid out.

    Then the exporters for trainers: names for --to of adp export, what they take, and how they say
    what is trained.
    """
    if datasets:
        list_datasets(as_json=as_json)
        return
    if dialects:
        list_dialects(as_json=as_json)
        return
    from adp.converters.registry import formats as known
    from adp.converters.user_format import is_written

    rows = [
        {"name": name, "title": converter.title, "reads": True, "writes": is_written(converter),
         "container": converter.container, "version": converter.version}
        for name in known
        for converter in [known.get(name)]
    ]  # fmt: skip
    trainers = _trainers()
    if as_json:
        print_json({"formats": rows, "exporters": trainers})
        return
    shown = [
        (str(row["name"]), str(row["title"]), "read, write" if row["writes"] else "read",
         str(row["container"]))
        for row in rows
    ]  # fmt: skip
    print_table(("name", "title", "directions", "container"), shown, fold=["name", "title"])
    console().print("\nfor trainers: adp export STORE --to NAME --set OPTION=VALUE -o OUT")
    heads = ("name", "title", "takes", "mask", "file")
    rows_of_trainers = [[str(row[head]) for head in heads] for row in trainers]
    print_table(heads, rows_of_trainers, fold=["name", "title"])


def list_datasets(*, as_json: bool) -> None:
    """List the data sets that have a recipe: names for --from."""
    from adp.converters.datasets.catalogue import names, shipped

    recipes = [shipped(name).recipe for name in names()]
    rows = [
        {"name": recipe.name, "title": recipe.title, "source": recipe.source,
         "rows": recipe.rows, "purpose": recipe.purpose, "license": recipe.license,
         "may_publish": recipe.may_publish, "reader": recipe.reader,
         "dialect": "by run" if isinstance(recipe.dialect, tuple) else recipe.dialect}
        for recipe in recipes
    ]  # fmt: skip
    if as_json:
        print_json({"datasets": rows})
        return
    heads = ("name", "title", "rows", "license", "reader", "dialect")
    shown = [[str(row[head] or "") for head in heads] for row in rows]
    print_table(heads, shown, fold=["name", "title"])


def list_dialects(*, as_json: bool) -> None:
    """List the grammars of actions in texts: names for --dialect."""
    from adp.converters.text_calls.registry import dialects

    rows = [
        {"name": it.name, "title": it.title, "automatic": it.automatic, "example": it.example}
        for it in dialects()
    ]
    if as_json:
        print_json({"dialects": rows})
        return
    shown = [
        (str(row["name"]), str(row["title"]), "yes" if row["automatic"] else "when named")
        for row in rows
    ]
    print_table(("name", "title", "automatic"), shown, fold=["title"])


def _trainers() -> list[dict[str, Any]]:
    """The exporters for trainers."""
    from adp.trainers.export.registry import exporters

    return [
        {"name": exporter.name, "title": exporter.title, "takes": exporter.takes,
         "mask": exporter.mask, "file": exporter.file,
         "options": sorted(exporter.options.model_fields)}
        for exporter in exporters.all()
    ]  # fmt: skip
