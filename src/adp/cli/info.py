"""``adp info``: what a store holds."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from adp.cli.completeness_text import show_completeness
from adp.cli.losses_text import print_losses
from adp.cli.manifest_text import equation, stored, top
from adp.cli.options import StorePath
from adp.cli.text import (
    console,
    epilog,
    human_size,
    pairs,
    print_json,
    print_table,
    say,
)
from adp.stores.completeness import completeness_figures
from adp_schema.errors import DamagedStoreError
from adp_schema.location import is_url, open_parquet
from adp_schema.snapshot import Journal
from adp_schema.store import Store
from adp_schema.verification import sentence

EPILOG = epilog("adp info my_store --verify", 2, 5)


def info(
    path: StorePath,
    verify: Annotated[
        bool, typer.Option("--verify", help="Hash every file again and name those that differ.")
    ] = False,
    completeness: Annotated[
        bool, typer.Option("--completeness", help="Say what the sources did not record, too.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the contents as JSON.")] = False,
) -> None:
    """Say what a store holds: tables, data sets, counts, losses and where it comes from."""
    store = Store.open(path, check=False)
    wrong = store.damage(every_byte=True if verify else None)
    figures = completeness_figures(store) if completeness and not wrong else []
    if as_json:
        answer = contents(store, wrong if verify or wrong else None)
        complete = {"completeness": [asdict(row) for row in figures]} if completeness else {}
        print_json({**answer, **complete})
    else:
        report(store, damaged=bool(wrong))
        if figures:
            console().print()
            show_completeness(figures)
    if wrong:
        raise DamagedStoreError(sentence(store.root, wrong))
    if verify and not as_json:
        files = sum(len(shards) for shards in store.manifest.tables.values())
        are = "1 file is" if files == 1 else f"{files:,} files are"
        console().print(f"\nverified: {are} as the manifest says")


def contents(store: Store, wrong: dict[str, str] | None) -> dict[str, Any]:
    """The contents of a store for programs."""
    manifest = store.manifest
    branches = None if wrong else branches_of(store)
    answer: dict[str, Any] = {
        "store": store.root,
        "schema_version": manifest.schema_version,
        "counts": manifest.counts.model_dump(),
        **({"branches": branches} if branches else {}),
        "datasets": manifest.datasets,
        "tables": {
            table: {
                "rows": manifest.rows(table),
                "files": len(shards),
                "bytes": sum(shard.size for shard in shards),
            }
            for table, shards in manifest.tables.items()
        },
        "reasons": manifest.reasons,
        "losses": manifest.losses,
        "unknown": manifest.unknown,
        "lineage": [act.model_dump() for act in manifest.lineage],
    }
    if store.journal is not None:
        last = store.journal.last_append
        answer["growing"] = {
            "journal": store.journal.count,
            "bytes": store.journal.size,
            "last_append": None if last is None else at(last),
        }
    if wrong is not None:
        answer["damaged"] = wrong
    return answer


def branches_of(store: Store) -> int | None:
    """Number of trajectories that are branches of others: alternates, subagents, ...

    None for a URL: counting them would fetch what nobody asked for.
    """
    if is_url(store.root):
        return None
    count = 0
    for address in store.files("trajectories"):
        rows = open_parquet(address).read(columns=["parent_id"])
        count += sum(len(parents) - parents.null_count for parents in rows.columns)
    return count


def at(seconds: float) -> str:
    """A moment as text, UTC."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def journal_line(journal: Journal) -> str:
    """What a growing store holds beside its tables, and when it got something last."""
    if journal.count:
        line = f"{journal.count:,} of them are in the journal, not in the tables below"
    else:
        line = "the journal is empty"
    last = journal.last_append
    return line if last is None else f"{line}; last append {at(last)}"


def report(store: Store, *, damaged: bool) -> None:
    """Print the contents of a store; of a damaged one, what its manifest says."""
    manifest = store.manifest
    screen = console()
    size = stored(manifest) + (store.journal.size if store.journal is not None else 0)
    facts = [("store", store.root), ("schema", manifest.schema_version), ("size", human_size(size))]
    screen.print(pairs(facts))
    screen.print(equation(manifest))
    branches = None if damaged else branches_of(store)
    are = "is a branch" if branches == 1 else "are branches"
    among = f" ({branches:,} of them {are})" if branches else ""
    screen.print(f"trajectories {manifest.counts.trajectories:,}{among}")
    if store.journal is not None:
        say(f"still growing: {journal_line(store.journal)}", "yellow")
    screen.print()
    rows = [
        (name, f"{manifest.rows(name):,}", str(len(shards)),
         human_size(sum(shard.size for shard in shards)))
        for name, shards in manifest.tables.items()
    ]  # fmt: skip
    numbers = ("rows", "files", "size")
    print_table(("table", *numbers), rows, right=numbers)
    screen.print()
    counts = [(name, f"{count:,}") for name, count in manifest.datasets.items()]
    heads = ("data set", "trajectories")
    print_table(heads, counts, right=["trajectories"], fold=["data set"])
    top("reason", manifest.reasons)
    print_losses(manifest.losses)
    top("kept, not understood", manifest.unknown)
    for act in manifest.lineage:
        made_with = {**act.options, **act.versions}
        words = [f"{name} {value}" for name, value in made_with.items()]
        words += [f"parent {parent}" for parent in act.parents]
        screen.print()
        screen.print(pairs([(f"made by {act.act}", ", ".join(words))]))
