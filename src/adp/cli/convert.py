"""``adp convert``: files into a store."""

from __future__ import annotations

from typing import Annotated

import typer

from adp.cli.losses_text import print_losses
from adp.cli.manifest_text import equation, row_counts, stored, summary, top
from adp.cli.options import DialectName, FollowLinks, JsonCounts, NamesOfTools, Workers
from adp.cli.parsed_text import parsed_lines
from adp.cli.text import (
    console,
    counted,
    epilog,
    human_size,
    nothing_new,
    print_json,
    progress_bar,
    say,
)
from adp.converters import run
from adp.converters.files.limits import FILE_BYTES, RECORD_BYTES, ConvertLimits
from adp.converters.session_folders import agent_name, look
from adp.stores.checks.kept_text import KeptAsText, kept_as_text
from adp_schema import location
from adp_schema.jsontext import MAX_DEPTH
from adp_schema.manifest import Manifest

EPILOG = epilog("adp convert logs/ -o my_store", 2, 3, 4, 5, 9)

RecipeFiles = Annotated[
    list[str] | None,
    typer.Option(metavar="FILE", help="YAML that describes a data set; may be given again."),
]
MaxRecordBytes = Annotated[int, typer.Option(min=1, metavar="N", help="Reject larger records.")]
MaxDepth = Annotated[
    int, typer.Option(min=1, max=MAX_DEPTH, metavar="N", help="Reject deeper nesting.")
]
DatasetName = Annotated[str | None, typer.Option(metavar="NAME", help="Name of the data set.")]
LicenseName = Annotated[
    str | None, typer.Option("--license", metavar="LICENSE", help="License of the content.")
]
MaxDecompressedBytes = Annotated[
    int, typer.Option(min=1, metavar="N", help="Of a compressed file read no more than this.")
]


def convert(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="SRC...",
            help="Files, folders, patterns such as 'logs/**/*.jsonl', - for standard input, the "
            "sessions of an agent, such as claude-code:, or a data set on the Hugging Face Hub, "
            "hf://datasets/OWNER/NAME[@REVISION][/PATH], or a URL such as s3://BUCKET/PATH.",
        ),
    ],
    out: Annotated[
        str, typer.Option("--out", "-o", metavar="STORE", help="Folder of the new store.")
    ],
    format_name: Annotated[
        str | None,
        typer.Option("--from", metavar="FORMAT", help="Format of the input; see: adp formats."),
    ] = None,
    workers: Workers = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Stop at the first reject or loss.")
    ] = False,
    keep_raw: Annotated[
        bool, typer.Option("--keep-raw", help="Keep the raw records in the store as well.")
    ] = False,
    dataset: DatasetName = None,
    license_name: LicenseName = None,
    since: Annotated[
        str | None,
        typer.Option(metavar="OLD", help="Leave out what this earlier store holds already."),
    ] = None,
    follow_links: FollowLinks = False,
    dialect: DialectName = None,
    tool_names: NamesOfTools = None,
    max_record_bytes: MaxRecordBytes = RECORD_BYTES,
    max_depth: MaxDepth = MAX_DEPTH,
    max_decompressed_bytes: MaxDecompressedBytes = FILE_BYTES,
    recipe: RecipeFiles = None,
    as_json: JsonCounts = False,
) -> None:
    """Convert traces, logs and data sets into a store.

    The format is recognised by itself; so are gz, zst, zip and tar. A record that cannot be
    converted is set aside with its reason and stops nothing; see adp rejects. A stopped run goes
    on when it is called again. In folders, hidden files and stores are passed over, and links
    that lead out of them are not followed.
    """
    options = run.ConvertOptions(
        *(format_name, workers, strict, keep_raw, dataset, license_name),
        limits=ConvertLimits(max_record_bytes, max_depth, max_decompressed_bytes),
        since=since,
        follow_links=follow_links,
        dialect=dialect,
        recipes=tuple(recipe or ()),
        tool_names=tool_names or "source",
    )
    if not as_json:
        list_sessions(sources)
    with nothing_new(as_json=as_json):
        with progress_bar("converting", quiet=as_json) as progress:
            manifest = run.convert(sources, out, options=options, progress=progress)
        if as_json:
            print_json(summary(manifest, out))
        else:
            report(manifest, out)


def list_sessions(sources: list[str]) -> None:
    """Say what the folders of the agents that are named hold."""
    for source in sources:
        name = agent_name(source)
        for item in look(name) if name else ():
            size = human_size(item.size)
            say(f"{name}: {item.folder}: {counted(item.files, 'file')}, {size}")


def report(manifest: Manifest, out: str) -> None:
    """Print what became of the records."""
    screen = console()
    screen.print(equation(manifest))
    say(row_counts(manifest))
    screen.print(
        f"{human_size(read_bytes(manifest, out))} read, {human_size(stored(manifest))} written"
    )
    if rejected := manifest.counts.rejected:
        were = "record was" if rejected == 1 else "records were"
        line = f"{rejected:,} {were} REJECTED; look at {'it' if rejected == 1 else 'them'} with"
        say(f"{line}: adp rejects {out}", "bold red")
    for line in parsed_lines(manifest):
        say(line)
    if line := kept_line(kept_as_text(out, manifest), out):
        say(line, "yellow")
    top("reason", manifest.reasons)
    print_losses(manifest.losses)
    top("kept, not understood", manifest.unknown)
    say(f"next: adp info {out}")


def kept_line(kept: KeptAsText, out: str) -> str:
    """One sentence on calls and turns of the environment that were kept as text, if there are."""
    if not (kept.calls or kept.outputs):
        return ""
    where = "" if kept.complete else f"of the first {kept.steps:,} steps, "
    calls = counted(kept.calls, "text of the agent looks", "texts of the agent look")
    outputs = counted(kept.outputs, "turn of the user looks", "turns of the user look")
    what = [f"{calls} like a call"] if kept.calls else []
    what += [f"{outputs} like the output of a tool"] if kept.outputs else []
    return f"{where}{' and '.join(what)}; kept as text, see: adp validate {out}"


def read_bytes(manifest: Manifest, out: str) -> int:
    """Bytes of the inputs on disk."""
    total = 0
    for shard in manifest.tables["sources"]:
        # Not read_table, which imports pyarrow.dataset, and pandas where it is installed.
        with location.open_parquet(location.join(out, shard.path)) as file:
            total += sum(file.read(["size"])["size"].to_pylist())
    return total
