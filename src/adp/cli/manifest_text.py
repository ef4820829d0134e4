"""What commands print about the manifest of a store, for people and for programs."""

from __future__ import annotations

from rich.text import Text

from adp.cli.text import console, counted, human_size, one_line, print_table, say
from adp_schema.manifest import Manifest

TOP = 10
"""Names of a count that are shown."""

_NOUNS = {
    "trajectories": ("trajectory", "trajectories"),
    "steps": ("step", "steps"),
    "tool_calls": ("call", "calls"),
    "observations": ("observation", "observations"),
}


def summary(manifest: Manifest, out: str) -> dict[str, object]:
    """What a program wants to know about a conversion."""
    return {
        "store": out,
        "counts": manifest.counts.model_dump(),
        "rows": {table: manifest.rows(table) for table in sorted(manifest.tables)},
        "datasets": manifest.datasets,
        "reasons": manifest.reasons,
        "losses": manifest.losses,
        "unknown": manifest.unknown,
        "parsed": manifest.parsed,
        "bytes": stored(manifest),
    }


def equation(manifest: Manifest) -> Text:
    """The counts of the records: every one is used, skipped or rejected."""
    counts = manifest.counts
    return Text.assemble(
        f"records {counts.records:,} = used {counts.used:,} + skipped {counts.skipped:,} + ",
        (f"rejected {counts.rejected:,}", "bold red" if counts.rejected else ""),
    )


def print_sizes(manifest: Manifest) -> None:
    """Print the counts of a new store."""
    screen = console()
    screen.print(equation(manifest))
    rows = [f"{manifest.rows(table):,} {many}" for table, (_, many) in _NOUNS.items()]
    say(", ".join(rows))
    screen.print(f"{human_size(stored(manifest))} written")


def row_counts(manifest: Manifest) -> str:
    """How many trajectories, steps, calls and observations there are; or tasks without runs."""
    counts = [counted(manifest.rows(table), *noun) for table, noun in _NOUNS.items()]
    if (tasks := manifest.rows("tasks")) and not manifest.rows("trajectories"):
        counts = [counted(tasks, "task", "tasks"), *counts[:1]]
    return ", ".join(counts)


def top(title: str, counts: dict[str, int]) -> None:
    """Print the most frequent names of a count, if there are any."""
    if not counts:
        return
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    screen = console()
    screen.print()
    rows = [(f"{count:,}", one_line(name)) for name, count in ordered[:TOP]]
    print_table(("times", title), rows, right=["times"], fold=[title])
    if len(ordered) > TOP:
        screen.print(Text(f"and {counted(len(ordered) - TOP, 'more kind')}", "dim"))


def stored(manifest: Manifest) -> int:
    """Bytes of a store's tables."""
    return sum(shard.size for shards in manifest.tables.values() for shard in shards)
