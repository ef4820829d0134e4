"""Converting one shard: what a worker does. It depends on its arguments only."""

from __future__ import annotations

import gc
import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec

from adp.converters import framing
from adp.converters.files.limits import KEPT_BYTES, ConvertLimits
from adp.converters.files.streams import beginning, check_unchanged, is_unchanged, unreadable
from adp.converters.frames import Frame
from adp.converters.framing import ByteRange
from adp.converters.harbor_trials import join_outcome, taken_apart
from adp.converters.record_errors import as_record_error
from adp.converters.registry import formats, stored_name
from adp.converters.shard_result import PieceResult, ShardResult, packed_hashes
from adp.converters.side_contents import SideContents
from adp.converters.text_calls.apply import TextParser
from adp.converters.text_calls.by_run import ParserByRun
from adp.converters.text_calls.of_file import BY_RUN
from adp.converters.text_calls.registry import dialect
from adp.converters.user_format import UserFormat
from adp_schema import jsontext
from adp_schema.builder import Origin, RowBuilder
from adp_schema.errors import ChangedInputError, ConversionLossError, RecordError
from adp_schema.ids import digest
from adp_schema.losses import Losses, general_path
from adp_schema.manifest import Counts
from adp_schema.protocols import Converter, RawRecord, SkipRecordError
from adp_schema.writer import ShardWriter, place, shard_scratch

_LINES = frozenset({"jsonl", "session"})
"""Framings of files that logs are written into line by line."""


@dataclass
class ConvertJob:
    """One shard to convert.

    Attributes:
        index: number of the shard.
        store: folder of the store.
        size: bytes that its pieces take on disk.
        pieces: (index of the file, piece, format or None, dataset, why there is no format).
        columns: columns that every trajectory gets, such as the license.
        keep_raw: keep the records in the table raw.
        strict: stop at the first loss or reject.
        limits: limits of the conversion.
        is_sole: whether there is no other file than its; one that changes then ends the run.
        dialects: index of a file -> the dialect of its texts, and whether it was found there.
        rename: give tools the names of the Agent Data Protocol.
    """

    index: int
    store: str
    size: int
    pieces: list[tuple[int, ByteRange, str | None, str, str]]
    columns: dict[str, Any]
    keep_raw: bool
    strict: bool
    limits: ConvertLimits
    is_sole: bool = False
    dialects: dict[int, tuple[str, bool]] = field(default_factory=dict)
    rename: bool = False

    @property
    def reads(self) -> Iterator[str]:
        """The files that are read."""
        for _, piece, *_ in self.pieces:
            yield from (place.path for place in (piece.place, *(it.place for it in piece.sides)))

    def without(self, change: ChangedInputError) -> ConvertJob:
        """The same, but a file is rejected, and so are those that belong together with it."""
        why = f"{change.reason}; convert it again"
        return replace(
            self,
            pieces=[
                (file, piece, None, dataset, why)
                if change.path in (piece.place.path, *(side.place.path for side in piece.sides))
                else (file, piece, format_name, dataset, reason)
                for file, piece, format_name, dataset, reason in self.pieces
            ],
        )


def convert_shard(job: ConvertJob) -> ShardResult:
    """Convert one shard and place its files in the store.

    A file that changes meanwhile counts as one rejected record, with those that belong to it. So
    the shard is begun again without it. Of a file of lines that grows, what was there when the run
    was planned is read.

    Raises:
        ConversionLossError: with ``strict``, at the first loss or reject.
        ChangedInputError: a file changed, with ``strict`` or as the only one.
    """
    # Rows are many small dicts without cycles; the cycle collector would walk them over and over.
    collecting = gc.isenabled()
    gc.disable()
    try:
        while True:
            worker = _Worker(job)
            try:
                return worker.run()
            except ChangedInputError as change:
                if job.strict or job.is_sole:
                    raise
                worker.writer.discard()
                job = job.without(change)
    finally:
        if collecting:
            gc.enable()


class _Worker:
    def __init__(self, job: ConvertJob) -> None:
        self.job = job
        self.builder = RowBuilder()
        self.losses = Losses()
        self.reasons: Counter[str] = Counter()
        self.datasets: Counter[str] = Counter()
        self.parsers: dict[tuple[str, bool], TextParser] = {}
        self.parser: TextParser | ParserByRun | None = None
        self.sides: Mapping[str, bytes] = {}
        self.outcome: Mapping[str, bytes] = {}
        self.side_fault = ""
        self.side_contents = SideContents(job.limits)
        # Records of the piece at hand by what became of them; `Counts` would check each addition.
        self.tally: Counter[str] = Counter()
        self.writer = ShardWriter(shard_scratch(Path(job.store), job.index))

    def run(self) -> ShardResult:
        result = ShardResult(self.job.index)
        for file, piece, format_name, dataset, why in self.job.pieces:
            if format_name is None:
                result.pieces.append(self._reject_file(file, piece, why))
                continue
            self._check(piece)
            if piece.framing in framing.SIDE_FRAMINGS:
                result.pieces.append(self._side(file, piece))
            else:
                converter = formats.get(format_name)
                self.parser = self._parser(file, converter)
                result.pieces.append(self._piece(file, piece, converter, dataset))
            self._check(piece, result.pieces[-1])
        self.writer.flush(self.builder)
        store = Path(self.job.store)
        for table in self.writer.close():
            staged = self.writer.folder / f"{table}.parquet"
            rows = self.writer.rows.get(table, 0)
            result.tables[table] = place(staged, store, table, self.job.index, rows)
        self.writer.folder.rmdir()
        result.id_hashes = packed_hashes(self.builder.base_ids)
        result.datasets = dict(self.datasets)
        result.reasons = dict(self.reasons)
        result.losses = dict(self.losses.counts)
        result.unknown = dict(self.losses.unknown_counts)
        parsed: Counter[str] = Counter()
        for (name, _), parser in self.parsers.items():
            parsed.update({f"{name}: {what}": count for what, count in parser.counts.items()})
        result.parsed = dict(parsed)
        return result

    def _parser(self, file: int, converter: Converter) -> TextParser | ParserByRun | None:
        """What parses the texts of a file; None when they are left as they are."""
        name, is_found = self.job.dialects.get(file, ("", False))
        if name == BY_RUN:
            return ParserByRun(converter.dialect_for, self._parser_of)  # type: ignore[attr-defined]
        return self._parser_of(name, is_found=is_found) if name else None

    def _parser_of(self, name: str, *, is_found: bool = False) -> TextParser:
        key = (name, is_found)
        if key not in self.parsers:
            self.parsers[key] = TextParser(dialect(name), is_found=is_found)
        return self.parsers[key]

    def _check(self, piece: ByteRange, done: PieceResult | None = None) -> None:
        """Make sure that what is read is what was planned.

        Args:
            piece: what is read.
            done: what was read of it, if it was.

        Raises:
            ChangedInputError: it is not.
        """
        # A copy is read of a database in use; its own index says whether the copy is sound.
        if piece.framing in ("log", "index") or framing.log_of(piece.sides):
            return
        for side in piece.sides:
            check_unchanged(side.place)
        lines = piece.framing in _LINES and piece.place.plain
        if not is_unchanged(piece.place, may_grow=lines):
            raise ChangedInputError(piece.place.path, "it changed while it was read")
        if lines and done is not None and not is_unchanged(piece.place):
            again = hashlib.blake2b(digest_size=16)
            for frame in self._frames(piece, {}):
                again.update(bytes.fromhex(frame.source_hash()))
            if again.hexdigest() != done.hash:
                raise ChangedInputError(piece.place.path, "its lines changed while it was read")

    def _piece(
        self, file: int, piece: ByteRange, converter: Converter, dataset: str
    ) -> PieceResult:
        out = PieceResult(file, hashed=piece.hashed)
        hasher, hashes = hashlib.blake2b(digest_size=16), list[str]()
        origin = {
            "source_format": stored_name(converter),
            "converter": converter.name,
            "converter_version": converter.version,
            "source_file": piece.source_file,
            **self.job.columns,
        }
        sides, self.side_fault = self.side_contents.of(piece)
        self.sides, self.outcome = taken_apart(piece.source_file, converter, sides)
        self.tally.clear()
        for frame in self._frames(piece, out.style):
            source_hash = frame.source_hash()
            if not self.job.keep_raw:
                frame.original = b""  # a session may be large, and is held once more already
            hasher.update(bytes.fromhex(source_hash))
            if piece.hashed >= 0:
                hashes.append(source_hash)
            self.tally["records"] += 1
            out.ascii = out.ascii and frame.data.isascii()
            columns = {
                **origin,
                "source_records": [frame.number],
                "source_offsets": [frame.offset],
                "source_lengths": [frame.size],
                "source_hash": source_hash,
            }
            self._record(frame, Origin(piece.seq + frame.offset, dataset, columns), converter)
            self.sides, self.outcome, self.side_fault = {}, {}, ""
            if self.builder.is_full():
                self.writer.flush(self.builder)
        out.hash, out.records = hasher.hexdigest(), "".join(hashes)
        out.counts = Counts(**self.tally)
        return out

    def _frames(self, piece: ByteRange, style: dict[str, Any]) -> Iterator[Frame]:
        try:
            yield from framing.frames(piece, self.job.limits, style)
        except OSError as error:
            raise unreadable(piece.place, error) from error

    def _side(self, file: int, piece: ByteRange) -> PieceResult:
        """A file that belongs to another one counts as a used record; its owner has its bytes."""
        out = PieceResult(file)
        hasher = hashlib.blake2b(digest_size=16)
        for frame in self._frames(piece, out.style):
            hasher.update(bytes.fromhex(frame.source_hash()))
            out.counts.records += 1
            out.ascii = out.ascii and frame.data.isascii()
            try:
                if piece.framing == "side":
                    self.job.limits.check_size(frame.size)
                if frame.error:
                    raise RecordError(frame.error)
            except RecordError as error:
                self._reject("rejected", piece.seq, piece.source_file, frame, error)
                out.counts.rejected += 1
            else:
                if frame.skip:
                    skip = RecordError(frame.skip)
                    self._reject("skipped", piece.seq, piece.source_file, frame, skip)
                out.counts.skipped += bool(frame.skip)
                out.counts.used += not frame.skip
        out.hash = hasher.hexdigest()
        return out

    def _record(self, frame: Frame, origin: Origin, converter: Converter) -> None:
        """Convert one record; it ends as used, skipped or rejected."""
        before = len(self.builder.base_ids)
        counts = {key: parser.counts.copy() for key, parser in self.parsers.items()}
        origin.size = frame.size
        source_file = origin.columns["source_file"]
        self.builder.begin(origin)
        try:
            frame.check(self.job.limits)
            if self.side_fault:
                raise RecordError(self.side_fault)
            self._read(frame, origin, converter)
            join_outcome(source_file, converter, self.outcome, self.builder, self.losses)
            self.builder.close_record(self.losses)
            if self.parser is not None:
                self.parser.change_record(self.builder)
            if (complete := getattr(converter, "complete", None)) is not None:
                complete(self.builder)
            if self.job.rename:
                from adp.core.tool_names.runs import rename_rows

                self.builder.change(rename_rows)
            if isinstance(converter, UserFormat):
                self.builder.check_record()
        except SkipRecordError as skip:
            self._put_aside("skipped", frame, origin, RecordError(str(skip)))
            self._forget_counts(counts)
            return
        except Exception as error:
            self._put_aside("rejected", frame, origin, as_record_error(error))
            self._forget_counts(counts)
            return
        if self.job.strict and self.losses.counts:
            loss = next(iter(self.losses.counts))
            raise ConversionLossError(
                f"{source_file}#{frame.number}: would be lost: {loss} (--strict)"
            )
        if self.job.keep_raw and len(self.builder.base_ids) > before:
            self.builder.keep_raw(frame.original or frame.data)
        made = len(self.builder.base_ids) - before
        self.tally["used"] += 1
        self.tally["trajectories"] += made
        self.datasets[origin.dataset] += made

    def _forget_counts(self, before: Mapping[tuple[str, bool], Counter[str]]) -> None:
        """Leave out what was read from the texts of a record that is put aside."""
        for key, parser in self.parsers.items():
            parser.counts = before[key] if key in before else Counter[str]()

    def _read(self, frame: Frame, origin: Origin, converter: Converter) -> None:
        """Convert a record; one that no strict decoder takes is sanitised and tried again."""
        source_file, data = origin.columns["source_file"], frame.data
        at = (frame.number, frame.offset, frame.size)
        record = RawRecord(data, source_file, *at, side_files=self.sides)
        try:
            converter.read(record, self.builder, self.losses)
        except (msgspec.DecodeError, RecursionError):
            if jsontext.is_valid(data):
                raise
            self.builder.rollback()
            self.losses.forget()
            record.data, record.marked = jsontext.sanitise(data), True
            if jsontext.depth(record.data) > jsontext.MAX_DEPTH:
                raise RecordError(f"nested deeper than {jsontext.MAX_DEPTH} levels") from None
            origin.marked = True
            self.builder.begin(origin)
            converter.read(record, self.builder, self.losses)

    def _put_aside(self, status: str, frame: Frame, origin: Origin, error: RecordError) -> None:
        self.builder.rollback()
        self.losses.forget()
        columns = origin.columns
        self._reject(status, origin.seq, columns["source_file"], frame, error)
        self.tally[status] += 1
        if self.job.strict and status == "rejected":
            raise ConversionLossError(
                f"{columns['source_file']}#{frame.number}: {error} (--strict)"
            )

    def _reject(
        self, status: str, seq: int, source_file: str, frame: Frame, error: RecordError
    ) -> None:
        self.reasons[f"{status}: {error.reason} - at {general_path(error.path)}"] += 1
        self.builder.reject(
            {
                "seq": seq,
                "status": status,
                "source_file": source_file,
                "record": frame.number,
                "offset": frame.offset,
                "length": frame.size,
                "path": error.path,
                "reason": error.reason,
                "source_hash": frame.source_hash(),
                "data": frame.data[:KEPT_BYTES],
            }
        )

    def _reject_file(self, file: int, piece: ByteRange, why: str) -> PieceResult:
        """A file that no format recognises counts as one rejected record."""
        data = beginning(piece.place, self.job.limits, KEPT_BYTES)
        out = PieceResult(file, hash=digest(data), ascii=data.isascii(), hashed=piece.hashed)
        out.records = out.hash
        out.counts.records = out.counts.rejected = 1
        frame = Frame(data, 1, 0, piece.end)
        self._reject("rejected", piece.seq, piece.source_file, frame, RecordError(why))
        return out
