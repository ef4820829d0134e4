"""Cutting files into the pieces that workers read.

Lines and the rows of Parquet are cut when a run is planned; lines are counted while it goes, so
that workers need not wait for it (`with_lines`). A large array, a file of documents and
a compressed file are one piece in the plan: where their records begin is known only when they are
read, so they are cut while the run goes (`adp.converters.large_files`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import BinaryIO

from adp.converters.files.limits import ConvertLimits
from adp.converters.files.streams import InputPlace, unreadable
from adp.converters.framing import GATHERED, ByteRange
from adp.converters.planned_file import PlannedFile
from adp.core.input_files import open_file

SHARD_BYTES = 64 << 20
"""Bytes of input that a shard has at most, about; a file that is smaller is not cut."""
LEAST_BYTES = 16 << 20
"""Bytes of input that are worth a shard alone, when there is more than one."""
RANGE_BYTES = 128 << 20
"""Lines and rows are hashed in ranges of so many bytes. Fingerprints in stores depend on it."""
EXPANSION = 4
"""What compressed JSON usually grows to, for cutting shards only."""

UNCOUNTED = 0
"""In place of the number of the first line of a piece."""

_CUT_LATER = frozenset({"json_array", "documents"})
_CHUNK = 4 << 20
_DEFAULT = ConvertLimits()


def pieces_of(
    place: InputPlace, source_file: str, framing: str, limits: ConvertLimits = _DEFAULT
) -> list[ByteRange]:
    """The pieces of a file in a plan. Only plain JSON Lines and Parquet have several."""
    whole = ByteRange(place, source_file, framing, 0, place.size)
    if framing.startswith("parquet"):
        from adp.converters.parquet_rows import row_ranges

        cuts = row_ranges(place.path, RANGE_BYTES)
        if framing.endswith(GATHERED):
            cuts = [(0, cuts[-1][1], 1)]
        return [replace(whole, start=start, end=end, first=first) for start, end, first in cuts]
    if not place.plain:
        return [replace(whole, end=limits.file_bytes)]
    return line_pieces(whole) if framing == "jsonl" else [whole]


def shard_bytes(size: int) -> int:
    """Bytes that a shard has of an input of this size.

    There are eight shards of it or more, so that workers who take one after another end at about
    the same time.
    """
    if size <= SHARD_BYTES:
        return SHARD_BYTES
    return min(SHARD_BYTES, max(LEAST_BYTES, size // 8))


def expected_bytes(files: Iterable[PlannedFile]) -> int:
    """Bytes of the records of files, when compressed ones grow as usual."""
    return sum(file.size * (1 if file.place.plain else EXPANSION) for file in files)


def is_cut_later(piece: ByteRange) -> bool:
    """Whether a piece of a plan is cut into several when it is read."""
    place = piece.place
    if place.plain:
        return piece.framing in _CUT_LATER and place.size > SHARD_BYTES
    return piece.framing in {*_CUT_LATER, "jsonl"} and place.packed * EXPANSION > SHARD_BYTES


def shards_of(files: list[PlannedFile]) -> list[list[tuple[int, ByteRange]]]:
    """Shards: runs of whole small files, or single pieces of large ones.

    A large file that is cut when it is read makes several of the one that stands here.

    Args:
        files: the inputs, with their pieces.
    """
    shards: list[list[tuple[int, ByteRange]]] = []
    size, most = 0, shard_bytes(expected_bytes(files))
    for index, file in enumerate(files):
        for piece in file.pieces:
            length = file.size // len(file.pieces)
            length *= 1 if file.place.plain else EXPANSION
            if not shards or size + length > most or is_cut_later(piece):
                shards.append([])
                size = most if is_cut_later(piece) else 0
            shards[-1].append((index, piece))
            size += length
    return shards


def line_pieces(whole: ByteRange) -> list[ByteRange]:
    """The pieces of a file of lines, or of its end; `with_lines` says which line each begins with.

    Args:
        whole: what is cut.
    """
    path, pieces = whole.place.path, list[ByteRange]()
    step = shard_bytes(whole.end - whole.start)
    if whole.end - whole.start <= step:
        return [whole]
    for number, (start, end) in enumerate(line_ranges(path, whole.end, whole.start)):
        # As many pieces of like size as there are whole shards in it; what is over makes no shard.
        count = max(1, -(-(end - start - step // 8) // step))
        cuts = [(start, end)]
        if count > 1:
            cuts = line_ranges(path, end, start, -(-(end - start) // count))
        hashed = number if len(cuts) > 1 else -1
        pieces += [
            replace(whole, start=first, end=last, first=UNCOUNTED, hashed=hashed)
            for first, last in cuts
        ]
    pieces[0] = replace(pieces[0], first=whole.first)
    return pieces


def with_lines(piece: ByteRange, before: ByteRange | None) -> ByteRange:
    """A piece of lines with the number of its first line, which takes a reading of the one before.

    Args:
        piece: the piece.
        before: the piece of the same file in front of it, with its number.

    Raises:
        ChangedInputError: the file cannot be read any more.
    """
    if piece.first != UNCOUNTED or before is None:
        return piece
    try:
        with open_file(before.place.path) as file:
            count = _count_newlines(file, before.start, before.end)
    except OSError as error:
        raise unreadable(before.place, error) from error
    return replace(piece, first=before.first + count)


def line_ranges(
    path: str, size: int, start: int = 0, step: int | None = None
) -> list[tuple[int, int]]:
    """Ranges of whole lines: (start, end).

    Args:
        path: the file.
        size: where the last one ends.
        start: where the first one begins.
        step: bytes of each at least; None takes those of a range that is hashed.
    """
    cuts: list[tuple[int, int]] = []
    with open_file(path) as file:
        while start < size:
            end = min(start + (step or RANGE_BYTES), size)
            file.seek(end - 1 if end < size else end)
            if end < size:
                end = _line_end(file, end)
            cuts.append((start, end))
            start = end
    return cuts


def _line_end(file: BinaryIO, end: int) -> int:
    """End of the line that the byte before ``end`` is in; the file stands at that byte."""
    end -= 1
    while part := file.readline(_CHUNK):
        end += len(part)
        if part.endswith(b"\n"):
            break
    return end


def newlines(data: bytes) -> int:
    """How many line breaks there are."""
    import numpy as np

    # Several times as fast as to count in bytes.
    return int(np.count_nonzero(np.frombuffer(data, np.uint8) == 0x0A))


def _count_newlines(file: BinaryIO, start: int, end: int) -> int:
    file.seek(start)
    count = 0
    while start < end:
        chunk = file.read(min(_CHUNK, end - start))
        if not chunk:
            break
        count += newlines(chunk)
        start += len(chunk)
    return count
