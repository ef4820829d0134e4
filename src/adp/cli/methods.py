"""``adp methods``: the methods that come with this package, and what stands in one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from adp.cli.options import JsonReport
from adp.cli.text import epilog, print_json, print_table, say
from adp.workflows.methods import MethodFile, read_method, shipped_methods

EPILOG = epilog("adp methods B3_coreset_hybrid", 2, 3)

MethodName = Annotated[
    str | None, typer.Argument(metavar="METHOD", help="Name of a method, or a YAML file.")
]
OfSet = Annotated[
    str | None, typer.Option("--set", metavar="SET", help="Only those of a set: code, doc, quick.")
]


def methods(name: MethodName = None, of: OfSet = None, as_json: JsonReport = False) -> None:
    """List the methods that adp compare knows, or show one.

    A method is a recipe of curation and a configuration of training in one YAML file. The sets are
    those of SAGE's code (16), of its documentation (10), and of its quick comparison (4).
    """
    if name is not None:
        return show_method(name, as_json=as_json)
    shipped = {key: read_method(path) for key, path in shipped_methods(of).items()}
    if as_json:
        print_json({"methods": [plain_method(method) for method in shipped.values()]})
        return
    rows = [
        (method.name, ", ".join(method.sets), method.about, ", ".join(method.variables))
        for method in shipped.values()
    ]
    heads = ("method", "sets", "what it does", "variables (--set)")
    print_table(heads, rows, fold=["what it does", "variables (--set)"])


def show_method(name: str, *, as_json: bool) -> None:
    """Show a method: its file, or with JSON what it comes to."""
    method = read_method(name)
    if as_json:
        print_json(plain_method(method))
        return
    path = shipped_methods().get(name, name)
    say(Path(path).read_text(encoding="utf-8").rstrip())


def plain_method(method: MethodFile) -> dict[str, Any]:
    """A method as JSON, with its variables put in."""
    return method.model_dump(mode="json", exclude={"method"})
