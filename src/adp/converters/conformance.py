"""Whether a format keeps or reports every leaf of the records of some files: a proof by change.

Each leaf of a record is changed, and the record is read again. When other rows come out, a column
holds the leaf, or it decides what the record is; when none do, the report of losses must name it.
A change that is refused proves nothing, so others are tried that the format may take.
"""

from __future__ import annotations

import json
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
from adp.converters.other_values import SampleValues, other_values
from adp.converters.plan import choose
from adp.converters.planned_file import PlannedFile
from adp.converters.record_errors import as_record_error
from adp.converters.registry import formats
from adp.converters.row_differences import EXTRA, FORM, LOST, differences, kept_in, verdict_of
from adp.converters.session_folders import resolve
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
REFUSED = "refused when changed"
UNTESTED = "untested"
SKIPPED = "skipped"

OUTCOMES = {
    "column": "a column holds it",
    EXTRA: "the column `extra` holds it",
    FORM: "how the source wrote it, kept for writing it again",
    DECIDES: "it decides which rows come out",
    REPORTED: "not kept, and the report of losses says so",
    REFUSED: "the format takes no other value there, so whether it is kept does not show",
    UNTESTED: "it is only in records that are rejected",
    SKIPPED: "it is only in records that are skipped, so it was not tried",
    SILENT: "neither kept nor reported: a fault of the format",
}
"""What may become of a leaf -> what that means."""

_ORDER = (SILENT, REPORTED, DECIDES, FORM, EXTRA, "column", REFUSED)


@dataclass
class LeafPath:
    """What becomes of the leaves at one path.

    Attributes:
        path: where they are, with ``*`` for the places in lists.
        outcome: a key of `OUTCOMES`; of leaves with several, the worst; that a change was refused
            stands only where no leaf shows more.
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
        used: of these, records that became trajectories.
        rejected: of these, records that were rejected; the others were skipped.
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
    rejected: int = 0
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
    samples = _sample_values(files, limits)
    untested: dict[str, LeafPath] = {}
    for file in files:
        report.files += 1
        for piece in file.pieces:
            for place, trial in _trials(converter, piece, limits, report, untested):
                trial.run(paths, place, tries, samples)
        progress.advance(file.size)
    report.paths = [*paths.values(), *(untested[path] for path in untested if path not in paths)]
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


def _sample_values(files: Sequence[PlannedFile], limits: ConvertLimits) -> SampleValues:
    """The values that the records of all files have."""
    samples = SampleValues()
    for piece in (piece for file in files for piece in file.pieces):
        for frame in framing.frames(piece, limits) if piece.framing not in SIDE_FRAMINGS else ():
            for leaf in _leaves_of_frame(frame, limits):
                samples.add(leaf)
    return samples


def _leaves_of_frame(frame: Frame, limits: ConvertLimits) -> list[Leaf]:
    """The leaves of a record that may be rejected; none when it is no JSON."""
    try:
        frame.check(limits)
        return list(leaves_of(json.loads(jsontext.sanitise(frame.data))))
    except (SkipRecordError, RecordError, ValueError, RecursionError):
        return []


def _trials(
    converter: Converter,
    piece: ByteRange,
    limits: ConvertLimits,
    report: ConformanceReport,
    untested: dict[str, LeafPath],
) -> Iterator[tuple[str, _Trial]]:
    """The records that can be used, each with its place; the others are counted.

    Of those, the paths are noted in ``untested``.
    """
    if piece.framing in SIDE_FRAMINGS:  # read with the file that it belongs to
        return
    side_files: Mapping[str, bytes]
    side_files, fault = SideContents(limits).of(piece)
    for frame in framing.frames(piece, limits):
        report.records += 1
        place = f"{piece.source_file}#{frame.number}"
        try:
            frame.check(limits)
            if fault:
                raise RecordError(fault)
            trial = _Trial(converter, frame, side_files, report)
        except (SkipRecordError, RecordError) as error:
            reason = getattr(error, "reason", None) or str(error)
            report.reasons[reason] = report.reasons.get(reason, 0) + 1
            rejected = isinstance(error, RecordError)
            report.rejected += rejected
            for leaf in _leaves_of_frame(frame, limits):
                path = general_path(leaf.path)
                row = untested.setdefault(path, LeafPath(path, SKIPPED, example=place))
                if rejected and row.outcome == SKIPPED:
                    row.outcome, row.example = UNTESTED, place
        else:
            report.used += 1
            yield place, trial
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

    def run(
        self, paths: dict[str, LeafPath], place: str, tries: int, samples: SampleValues
    ) -> None:
        """Try the leaves of those paths that were not tried often enough."""
        for leaf in leaves_of(self._record):
            path = general_path(leaf.path)
            row = paths.setdefault(path, LeafPath(path, _ORDER[-1]))
            if tries and row.tried >= tries:
                continue
            outcome, columns = self._outcome(leaf, samples)
            if not row.tried or _ORDER.index(outcome) < _ORDER.index(row.outcome):
                row.outcome, row.example = outcome, place
            row.tried += 1
            row.columns += [column for column in columns if column not in row.columns]

    def _outcome(self, leaf: Leaf, samples: SampleValues) -> tuple[str, list[str]]:
        """What becomes of a leaf, by the first other value that the format takes.

        Of a few words two may mean the same, so such a leaf is lost only if no word shows it.
        """
        outcome, is_choice = REFUSED, samples.is_choice(leaf)
        for value in other_values(leaf, samples):
            try:
                changed = self._read(encode_record(with_value(self._record, leaf.keys, value)))
            except SkipRecordError:  # the format takes it, and says that this is no trajectory
                outcome = SILENT if outcome == SILENT else DECIDES
                continue
            except RecordError:
                continue
            result = self._compared(leaf, changed)
            if not is_choice or result[0] not in (SILENT, REPORTED):
                return result
            outcome = SILENT if SILENT in (outcome, result[0]) else REPORTED
        return outcome, []

    def _compared(self, leaf: Leaf, changed: Reading) -> tuple[str, list[str]]:
        """What becomes of a leaf, by the rows that come out when it is changed."""
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
