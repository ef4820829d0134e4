"""``adp stats``: numbers about a store."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer
from rich.text import Text

from adp.cli.completeness_text import show_completeness
from adp.cli.options import StorePath
from adp.cli.text import (
    bars,
    console,
    epilog,
    one_line,
    pairs,
    print_json,
    print_table,
    share,
)
from adp.stores.completeness import completeness_figures
from adp.stores.stats import GROUPINGS, GroupStats, Recorded
from adp.stores.stats import stats as count
from adp_schema.store import Store

EPILOG = epilog("adp stats my_store --by dataset,model", 2, 5)


def stats(
    path: StorePath,
    by: Annotated[
        str, typer.Option(help=f"Columns to group by, with commas: {', '.join(GROUPINGS)}.")
    ] = "dataset,agent",
    as_json: Annotated[bool, typer.Option("--json", help="Print the numbers as JSON.")] = False,
) -> None:
    """Count steps, calls, errors, tokens and success, by data set and agent.

    Every rate comes with the share of rows that record it. Branches are left out.
    """
    names = [name.strip() for name in by.split(",") if name.strip()]
    groups = count(Store.open(path), names)
    figures = completeness_figures(Store.open(path))
    if as_json:
        complete = [asdict(row) for row in figures]
        print_json({"groups": [asdict(group) for group in groups], "completeness": complete})
        return
    if not groups:
        console().print("the store holds no trajectories")
    for index, group in enumerate(groups):
        if index:
            console().print()
        report(group)
    console().print()
    show_completeness(figures)


def report(group: GroupStats) -> None:
    """Print the numbers of one group."""
    screen = console()
    key = ", ".join(f"{name} {value or '(none)'}" for name, value in group.key.items())
    screen.print(Text(one_line(key) or "all", "bold underline"))
    size = f"trajectories {group.trajectories:,}, steps {group.steps:,}, calls {group.calls:,}"
    rows = [
        ("size", size),
        ("success", rate(group.success)),
        ("reward", mean(group.reward)),
        ("errors", errors(group.error_results, group.known_results, group.results)),
    ]
    titles = {
        "tokens_in": "tokens in",
        "tokens_out": "tokens out",
        "tokens_cached": "tokens cached",
        "cost_usd": "cost",
    }
    for name, title in titles.items():
        if name in group.usage:
            rows.append((title, usage(group.usage[name], money=name == "cost_usd")))
    screen.print(pairs(rows))
    if group.tools:
        tools = [
            (one_line(tool.name), f"{tool.calls:,}", f"{tool.errors:,}" if tool.known else "-",
             share(tool.errors, tool.known) if tool.errors < tool.known or tool.known == tool.calls
             else "-")
            for tool in group.tools
        ]  # fmt: skip
        numbers = ("calls", "errors", "rate")
        screen.print()
        print_table(("tool", *numbers), tools, right=numbers, fold=["tool"])
    for title, buckets in group.histograms.items():
        screen.print()
        screen.print(Text(title, "bold"))
        for line in bars(buckets, screen.width):
            screen.print(line)


def rate(value: Recorded) -> str:
    """A share, with how many rows record it."""
    return _recorded(value, share(value.total or 0, value.recorded))


def mean(value: Recorded) -> str:
    """A mean, with how many rows record it."""
    return _recorded(value, f"{value.mean or 0:.3g} on average")


def _recorded(value: Recorded, text: str) -> str:
    if value.total is None:
        return "not recorded"
    return f"{text} ({value.recorded:,} of {value.of:,} record it)"


def errors(wrong: int, known: int, results: int) -> str:
    """The share of results that are errors, with how many results say so."""
    if not known:
        return "not recorded"
    if wrong == known < results:  # the source marks failures only
        return (
            f"{wrong:,} of {results:,} results are marked as errors; none is marked as free of one"
        )
    return f"{share(wrong, known)} of results ({known:,} of {results:,} say it)"


def usage(value: Recorded, *, money: bool) -> str:
    """A sum over model turns, with the share of turns that record it."""
    if value.total is None:
        return "not recorded"
    amount = f"${value.total:,.4f}" if money else f"{value.total:,.0f}"
    return f"{amount} ({share(value.recorded, value.of)} of model turns record it)"
