"""``adp convert``: files into a store."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from adp.cli.text import console, epilog, human_size, light_table, one_line, print_json
from adp.core.progress import Console, Silent
from adp_schema.manifest import Manifest

EPILOG = epilog("adp convert logs/ -o my_store", 2, 3, 4, 5)
TOP = 10


def convert(
    sources: Annotated[
        list[str],
        typer.Argument(metavar="SRC...", help="Files and folders to read."),
    ],
    out: Annotated[
        str, typer.Option("--out", "-o", metavar="STORE", help="Folder of the new store.")
    ],
    format_name: Annotated[
        str | None,
        typer.Option("--from", metavar="FORMAT", help="Format of the input; see: adp formats."),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Processes; one a core by default.")
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Stop at the first reject or loss.")
    ] = False,
    keep_raw: Annotated[
        bool, typer.Option("--keep-raw", help="Keep the raw records in the store as well.")
    ] = False,
    dataset: Annotated[
        str | None, typer.Option(metavar="NAME", help="Name of the data set.")
    ] = None,
    license_name: Annotated[
        str | None, typer.Option("--license", metavar="LICENSE", help="License of the content.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the counts as JSON.")] = False,
) -> None:
    """Convert traces, logs and data sets into a store.

    The format is recognised by itself. A record that cannot be converted is set aside with its
    reason and stops nothing; see adp rejects. A stopped run goes on when it is called again.
    """
    from adp.converters import run

    options = run.ConvertOptions(
        format=format_name,
        workers=workers,
        strict=strict,
        keep_raw=keep_raw,
        dataset=dataset,
        license=license_name,
    )
    if as_json:
        manifest = run.convert(sources, out, options=options, progress=Silent())
        print_json(summary(manifest, out))
        return
    with Console("converting") as progress:
        manifest = run.convert(sources, out, options=options, progress=progress)
    report(manifest, sources, out)


def summary(manifest: Manifest, out: str) -> dict[str, object]:
    """What a program wants to know about a conversion."""
    return {
        "store": out,
        "counts": manifest.counts.model_dump(),
        "rows": {table: manifest.rows(table) for table in sorted(manifest.tables)},
        "datasets": manifest.datasets,
        "reasons": manifest.reasons,
        "losses": manifest.losses,
        "bytes": stored(manifest),
    }


def report(manifest: Manifest, sources: list[str], out: str) -> None:
    """Print what became of the records."""
    screen = console()
    screen.print(equation(manifest))
    rows = [
        f"{manifest.rows(table):,} {word}"
        for table, word in (
            ("trajectories", "trajectories"),
            ("steps", "steps"),
            ("tool_calls", "calls"),
            ("observations", "observations"),
        )
    ]
    screen.print(", ".join(rows), soft_wrap=True)
    read = sum(size_of(Path(source)) for source in sources)
    screen.print(f"{human_size(read)} read, {human_size(stored(manifest))} written")
    rejected = manifest.counts.rejected
    if rejected:
        line = f"{rejected:,} records were REJECTED; look at them with: adp rejects {out}"
        screen.print(Text(line, "bold red"), soft_wrap=True)
    top("reason", manifest.reasons)
    top("lost (path: reason)", manifest.losses)
    screen.print(f"next: adp info {out}", soft_wrap=True)


def equation(manifest: Manifest) -> Text:
    """The counts of the records: every one is used, skipped or rejected."""
    counts = manifest.counts
    return Text.assemble(
        f"records {counts.records:,} = used {counts.used:,} + skipped {counts.skipped:,} + ",
        (f"rejected {counts.rejected:,}", "bold red" if counts.rejected else ""),
    )


def top(title: str, counted: dict[str, int]) -> None:
    """Print the most frequent names of a count, if there are any."""
    if not counted:
        return
    table = light_table("times", title, right=["times"], fold=[title])
    ordered = sorted(counted.items(), key=lambda item: (-item[1], item[0]))
    for name, count in ordered[:TOP]:
        table.add_row(f"{count:,}", Text(one_line(name)))
    screen = console()
    screen.print()
    screen.print(table)
    if len(ordered) > TOP:
        screen.print(Text(f"and {len(ordered) - TOP:,} more kinds", "dim"))


def stored(manifest: Manifest) -> int:
    """Bytes of a store's tables."""
    return sum(shard.size for shards in manifest.tables.values() for shard in shards)


def size_of(path: Path) -> int:
    """Bytes of a file, or of all files in a folder."""
    if path.is_file():
        return path.stat().st_size
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
