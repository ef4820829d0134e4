"""``adp convert``: files into a store."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from adp.cli.text import console, counted, epilog, human_size, light_table, one_line, print_json
from adp.converters.files.limits import FILE_BYTES, RECORD_BYTES, ConvertLimits
from adp.core.progress import ConsoleProgress, Silent
from adp.stores.checks.kept_text import KeptAsText, kept_as_text
from adp_schema.errors import NothingNewError
from adp_schema.jsontext import MAX_DEPTH
from adp_schema.manifest import Manifest

if TYPE_CHECKING:
    from adp.converters.run import ConvertOptions

EPILOG = epilog("adp convert logs/ -o my_store", 2, 3, 4, 5, 9)
TOP = 10

MaxRecordBytes = Annotated[int, typer.Option(min=1, metavar="N", help="Reject larger records.")]
MaxDepth = Annotated[
    int, typer.Option(min=1, max=MAX_DEPTH, metavar="N", help="Reject deeper nesting.")
]
MaxDecompressedBytes = Annotated[
    int, typer.Option(min=1, metavar="N", help="Of a compressed file read no more than this.")
]
FollowLinks = Annotated[
    bool, typer.Option("--follow-links", help="Read what links lead to, outside of SRC as well.")
]


def convert(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="SRC...",
            help="Files, folders, patterns such as 'logs/**/*.jsonl', - for standard input, the "
            "sessions of an agent, such as claude-code:, or a data set on the Hugging Face Hub, "
            "hf://datasets/OWNER/NAME[@REVISION][/PATH].",
        ),
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
    since: Annotated[
        str | None,
        typer.Option(metavar="OLD", help="Leave out what this earlier store holds already."),
    ] = None,
    follow_links: FollowLinks = False,
    max_record_bytes: MaxRecordBytes = RECORD_BYTES,
    max_depth: MaxDepth = MAX_DEPTH,
    max_decompressed_bytes: MaxDecompressedBytes = FILE_BYTES,
    as_json: Annotated[bool, typer.Option("--json", help="Print the counts as JSON.")] = False,
) -> None:
    """Convert traces, logs and data sets into a store.

    The format is recognised by itself; so are gz, zst and zip. A record that cannot be converted
    is set aside with its reason and stops nothing; see adp rejects. A stopped run goes on when it
    is called again. In folders, hidden files and stores are passed over, and links that lead out
    of them are not followed.
    """
    from adp.converters.run import ConvertOptions

    options = ConvertOptions(
        format=format_name,
        workers=workers,
        strict=strict,
        keep_raw=keep_raw,
        dataset=dataset,
        license=license_name,
        limits=ConvertLimits(max_record_bytes, max_depth, max_decompressed_bytes),
        since=since,
        follow_links=follow_links,
    )
    _convert(sources, out, options, as_json=as_json)


def _convert(sources: list[str], out: str, options: ConvertOptions, *, as_json: bool) -> None:
    from adp.converters import run

    if not as_json:
        list_sessions(sources)
    try:
        if as_json:
            manifest = run.convert(sources, out, options=options, progress=Silent())
            print_json(summary(manifest, out))
            return
        with ConsoleProgress("converting") as progress:
            manifest = run.convert(sources, out, options=options, progress=progress)
        report(manifest, out)
    except NothingNewError as nothing:
        if as_json:
            print_json({"store": None, "message": str(nothing)})
        else:
            console().print(str(nothing), soft_wrap=True)


def list_sessions(sources: list[str]) -> None:
    """Say what the folders of the agents that are named hold."""
    from adp.converters.session_folders import agent_name, look

    for source in sources:
        name = agent_name(source)
        for item in look(name) if name else ():
            size = human_size(item.size)
            line = f"{name}: {item.folder}: {counted(item.files, 'file')}, {size}"
            console().print(line, soft_wrap=True)


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


def report(manifest: Manifest, out: str) -> None:
    """Print what became of the records."""
    screen = console()
    screen.print(equation(manifest))
    nouns = {
        "trajectories": ("trajectory", "trajectories"),
        "steps": ("step", "steps"),
        "tool_calls": ("call", "calls"),
        "observations": ("observation", "observations"),
    }
    rows = [counted(manifest.rows(table), *words) for table, words in nouns.items()]
    screen.print(", ".join(rows), soft_wrap=True)
    screen.print(
        f"{human_size(read_bytes(manifest, out))} read, {human_size(stored(manifest))} written"
    )
    rejected = manifest.counts.rejected
    if rejected:
        were = "record was" if rejected == 1 else "records were"
        line = f"{rejected:,} {were} REJECTED; look at {'it' if rejected == 1 else 'them'} with"
        screen.print(Text(f"{line}: adp rejects {out}", "bold red"), soft_wrap=True)
    if line := kept_line(kept_as_text(Path(out), manifest), out):
        screen.print(Text(line, "yellow"), soft_wrap=True)
    top("reason", manifest.reasons)
    top("lost (path: reason)", manifest.losses)
    screen.print(f"next: adp info {out}", soft_wrap=True)


def kept_line(kept: KeptAsText, out: str) -> str:
    """One sentence on calls and turns of the environment that were kept as text, if there are."""
    if not (kept.calls or kept.outputs):
        return ""
    where = "" if kept.whole else f"of the first {kept.steps:,} steps, "
    what = [
        counted(kept.calls, "text of the agent looks", "texts of the agent look") + " like a call"
        if kept.calls
        else "",
        counted(kept.outputs, "turn of the user looks", "turns of the user look")
        + " like the output of a tool"
        if kept.outputs
        else "",
    ]
    text = " and ".join(filter(None, what))
    return f"{where}{text}; kept as text, see: adp validate {out}"


def equation(manifest: Manifest) -> Text:
    """The counts of the records: every one is used, skipped or rejected."""
    counts = manifest.counts
    return Text.assemble(
        f"records {counts.records:,} = used {counts.used:,} + skipped {counts.skipped:,} + ",
        (f"rejected {counts.rejected:,}", "bold red" if counts.rejected else ""),
    )


def top(title: str, counts: dict[str, int]) -> None:
    """Print the most frequent names of a count, if there are any."""
    if not counts:
        return
    table = light_table("times", title, right=["times"], fold=[title])
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    for name, count in ordered[:TOP]:
        table.add_row(f"{count:,}", Text(one_line(name)))
    screen = console()
    screen.print()
    screen.print(table)
    if len(ordered) > TOP:
        screen.print(Text(f"and {counted(len(ordered) - TOP, 'more kind')}", "dim"))


def stored(manifest: Manifest) -> int:
    """Bytes of a store's tables."""
    return sum(shard.size for shards in manifest.tables.values() for shard in shards)


def read_bytes(manifest: Manifest, out: str) -> int:
    """Bytes of the inputs on disk."""
    import pyarrow.parquet as pq

    shards = manifest.tables["sources"]
    columns = [pq.read_table(Path(out) / shard.path, columns=["size"])["size"] for shard in shards]
    return sum(size for column in columns for size in column.to_pylist())
