"""How a file is cut into records. No record is parsed here.

- ``jsonl``: a record a line; blank lines are no records; the record's number is its line.
- ``json_array``: one array, read by an incremental scanner that only follows strings and
  brackets, so that an array larger than memory can be read.
- ``json``: the whole file is one record.
- ``parquet``: a record a row, written as JSON (see `adp.converters.parquet_rows`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from adp.converters.json_array import ArrayScanner, is_closed
from adp_schema.errors import InputError, RecordError
from adp_schema.ids import digest

SHARD_BYTES = 128 << 20
RECORD_LIMIT = 256 << 20
_CHUNK = 4 << 20
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Piece:
    """A byte range of one input file; the unit that workers read.

    Attributes:
        path: the file.
        source_file: its path relative to the root of the conversion.
        framing: jsonl, json_array, json or parquet.
        start: first byte (first row in Parquet).
        end: byte after the last one (row after the last one in Parquet).
        first: number of the first line or record in the range, from 1.
        seq: position of the file's first byte in the whole input.
    """

    path: str
    source_file: str
    framing: str
    start: int
    end: int
    first: int
    seq: int


@dataclass(slots=True)
class Frame:
    """A record as it stands in the file: its bytes, number, byte offset and length."""

    data: bytes
    number: int
    offset: int
    size: int


def frames(piece: Piece) -> Iterator[Frame]:
    """The records of a piece, in order."""
    if piece.framing == "parquet":
        from adp.converters.parquet_rows import rows_as_json

        for row, data in rows_as_json(piece.path, piece.start, piece.end):
            yield Frame(data, row + 1, row, len(data))
        return
    with Path(piece.path).open("rb", buffering=1 << 20) as file:
        if piece.framing == "jsonl":
            yield from _lines(file, piece)
        elif piece.framing == "json_array":
            scanner = ArrayScanner(file, RECORD_LIMIT)
            for index, (offset, data) in enumerate(scanner.elements()):
                yield Frame(data, index + 1, offset, len(data))
        else:
            data = file.read(RECORD_LIMIT + 1)
            start = 3 if data.startswith(_BOM) else 0
            yield Frame(data[start:].strip(), 1, start, piece.end - start)


def _lines(file: BinaryIO, piece: Piece) -> Iterator[Frame]:
    file.seek(piece.start)
    offset, number = piece.start, piece.first
    while offset < piece.end:
        line = file.readline(RECORD_LIMIT + 1)
        if not line:
            return
        length = len(line)
        if length > RECORD_LIMIT and not line.endswith(b"\n"):
            length += _skip_line(file)
        if offset == 0 and line.startswith(_BOM):
            line = line[3:]
        data = line.strip(b" \t\r\n")
        if data:
            yield Frame(data, number, offset, length)
        offset += length
        number += 1


def _skip_line(file: BinaryIO) -> int:
    """Read on to the end of a line that is too long; return the number of bytes."""
    skipped = 0
    while line := file.readline(_CHUNK):
        skipped += len(line)
        if line.endswith(b"\n"):
            break
    return skipped


def detect_framing(path: Path) -> str | None:
    """How a file is laid out, from its name and its first bytes; None when it is no JSON.

    Raises:
        InputError: the file cannot be read.
    """
    try:
        with path.open("rb") as file:
            head = file.read(1 << 16)
    except OSError as error:
        raise InputError(f"cannot read {path.name}: {error.strerror}; check the path") from error
    if head.startswith(b"PAR1"):
        return "parquet"
    text = head.removeprefix(_BOM).lstrip()
    if path.suffix in (".jsonl", ".ndjson"):
        return "jsonl"
    if text[:1] not in (b"{", b"["):
        return None
    first, newline, rest = text.partition(b"\n")
    complete = is_closed(first)
    if complete and newline and rest.strip():
        return "jsonl"
    if text[:1] == b"[":
        return "json_array"
    if not newline and len(head) == 1 << 16:
        return _document_or_lines(path)
    return "json"


def _document_or_lines(path: Path) -> str:
    """Decide for a file whose first line is long: is there a second value after it?"""
    with path.open("rb") as file:
        first = file.readline(RECORD_LIMIT)
        more = file.read(1 << 12).strip()
    return "jsonl" if more and is_closed(first) else "json"


def pieces_of(path: Path, source_file: str, framing: str, seq: int) -> list[Piece]:
    """Cut a file into pieces of about 128 MB. Only JSON Lines and Parquet are cut."""
    size = path.stat().st_size
    if framing == "parquet":
        import pyarrow.parquet as pq

        metadata = pq.ParquetFile(path).metadata
        rows = metadata.num_rows
        step = max(1, rows * SHARD_BYTES // max(_uncompressed(metadata), 1))
        bounds = [*range(0, rows, step), rows] if rows else [0, 0]
        cuts = list(zip(bounds, bounds[1:], (b + 1 for b in bounds), strict=False))
    elif framing == "jsonl" and size > SHARD_BYTES:
        cuts = _cut_lines(path, size)
    else:
        cuts = [(0, size, 1)]
    return [
        Piece(str(path), source_file, framing, start, end, first, seq) for start, end, first in cuts
    ]


def _uncompressed(metadata: object) -> int:
    groups = range(metadata.num_row_groups)  # type: ignore[attr-defined]
    return sum(metadata.row_group(i).total_byte_size for i in groups)  # type: ignore[attr-defined]


def _cut_lines(path: Path, size: int) -> list[tuple[int, int, int]]:
    """Ranges of whole lines of at least 128 MB: (start, end, number of the first line)."""
    cuts: list[tuple[int, int, int]] = []
    start, line = 0, 1
    with path.open("rb") as file:
        while start < size:
            end = min(start + SHARD_BYTES, size)
            file.seek(end - 1 if end < size else end)
            if end < size and (tail := file.readline()) != b"\n":
                end += len(tail) - 1
            cuts.append((start, end, line))
            line += _count_newlines(file, start, end)
            start = end
    return cuts


def _count_newlines(file: BinaryIO, start: int, end: int) -> int:
    file.seek(start)
    count = 0
    while start < end:
        chunk = file.read(min(_CHUNK, end - start))
        if not chunk:
            break
        count += chunk.count(b"\n")
        start += len(chunk)
    return count


def check_limits(frame: Frame) -> None:
    """Refuse a record that is too large to handle.

    Raises:
        RecordError: it is over the limit.
    """
    if frame.size > RECORD_LIMIT:
        raise RecordError(f"the record has {frame.size:,} bytes; the limit is {RECORD_LIMIT:,}")


def frame_hash(frame: Frame) -> str:
    """blake2b-128 of a record's bytes."""
    return digest(frame.data)
