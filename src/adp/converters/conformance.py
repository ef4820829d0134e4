"""Whether a format keeps or reports every leaf of the records of some files: a proof by change.

Each leaf of a record is changed, and the record is read again. When other rows come out, a column
holds the leaf, or it decides what the record is; when none do, the report of losses must name it.
"""

from __future__ import annotations

import json
import math
import resource
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from adp.converters import framing
from adp.converters.files.limits import ConvertLimits
from adp.converters.files.members import Unpacking
from adp.converters.frames import Frame
from adp.converters.framing import SIDE_FRAMINGS, ByteRange
from adp.converters.inputs import STDIN, collect
from adp.converters.leaves import (
    Leaf,
    Reading,
    covers,
    encode_record,
    read_records,
    source_path,
    with_value,
)
from adp.converters.plan import choose
from adp.converters.registry import formats
from adp.converters.row_differences import EXTRA, FORM, LOST, differences, kept_in, verdict_of
from adp.converters.session_folders import resolve
from adp.converters.shard import as_record_error
from adp.converters.side_contents import SideContents
from adp.core.progress import Progress, Silent
from adp_schema import jsontext
from adp_schema.errors import InputError, RecordError
from adp_schema.losses import general_path
from adp_schema.protocols import Converter, SkipRecordError
from adp_schema.scratch import ScratchFolder

DECIDES = "decides"
REPORTED = "reported"
SILENT = "silent"

OUTCOMES = {
    "column": "a column holds it",
    EXTRA: "the column `extra` holds it",
    FORM: "how the source wrote it, kept for writing it again",
    DECIDES: "it decides which rows come out, or whether the record can be read",
    REPORTED: "not kept, and the report of losses says so",
    SILENT: "neither kept nor reported: a fault of the format",
}
"""What may become of a leaf -> what that means."""

_ORDER = (SILENT, REPORTED, DECIDES, FORM, EXTRA, "column")


@dataclass
class LeafPath:
    """What becomes of the leaves at one path.

    Attributes:
        path: where they are, with ``*`` for the places in lists.
        outcome: a key of `OUTCOMES`; of leaves with several, the worst.
        tried: how many were changed.
        columns: which columns hold them, as ``table.column`` or ``table.extra.key``.
        example: ``file#record`` of the first one with this outcome.
    """

    path: str
    outcome: str
    tried: int = 0
    columns: list[str] = field(default_factory=list)
    example: str = ""


@dataclass
class ConformanceReport:
    """What was found out about a format.

    Attributes:
        format: its name.
        files: how many files were read.
        records: records read.
        used: of these, records that became trajectories; the others were skipped or rejected.
        reasons: reason for which a record was skipped or rejected -> how often.
        paths: a row a path, in order of first appearance.
        bytes: bytes of the records.
        cpu_seconds: CPU time of reading each record once.
        peak_bytes: largest memory of the process up to then.
    """

    format: str
    files: int = 0
    records: int = 0
    used: int = 0
    reasons: dict[str, int] = field(default_factory=dict)
    paths: list[LeafPath] = field(default_factory=list)
    bytes: int = 0
    cpu_seconds: float = 0.0
    peak_bytes: int = 0

    def silent(self) -> list[LeafPath]:
        """The paths that are lost in silence."""
        return [path for path in self.paths if path.outcome == SILENT]


def conformance(
    name: str,
    sources: Sequence[str],
    *,
    tries: int = 3,
    limits: ConvertLimits | None = None,
    progress: Progress | None = None,
) -> ConformanceReport:
    """Try the leaves of the records of some files.

    Args:
        name: a format by its name, or ``FILE.py:CONVERTER``.
        sources: files and folders on this machine.
        tries: how many leaves of one path are changed; 0 changes all of them.
        limits: limits of the conversion.
        progress: told the bytes of the files, and those done.

    Raises:
        UsageError: there is no such format.
        InputError: a source is missing or cannot be read.
    """
    if STDIN in sources:
        raise InputError("conformance reads files and folders; write standard input into a file")
    limits, progress = limits or ConvertLimits(), progress or Silent()
    converter = formats.get(name)
    report = ConformanceReport(converter.name)
    paths: dict[str, LeafPath] = {}
    scratch = ScratchFolder("unpacked")  # as long as this function runs
    unpacking = Unpacking(scratch.path, limits)
    files = choose(collect(resolve([*sources]), unpacking=unpacking), name, None, limits)
    progress.total(sum(file.size for file in files))
    for file in files:
        report.files += 1
        for piece in file.pieces:
            for place, trial in _trials(converter, piece, limits, report):
                trial.run(paths, place, tries)
        progress.advance(file.size)
    report.paths = list(paths.values())
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    report.peak_bytes = used if sys.platform == "darwin" else used << 10
    return report


def leaves_of(value: Any, keys: tuple[str | int, ...] = ()) -> Iterator[Leaf]:
    """All leaves of a record: scalars, nulls, empty objects and empty lists."""
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from leaves_of(item, (*keys, key))
    elif isinstance(value, list) and value:
        for index, item in enumerate(value):
            yield from leaves_of(item, (*keys, index))
    else:
        yield Leaf(keys, source_path(keys), value)


def _trials(
    converter: Converter, piece: ByteRange, limits: ConvertLimits, report: ConformanceReport
) -> Iterator[tuple[str, _Trial]]:
    """The records that can be used, each with its place; the others are counted."""
    if piece.framing in SIDE_FRAMINGS:  # read with the file that it belongs to
        return
    side_files: Mapping[str, bytes]
    side_files, fault = SideContents(limits).of(piece)
    for frame in framing.frames(piece, limits):
        report.records += 1
        try:
            frame.check(limits)
            if fault:
                raise RecordError(fault)
            trial = _Trial(converter, frame, side_files, report)
        except (SkipRecordError, RecordError) as error:
            reason = getattr(error, "reason", None) or str(error)
            report.reasons[reason] = report.reasons.get(reason, 0) + 1
        else:
            report.used += 1
            yield f"{piece.source_file}#{frame.number}", trial
        side_files, fault = {}, ""


class _Trial:
    """Tries the leaves of one record."""

    def __init__(
        self,
        converter: Converter,
        frame: Frame,
        side_files: Mapping[str, bytes],
        report: ConformanceReport,
    ) -> None:
        self._converter, self._side_files = converter, side_files
        self._marked = not jsontext.is_valid(frame.data)
        try:
            data = jsontext.sanitise(frame.data) if self._marked else frame.data
            self._record = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise as_record_error(error) from error
        start = time.process_time()
        self._base = self._read(data)
        report.cpu_seconds += time.process_time() - start
        report.bytes += len(data)
        self._plain: Reading | None = None

    def run(self, paths: dict[str, LeafPath], place: str, tries: int) -> None:
        """Try the leaves of those paths that were not tried often enough."""
        for leaf in leaves_of(self._record):
            path = general_path(leaf.path)
            row = paths.setdefault(path, LeafPath(path, _ORDER[-1]))
            if tries and row.tried >= tries:
                continue
            outcome, columns = self._outcome(leaf)
            if not row.tried or _ORDER.index(outcome) < _ORDER.index(row.outcome):
                row.outcome, row.example = outcome, place
            row.tried += 1
            row.columns += [column for column in columns if column not in row.columns]

    def _outcome(self, leaf: Leaf) -> tuple[str, list[str]]:
        try:
            changed = self._read(
                encode_record(with_value(self._record, leaf.keys, _another(leaf.value)))
            )
        except (SkipRecordError, RecordError):
            return DECIDES, []
        if self._plain is None:  # written as `json` writes it, as the changed one is
            self._plain = self._read(encode_record(self._record))
        places = differences(self._plain.rows, changed.rows)
        if places is None:
            return DECIDES, []
        verdict = verdict_of(self._plain.rows, changed.rows, places)
        if verdict == LOST:
            reported = [loss["path"] for loss in (*self._base.losses, *changed.losses)]
            return (REPORTED if any(covers(p, [leaf.path]) for p in reported) else SILENT), []
        columns = kept_in(self._plain.rows, changed.rows, places, leaf.value, verdict)
        return (verdict if verdict in (EXTRA, FORM) else "column"), columns

    def _read(self, data: bytes) -> Reading:
        try:
            return read_records(
                self._converter, [data], marked=self._marked, side_files=self._side_files
            )
        except SkipRecordError:
            raise
        except Exception as error:  # as in a conversion, whatever a format raises is a reject
            raise as_record_error(error) from error


def _another(value: Any) -> Any:
    """A value of the same type that differs."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, str):
        return f"{value}-2"
    if isinstance(value, int):
        return value + 1
    if isinstance(value, float):
        following = math.nextafter(value + 1, math.inf)
        return following if math.isfinite(following) else 0.5
    if value is None:
        return "text"
    return ["text"] if isinstance(value, list) else {"key": "text"}
