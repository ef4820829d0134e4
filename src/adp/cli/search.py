"""``adp search``: the texts of a store with some words."""

from __future__ import annotations

import re
from dataclasses import asdict
from typing import Annotated, Literal

import typer
from rich.text import Text

from adp.cli.options import StorePath, Workers
from adp.cli.text import console, epilog, print_json, progress_bar, say, visible
from adp.stores.fulltext.search import SearchOptions, SearchResult, TextMatch
from adp.stores.fulltext.search import search as run
from adp_schema.store import Store

EPILOG = epilog("adp search my_store '\"no such file\" AND pip*' --in observation", 2, 5)


def search(
    path: StorePath,
    words: Annotated[list[str], typer.Argument(metavar="WORDS...", help="What to look for.")],
    where: Annotated[
        str | None,
        typer.Option(metavar="SQL", help="Only trajectories that meet this condition."),
    ] = None,
    places: Annotated[
        list[str] | None,
        typer.Option(
            "--in", metavar="PLACE", help="text, reasoning, arguments or observation; repeatable."
        ),
    ] = None,
    sources: Annotated[
        list[str] | None,
        typer.Option(
            "--source", metavar="WHO", help="system, user, agent or environment; repeatable."
        ),
    ] = None,
    count: Annotated[int, typer.Option("--limit", "-n", min=1, help="Matches at most.")] = 10,
    order: Annotated[
        Literal["rank", "store"],
        typer.Option(metavar="ORDER", help="rank: the best first; store: the first ones."),
    ] = "rank",
    index: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="Folder of the index; STORE.index by default."),
    ] = None,
    workers: Workers = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the matches as JSON.")] = False,
) -> None:
    """Search the texts of a store: words, "phrases", beginnings*, AND, OR, NOT, parentheses.

    The first search makes an index beside the store; later ones take a tenth of a second.
    """
    options = SearchOptions(
        where=where,
        places=places or (),
        sources=sources or (),
        limit=count,
        order=order,
        index=index,
        workers=workers,
    )
    with progress_bar("indexing", quiet=as_json) as progress:
        result = run(Store.open(path), " ".join(words), options, progress)
    if as_json:
        print_json(asdict(result))
    else:
        report(result)


def report(result: SearchResult) -> None:
    """Print two lines a match: where it is, and the words in their surroundings."""
    for match in result.matches:
        head = f"{match.trajectory_id}  [{match.step}] {match.place}"
        say(head + (f"  {match.name}" if match.name else ""), "bold")
        console().print(Text("  ").append(_marked(match)), soft_wrap=True)
    if not result.matches:
        say("nothing has these words")
    if result.more:
        say("there are more; see: --limit", "dim")
    if result.unsealed:
        say(f"not searched: {result.unsealed:,} trajectories that are in no shard yet", "yellow")


def _marked(match: TextMatch) -> Text:
    """The snippet on a line, with its words marked; control characters are shown as signs."""
    result, place = Text(), 0
    for begin, end in [*match.marks, (len(match.snippet), len(match.snippet))]:
        result.append(_line(match.snippet[place:begin]))
        result.append(_line(match.snippet[begin:end]), "bold green")
        place = end
    return result


def _line(text: str) -> str:
    return visible(re.sub(r"\s+", " ", text))
