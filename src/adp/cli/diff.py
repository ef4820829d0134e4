"""``adp diff``: what two curations kept."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer
from rich.text import Text

from adp.cli.text import console, epilog, light_table, print_json, visible

EPILOG = epilog("adp diff dataset-1 dataset-2", 2, 5)


def diff(
    a: Annotated[str, typer.Argument(metavar="A", help="A curated store, or any store.")],
    b: Annotated[str, typer.Argument(metavar="B", help="The other one.")],
    examples: Annotated[
        int, typer.Option(min=0, metavar="N", help="Trajectories to name in each line.")
    ] = 3,
    stages: Annotated[
        bool, typer.Option("--stages", help="Tell stages apart, but not reasons.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the difference as JSON.")] = False,
) -> None:
    """Compare what two curations kept: a line for each way from A to B, with examples.

    Trajectories are the same when their ids are. Of a store that no recipe made, every
    trajectory counts as kept.
    """
    from adp.curation.diff import diff as run

    result = run(a, b, examples=examples, detail=not stages)
    if as_json:
        print_json(asdict(result))
        return
    screen = console()
    screen.print(f"{result.same:,} the same, {result.changed:,} changed")
    heads = (f"in {visible(a)}", f"in {visible(b)}", "such as")
    table = light_table("count", *heads, right=["count"], fold=heads)
    for cell in result.cells:
        words = (cell["a"], cell["b"], ", ".join(cell["examples"]))
        table.add_row(f"{cell['count']:,}", *(Text(visible(word)) for word in words))
    screen.print(table)
    for name, count in result.columns.items():
        screen.print(Text(f"{visible(name)}: {count:,} have another value"), soft_wrap=True)
