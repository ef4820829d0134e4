"""How a file is cut into records. No record is parsed here.

- ``jsonl``: a record a line; blank lines are no records; the record's number is its line.
- ``json_array``: one array, read by an incremental scanner that only follows strings and
  brackets, so that an array larger than memory can be read.
- ``documents``: JSON values that follow each other, each over one line or many.
- ``json``: the whole file is one record.
- ``list``: a record an item of a list that stands in the only object of the file.
- ``session``: the whole file is one record too, and its lines are the items of a list. A converter
  whose container is ``session`` gets them as a JSON array.
- ``parquet``: a record a row, written as JSON (see `adp.converters.parquet_rows`).
- ``protobuf``: a record a message of OpenTelemetry, written as JSON.
- ``parquet_session``, ``protobuf_session``, ``documents_session``, ``list_session``: all of
  these are one record, as a list, for a format whose rows belong together.
- ``sqlite``: a record a session of an SQLite database (see `adp.converters.sqlite_records`).
- ``text``: the whole file is one record, and no JSON: ``{"text": ...}``.
- ``side``: the whole file belongs to another one, which is converted together with it.
- ``log``: the same, of the changes that SQLite keeps beside a database. They are read as a part of
  it, not given to the converter; ``index`` says where in the log they are, and is not read.

A compressed file, and a member of an archive, is cut by its decompressed bytes; so are offsets.
What was written into a file of lines since the run was planned is not read.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, BinaryIO, cast

import msgspec

from adp.converters.files.json_values import JsonScanner, Value, is_closed
from adp.converters.files.limits import ConvertLimits, Gathered
from adp.converters.files.listed_records import listed_frames
from adp.converters.files.otlp_protobuf import messages
from adp.converters.files.sqlite import SqliteShape
from adp.converters.files.streams import InputPlace, InputStream
from adp.converters.files.unpacked import Bounded, UnpackedPart, UnpackedStream
from adp.converters.frames import Frame, SideFile

SIDE_FRAMINGS = frozenset({"side", "log", "index"})
"""The framings of files that belong to another one."""
GATHERED = "_session"
"""Ends the name of a framing whose records are one together."""

_CHUNK = 4 << 20
_PIECE = 256 << 10
_BETWEEN = b",\n"
_BOM = b"\xef\xbb\xbf"
_DEFAULT = ConvertLimits()
_Source = InputStream | UnpackedStream


@dataclass(frozen=True)
class ByteRange:
    """A byte range of one input; the unit that workers read.

    Attributes:
        place: where the bytes lie.
        source_file: path relative to the root of the conversion.
        framing: how it is cut into records.
        start: first byte (first row in Parquet).
        end: byte after the last one (row after the last one in Parquet); for a compressed input
            the most that it may hold.
        first: number of the first line or record in the range, from 1.
        seq: position of the file's first byte in the whole input.
        sides: files that go with the first record.
        database: where the sessions lie in an SQLite database.
        hashed: number of the range of the file whose records are hashed as one, when other pieces
            are in it; -1 when it is a range alone.
        more: the file goes on behind it, with another piece.
        unpacked: its bytes, when another process unpacked them out of a stream.
    """

    place: InputPlace
    source_file: str
    framing: str
    start: int
    end: int
    first: int = 1
    seq: int = 0
    sides: tuple[SideFile, ...] = ()
    database: SqliteShape | None = None
    hashed: int = -1
    more: bool = False
    unpacked: UnpackedPart | None = None


def log_of(sides: tuple[SideFile, ...]) -> str | None:
    """The path of the changes that are kept beside a database; None when there are none."""
    places = [side.place for side in sides if side.framing == "log"]
    return next((place.path for place in places if place.size), None)


def frames(
    piece: ByteRange, limits: ConvertLimits = _DEFAULT, style: dict[str, Any] | None = None
) -> Iterator[Frame]:
    """The records of a piece, in order.

    Args:
        piece: what to read.
        limits: limits of the conversion.
        style: takes what is known of the layout when all is read.
    """
    if piece.framing == "parquet":
        yield from _rows(piece)
        return
    if piece.framing.endswith(GATHERED):
        yield from _gathered(piece, limits)
        return
    if piece.framing == "sqlite":
        yield from _sessions(piece, limits)
        return
    if piece.framing == "index":
        reason = "SQLite makes it anew out of the log beside it, which is read"
        yield Frame(b"", 1, 0, piece.end, skip=reason)
        return
    with _opened(piece, limits) as source:
        yield from _READERS[piece.framing](source, piece, limits)
        if style is not None and not piece.place.plain and not piece.more:
            style["final_newline"] = source.last == b"\n"


def _opened(piece: ByteRange, limits: ConvertLimits) -> InputStream | UnpackedStream:
    """The stream of a piece, at its first byte."""
    if piece.unpacked is not None:
        return UnpackedStream(piece.unpacked)
    source = InputStream(piece.place, limits)
    try:
        source.skip(piece.start)
    except BaseException:
        source.file.close()
        raise
    return source


def _rows(piece: ByteRange) -> Iterator[Frame]:
    import pyarrow as pa

    from adp.converters.parquet_rows import rows_as_json

    next_row = piece.start
    try:
        for row, data, error in rows_as_json(piece.place.path, piece.start, piece.end):
            next_row = row + 1
            yield Frame(data, row + 1, row, len(data), error)
    except (pa.ArrowException, OSError) as error:
        reason = f"the Parquet file is damaged from here on ({str(error).splitlines()[0]})"
        yield Frame(b"", next_row + 1, next_row, 0, reason)


def _gathered(piece: ByteRange, limits: ConvertLimits) -> Iterator[Frame]:
    """The records of another framing as one list; what is no record is put aside."""
    text = Gathered(limits.record_bytes)
    faults = []
    for frame in frames(replace(piece, framing=piece.framing.removesuffix(GATHERED)), limits):
        if frame.error or frame.skip:
            faults.append(frame)
        else:
            text.add((b",\n" if text.size else b"[") + frame.data)
    if text.size:
        text.add(b"]")
        yield Frame(text.data(), 1, 0, text.size, hash=text.hash())
    yield from faults


def _messages(source: _Source, piece: ByteRange, limits: ConvertLimits) -> Iterator[Frame]:
    file = whole_file(source, limits)
    if file.size > limits.record_bytes:
        yield file
        return
    for number, (offset, data, error) in enumerate(messages(file.data), 1):
        yield Frame(data, number, offset, len(data), error)


def _sessions(piece: ByteRange, limits: ConvertLimits) -> Iterator[Frame]:
    from adp.converters.sqlite_records import database_frames

    if piece.database is not None:
        log = log_of(piece.sides)
        yield from database_frames(piece.place.path, log, piece.database, limits)


def _lines(source: _Source, piece: ByteRange, limits: ConvertLimits) -> Iterator[Frame]:
    file = source.file
    offset, number = piece.start, piece.first
    # A stream that is unpacked says itself when it gives more than it may.
    end = piece.end if piece.place.plain else sys.maxsize
    while offset < piece.end:
        line = file.readline(min(_CHUNK, end - offset))
        if not line:
            break
        length, whole_hash, ended = len(line), "", line.endswith(b"\n")
        if length == _CHUNK and not ended:
            left = end - offset - length
            line, length, whole_hash, ended = _long_line(file, line, limits, left)
        if offset == 0 and line.startswith(_BOM):
            line = line[3:]
        data = line.strip(b" \t\r\n")
        if source.fault and not ended and not _is_complete(data):
            yield Frame(data, number, offset, length, source.fault, whole_hash)
            return
        if data:
            yield Frame(data, number, offset, length, hash=whole_hash)
        offset += length
        number += 1
    if source.fault:
        yield Frame(b"", number, offset, 0, source.fault)


def _is_complete(data: bytes) -> bool:
    """Whether a stream that broke off cannot have cut this record."""
    return data[:1] in (b"{", b"[") and is_closed(data)


def _long_line(
    file: BinaryIO, start: bytes, limits: ConvertLimits, left: int
) -> tuple[bytes, int, str, bool]:
    """Read on in a line: its text, its length, its hash if it is cut, and whether it ends.

    Args:
        file: stands behind its start.
        start: what was read of it.
        limits: limits of the conversion.
        left: bytes that it may have besides.
    """
    text = Gathered(limits.record_bytes)
    text.add(start)
    ended = False
    while not ended and (part := file.readline(min(_CHUNK, left))):
        left -= len(part)
        text.add(part)
        ended = part.endswith(b"\n")
    return text.data(), text.size, text.hash(), ended


def _elements(source: _Source, piece: ByteRange, limits: ConvertLimits) -> Iterator[Frame]:
    scanner = JsonScanner(_bounded(source, piece), limits.record_bytes, piece.start)
    elements = scanner.elements(opened=piece.start > 0, more=piece.more)
    yield from _values(source, scanner, elements, piece.first)


def _documents(source: _Source, piece: ByteRange, limits: ConvertLimits) -> Iterator[Frame]:
    scanner = JsonScanner(_bounded(source, piece), limits.record_bytes, piece.start)
    yield from _values(source, scanner, scanner.documents(), piece.first)


def _bounded(source: _Source, piece: ByteRange) -> BinaryIO:
    """The file of a source, which ends where the piece does."""
    if not (piece.more and piece.place.plain):
        return source.file
    return cast(BinaryIO, Bounded(source.file, piece.end - piece.start))


def _values(
    source: _Source, scanner: JsonScanner, values: Iterator[Value], first: int
) -> Iterator[Frame]:
    number = first - 1
    for number, value in enumerate(values, first):
        error = ""
        if value.stray:
            error = "there is more text after the end of the array"
        elif not value.whole:
            inside = "inside this record" if value.size else "before the array does"
            error = source.fault or f"the file ends {inside}"
        yield Frame(value.data, number, value.offset, value.size, error, value.hash)
        if not value.whole:
            return
    if source.fault:
        yield Frame(b"", number + 1, scanner.position, 0, source.fault)


def _document(source: _Source, piece: ByteRange, limits: ConvertLimits) -> Iterator[Frame]:
    frame = whole_file(source, limits)
    start = 3 if frame.data.startswith(_BOM) else 0
    frame.data, frame.offset, frame.size = frame.data[start:].strip(), start, frame.size - start
    if not source.fault:
        yield frame
    elif _is_complete(frame.data):
        yield frame
        yield Frame(b"", 2, frame.offset + frame.size, 0, source.fault)
    else:
        frame.error = source.fault
        yield frame


def _listed(source: _Source, piece: ByteRange, limits: ConvertLimits) -> Iterator[Frame]:
    yield from listed_frames(whole_file(source, limits), source)


def _session(source: _Source, piece: ByteRange, limits: ConvertLimits) -> Iterator[Frame]:
    frame = whole_file(source, limits, piece.end if piece.place.plain else None)
    frame.error, frame.hash = source.fault, frame.source_hash()
    frame.original, frame.data = frame.data, lines_as_array(frame.data)
    yield frame


def lines_as_array(data: bytes) -> bytes:
    """The lines of a file as one JSON array; blank ones are left out."""
    data = data.removeprefix(_BOM)
    parts, start = list[bytes](), 0
    while start < len(data):  # piece by piece: the lines of one are still in the processor's cache
        end = data.find(b"\n", start + _PIECE) + 1 or len(data)
        lines = [line.strip(b" \t\r") for line in data[start:end].split(b"\n")]
        parts.append(_BETWEEN.join(filter(None, lines)))
        start = end
    parts = list(filter(None, parts)) or [b""]
    parts[0] = b"[" + parts[0]
    parts[-1] += b"]"
    return _BETWEEN.join(parts)


def _text(source: _Source, piece: ByteRange, limits: ConvertLimits) -> Iterator[Frame]:
    frame = whole_file(source, limits)
    frame.error, frame.hash = source.fault, frame.source_hash()
    frame.data = text_as_record(frame.data)
    yield frame


def text_as_record(data: bytes) -> bytes:
    """A plain text as the JSON object ``{"text": ...}``; bytes that are no UTF-8 are kept, too."""
    text = data.removeprefix(_BOM).decode("utf-8", "surrogateescape")
    try:
        return msgspec.json.encode({"text": text})
    except UnicodeEncodeError:
        return json.dumps({"text": text}).encode("ascii")


def _side(source: _Source, piece: ByteRange, limits: ConvertLimits) -> Iterator[Frame]:
    frame = whole_file(source, limits)
    frame.error = source.fault
    yield frame


def whole_file(source: _Source, limits: ConvertLimits, end: int | None = None) -> Frame:
    """A whole file, or its first ``end`` bytes, as one record; of one too large the beginning."""
    text = Gathered(limits.record_bytes)
    most = _CHUNK if end is None or end > limits.record_bytes else end  # at once: copied once less
    while part := source.file.read(most if end is None else min(most, end - text.size)):
        text.add(part)
    return Frame(text.data(), 1, 0, text.size, hash=text.hash())


_READERS: dict[str, Callable[[_Source, ByteRange, ConvertLimits], Iterator[Frame]]] = {
    "jsonl": _lines,
    "json_array": _elements,
    "documents": _documents,
    "json": _document,
    "list": _listed,
    "session": _session,
    "text": _text,
    "protobuf": _messages,
    "side": _side,
    "log": _side,
}
