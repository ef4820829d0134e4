"""``adp diff``: what two curations kept."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from adp.cli.text import epilog, print_json, print_table, say, visible
from adp.curation.diff import diff as run

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
    result = run(a, b, examples=examples, detail=not stages)
    if as_json:
        print_json(asdict(result))
        return
    say(f"{result.same:,} the same, {result.changed:,} changed")
    heads = (f"in {visible(a)}", f"in {visible(b)}", "such as")
    rows = [
        (f"{cell['count']:,}", cell["a"], cell["b"], ", ".join(cell["examples"]))
        for cell in result.cells
    ]
    print_table(("count", *heads), rows, right=["count"], fold=heads)
    for name, count in result.columns.items():
        say(f"{name}: {count:,} have another value")
