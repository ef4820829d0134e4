"""Cutting files into the pieces that workers read.

Lines and the rows of Parquet are cut when a run is planned. A large array, a file of documents and
a compressed file are one piece in the plan: where their records begin is known only when they are
read, so they are cut while the run goes (`adp.converters.large_files`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import BinaryIO

from adp.converters.files.limits import ConvertLimits
from adp.converters.files.streams import InputPlace
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
    """The pieces of a file of lines, or of its end.

    Args:
        whole: what is cut.
    """
    path, pieces = whole.place.path, list[ByteRange]()
    step = shard_bytes(whole.end - whole.start)
    if whole.end - whole.start <= step:
        return [whole]
    ranges = line_ranges(path, whole.end, whole.start, whole.first)
    for number, (start, end, line) in enumerate(ranges):
        # As many pieces of like size as there are whole shards in it; what is over makes no shard.
        count = max(1, -(-(end - start - step // 8) // step))
        cuts = [(start, end, line)]
        if count > 1:
            cuts = line_ranges(path, end, start, line, -(-(end - start) // count))
        hashed = number if len(cuts) > 1 else -1
        pieces += [
            replace(whole, start=cut[0], end=cut[1], first=cut[2], hashed=hashed) for cut in cuts
        ]
    return pieces


def line_ranges(
    path: str, size: int, start: int = 0, line: int = 1, step: int | None = None
) -> list[tuple[int, int, int]]:
    """Ranges of whole lines: (start, end, number of the first line).

    Args:
        path: the file.
        size: where the last one ends.
        start: where the first one begins.
        line: number of the line there.
        step: bytes of each at least; None takes those of a range that is hashed.
    """
    cuts: list[tuple[int, int, int]] = []
    with open_file(path) as file:
        while start < size:
            end = min(start + (step or RANGE_BYTES), size)
            file.seek(end - 1 if end < size else end)
            if end < size:
                end = _line_end(file, end)
            cuts.append((start, end, line))
            line += _count_newlines(file, start, end)
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
