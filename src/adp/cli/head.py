"""``adp head``: the first trajectories."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import Annotated

import typer
from rich.text import Text

from adp.cli.options import Count, StorePath
from adp.cli.text import console, epilog, light_table, one_line, print_json, visible
from adp.stores.lookup import Summary
from adp.stores.lookup import head as first_ones
from adp_schema.store import Store

EPILOG = epilog("adp head my_store -n 5", 2, 5)
NUMBERS_WIDTH = 36
"""Width of the columns between the id and the first words."""
ROOMY = 20
"""Width from which the first words are worth showing."""


def head(
    path: StorePath,
    count: Count = 10,
    as_json: Annotated[bool, typer.Option("--json", help="Print them as JSON.")] = False,
) -> None:
    """List the first trajectories, one a line."""
    report(first_ones(Store.open(path), count), as_json=as_json)


def report(summaries: list[Summary], *, as_json: bool) -> None:
    """Print one line a trajectory."""
    if as_json:
        print_json({"trajectories": [asdict(summary) for summary in summaries]})
        return
    numbers = ["steps", "calls", "errors"]
    screen = console()
    longest = max((len(visible(summary.trajectory_id)) for summary in summaries), default=0)
    room = screen.width - longest - NUMBERS_WIDTH
    roomy = room >= ROOMY
    last = ["first words"] if roomy else []
    table = light_table("id", *numbers, "success", *last, right=numbers, fold=["id"])
    words = {True: Text("yes", "green"), False: Text("no", "red"), None: Text("-", "dim")}
    for summary in summaries:
        row = [
            Text(visible(summary.trajectory_id)),
            Text(f"{summary.steps:,}"),
            Text(f"{summary.calls:,}"),
            _errors(summary.errors),
            words[summary.success],
            Text(one_line(summary.first_words, max(room, 1))),
        ]
        table.add_row(*row[: len(table.columns)])
    screen.print(table if summaries else "the store holds no trajectories")
    if summaries and not roomy:
        print("left out: first words, for which the terminal is too narrow", file=sys.stderr)


def _errors(count: int | None) -> Text:
    """A count of errors; a dash where no result says whether it is one."""
    return Text("-", "dim") if count is None else Text(f"{count:,}", "red" if count else "")
