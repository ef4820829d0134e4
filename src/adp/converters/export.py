"""Writing a store back out as files of a format.

Files keep the relative paths of the inputs. A file of the same format keeps its layout too: one
array or one record a line, indentation, ASCII escapes, Parquet with its schema. Files of another
format get that format's usual layout. Files that belong to an input, such as the result of a trial,
are written again beside a file of the same format.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO, TypedDict, Unpack

from adp.converters import json_layout as styles
from adp.converters.branches import count
from adp.converters.export_names import (
    Sources,
    file_of,
    is_same,
    names_files,
    one_a_file,
    safe,
    target_names,
)
from adp.converters.files.writing import (
    compression_of,
    open_target,
    without_compression,
    written_whole,
)
from adp.converters.pairs import RecordPairs
from adp.converters.programs import PROGRAMS
from adp.converters.records import RecordWriter
from adp.converters.registry import formats
from adp.converters.session_writers.names import NamedRun
from adp.converters.trajectories_by_file import NAMING, TrajectoryFiles
from adp.converters.user_format import check_written
from adp.core.progress import Progress, Silent
from adp.core.tool_names.runs import ToolNaming
from adp.stores.locks import alone
from adp_schema.errors import (
    ConversionLossError,
    OutputExistsError,
    UsageError,
    unknown_name,
)
from adp_schema.losses import Losses
from adp_schema.model import Trajectory
from adp_schema.protocols import Converter
from adp_schema.store import Store
from adp_schema.verification import cannot_write


@dataclass
class ExportReport:
    """What an export wrote.

    Attributes:
        files: number of files.
        records: number of records in them.
        branches_left_out: branches, and rejected sides of preference pairs, that no record holds.
        losses: what the format could not hold: ``path: reason`` -> number of times.
        next: how a program goes on with the first session; None where the format has no program.
    """

    files: int = 0
    records: int = 0
    branches_left_out: int = 0
    losses: dict[str, int] = field(default_factory=dict)
    next: str | None = None


@dataclass(frozen=True)
class RecordOptions:
    """How the records of a format are written.

    Attributes:
        flavour: way to write it, where the format has several.
        single: write one file of this name instead of one a source file.
        strict: stop at the first loss.
        branches: which branches become records of their own, without the steps that they share
            with their run, where the format has no place for them in it. By default those that
            are runs (`adp.converters.branches.WHOLE`); the others, and rejected sides of
            preference pairs, are left out, which is a loss. True: all of them. False: no branch
            is written, in no place, and that is no loss.
        tool_names: names of tools and their arguments: ``adp`` for those of the Agent Data
            Protocol, ``source`` for those of the source. None leaves those of the store, but gives
            the format that a trajectory came from the names that it had.
        structured: write calls that stood in texts as calls of the format, also where that is the
            format they were read from; by default it gets its texts back, byte for byte.
    """

    flavour: str | None = None
    single: str | None = None
    strict: bool = False
    branches: bool | None = None
    tool_names: ToolNaming | None = None
    structured: bool = False


class RecordKeywords(TypedDict, total=False):
    """The fields of `RecordOptions` as keywords."""

    flavour: str | None
    single: str | None
    strict: bool
    branches: bool | None
    tool_names: ToolNaming | None
    structured: bool


@alone
def export(
    store: Store,
    to: str,
    out: str,
    *,
    progress: Progress | None = None,
    **given: Unpack[RecordKeywords],
) -> ExportReport:
    """Write the trajectories of a store as files of a format.

    Args:
        store: the store.
        to: name of the format.
        out: folder for the files; it must be empty or absent.
        progress: told how far it is, in trajectories.
        **given: any of the fields of `RecordOptions`, which says what each one is.

    Raises:
        UsageError: there is no such format or flavour, or it cannot be put into a single file.
        OutputExistsError: the folder holds something, or cannot be written.
        StoreError: two files of the store would get the same name.
        ConversionLossError: with ``strict``, the format cannot hold something.
    """
    options = RecordOptions(**given)
    single, strict, branches = options.single, options.strict, options.branches
    converter = formats.get(to)
    check_written(converter)
    _check_flavour(converter, options.flavour)
    _check_single(converter, single)
    folder = Path(out)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise OutputExistsError(f"{folder} is there and not empty; choose another -o")
    report, losses = ExportReport(), Losses()
    reporter = progress or Silent()
    sources = _sources(store)
    files = TrajectoryFiles(
        store,
        file_of(single, converter, sources),
        branches=branches is not False,
        columns=len(NamedRun._fields) if names_files(converter) else NAMING,
    )
    reporter.total(store.manifest.counts.trajectories - files.left_out)
    writer = _writer(store, converter, losses, options)
    program = PROGRAMS.get(converter.name)
    targets = target_names(files.names, converter, sources, single)
    try:
        for name, trajectories in files:
            source = None if single else sources.get(name)
            target = folder / targets[name]
            same = is_same(source, converter)
            side_folder = _side_folder(folder, name, source) if same else None
            scribe = _Scribe(converter, writer, losses, strict, reporter, side_folder, target)
            records = scribe.records(trajectories)
            if one_a_file(converter) or names_files(converter):
                first = list(islice(records, 1))
                if not first:  # a branch that is left out
                    continue
                records = chain(first, records)
            target.parent.mkdir(parents=True, exist_ok=True)
            with written_whole(target) as staged:
                report.records += _write(staged, target, records, source, converter)
            report.files += 1
            if program is not None and report.next is None:
                report.next = program.go_on(folder, targets[name])
    except OSError as error:
        raise cannot_write(folder, error) from error
    writer.finish()
    stop_at_loss(losses, strict, "the store", converter)
    report.branches_left_out = files.left_out + writer.left_out
    report.losses = dict(sorted(losses.counts.items()))
    return report


def _writer(
    store: Store, converter: Converter, losses: Losses, options: RecordOptions
) -> RecordWriter:
    """What makes records of the trajectories of a store."""
    pairs = RecordPairs(store.scan("pairs").collect().to_arrow() if store.files("pairs") else None)
    return RecordWriter(
        *(converter, losses),
        flavour=options.flavour,
        pairs=pairs,
        rows=options.branches is True,
        naming=options.tool_names,
        structured=options.structured,
    )


def stop_at_loss(losses: Losses, strict: bool, of: str | None, converter: Converter) -> None:
    """Take the losses of a trajectory.

    Raises:
        ConversionLossError: there is one, and ``strict`` says to stop.
    """
    items = losses.take()
    if strict and items:
        path, reason = items[0]["path"], items[0]["reason"]
        raise ConversionLossError(f"{of}: {converter.name} cannot hold {path}: {reason} (--strict)")


def _side_folder(folder: Path, name: str, source: dict[str, Any] | None) -> Path:
    """The folder that paths of side files are relative to, which have the names of the source."""
    path = "" if source is None else source["source_file"]
    return folder / safe(name.removesuffix(path)) if path and name.endswith(path) else folder


def _sources(store: Store) -> Sources:
    """The input files of a store by path."""
    rows = store.scan("sources").collect().to_dicts()
    return {row["source_file"]: row for row in rows}


def _check_flavour(converter: Converter, flavour: str | None) -> None:
    if flavour is None or flavour in converter.flavours:
        return
    if not converter.flavours:
        raise UsageError(f"the format {converter.name} has no flavours; leave out --flavour")
    raise UsageError(unknown_name("flavour", flavour, converter.flavours))


def _check_single(converter: Converter, single: str | None) -> None:
    if single is None:
        return
    if str(safe(single)) != single:
        raise UsageError(f"--single names a file in the folder of -o, not {single}")
    if one_a_file(converter):
        raise UsageError(f"{converter.name} has one session a file; leave out --single")


@dataclass
class _Scribe:
    """Turns trajectories into records.

    Attributes:
        converter: the format.
        writer: writes its records.
        losses: takes what the format cannot hold.
        strict: stop at the first loss.
        reporter: told how far it is.
        side_folder: folder for files that belong to an input; None when they are not written.
        target: the file that the records are written to.
    """

    converter: Converter
    writer: RecordWriter
    losses: Losses
    strict: bool
    reporter: Progress
    side_folder: Path | None
    target: Path

    def records(self, trajectories: Iterator[Trajectory]) -> Iterator[Any]:
        """The records, one a trajectory, or one a run with its branches."""
        for trajectory, record in self.writer.records(trajectories):
            if record is not None:
                self._side_files(trajectory)
                self._outcome(trajectory, record)
            stop_at_loss(self.losses, self.strict, trajectory.trajectory_id, self.converter)
            self.reporter.advance(count(trajectory))
            if record is not None:
                yield record

    def _side_files(self, trajectory: Trajectory) -> None:
        """Write the files that belong to a trajectory's file, where the format knows of any."""
        write = getattr(self.converter, "write_side_files", None)
        if write is None or trajectory.source_format != self.converter.name:
            return
        for name, data in write(trajectory).items():
            if self.side_folder is None:
                self.losses.add(f"$.side_files.{name}", "it is written beside its own file only")
                continue
            target = self.side_folder / safe(name)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)

    def _outcome(self, trajectory: Trajectory, record: Any) -> None:
        """Write what a format says of a run of another one in a file of its own."""
        outcome_file = getattr(self.converter, "outcome_file", None)
        if outcome_file is None or trajectory.source_format == self.converter.name:
            return
        written = outcome_file(trajectory, record, self.target.name)
        if written is None:
            return
        name, data, columns = written
        self.target.parent.mkdir(parents=True, exist_ok=True)
        (self.target.parent / name).write_bytes(data)
        self.losses.drop(columns)


def _write(
    staged: Path,
    target: Path,
    records: Iterator[Any],
    source: dict[str, Any] | None,
    converter: Converter,
) -> int:
    """Write one file and return the number of records; the name of ``target`` says how."""
    same = is_same(source, converter)
    framing = source["framing"] if source is not None and same else None
    if framing is None:
        framing = "parquet" if target.suffix == ".parquet" else converter.container
        suffix = without_compression(target).suffix
        if suffix in (".jsonl", ".ndjson") and framing != "session":
            framing = "jsonl"
    if framing == "sqlite":
        framing = "jsonl"  # no database is written
    if framing == "list":
        framing = "json_array"  # what stood beside the list is of no trajectory
    style = json.loads(source["style"]) if source is not None and same else default_style(framing)
    if framing == "json":
        # A file holds one document; several records, or none, need an array around them.
        first = list(islice(records, 2))
        framing = "json" if len(first) == 1 else "json_array"
        records = chain(first, records)
    if framing == "parquet":
        from adp.converters.parquet_rows import write_rows

        lines = (styles.lay_out(record, styles.DEFAULT, in_array=False) for record in records)
        return write_rows(staged, lines, style.get("schema"))
    compression = style.get("compression", "") if same else compression_of(target)
    with open_target(staged, compression) as file:
        if style.get("bom"):
            file.write(b"\xef\xbb\xbf")
        count = _write_records(file, records, framing, style)
        if style.get("final_newline", True):
            file.write(b"\n")
    return count


def default_style(framing: str) -> dict[str, Any]:
    """Layout of a file that has no source of its format: documents are indented by two."""
    if framing == "json_array":
        return {"layout": 2, "ascii": True}
    return {"layout": 2, "ascii": False} if framing == "json" else dict(styles.DEFAULT)


def _write_records(
    file: BinaryIO, records: Iterator[Any], framing: str, style: dict[str, Any]
) -> int:
    """Write the records with what stands between them, without the last newline."""
    array = framing == "json_array"
    layout = style.get("layout")
    indent = layout if array and isinstance(layout, int) else 0
    margin = b"\n" + b" " * indent if indent else b""
    between = b"," + (margin or (b"" if layout == "compact" else b" "))
    between = between if array else style.get("between", "\n").encode()
    count = 0
    for record in records:
        file.write((b"[" + margin if array else b"") if count == 0 else between)
        if framing == "session":
            lines = (styles.lay_out(line, style, in_array=False) for line in record)
            file.write(b"\n".join(lines))
            count += 1
            continue
        data = styles.lay_out(record, style, in_array=indent > 0)
        if framing == "jsonl" and b"\n" in data:
            data = styles.lay_out(record, {**style, "layout": "spaced"}, in_array=False)
        file.write(data)
        count += 1
    if array:
        file.write((b"\n" if indent else b"") + b"]" if count else b"[]")
    return count
