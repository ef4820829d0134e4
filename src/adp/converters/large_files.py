"""Cutting a large array, or what a compressed file holds, into pieces while it is read.

One process goes over such a file and looks where records begin. Workers read the pieces of a plain
file where they lie; of a compressed one, each piece is unpacked into a file of the run, so that
nothing is unpacked twice. Where the cuts are follows from the input alone.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO, cast

from adp.converters.file_pieces import newlines
from adp.converters.files.json_values import JsonScanner
from adp.converters.files.limits import ConvertLimits
from adp.converters.files.streams import InputStream, check_unchanged
from adp.converters.files.unpacked import UnpackedPart
from adp.converters.framing import ByteRange
from adp_schema.errors import ChangedInputError

_CHUNK = 1 << 20
_KEPT = 16 << 20
"""Bytes of a value that are held while its end is looked for."""


class _NotCutError(Exception):
    """The rest of a stream cannot be cut here; who reads it says why."""


class _Copy:
    """Reads a stream, and copies what was read into files that begin at borders.

    The last chunk is held back: a border lies in it, or behind it.

    Args:
        source: the stream.
        most: bytes that a file may have.
    """

    def __init__(self, source: InputStream, most: int) -> None:
        self._source = source
        self._most = most
        self._held = b""
        self._end = 0  # behind what is held
        self._written = 0
        self._out: BinaryIO | None = None
        self._path: Path | None = None

    def read(self, size: int) -> bytes:
        """The next bytes."""
        self._write(self._held)
        try:
            self._held = self._source.file.read(size)
        except OSError as error:
            raise _NotCutError from error
        self._end += len(self._held)
        return self._held

    def begin(self, path: Path | None) -> None:
        """Copy into a new file what comes from here on; nothing with None."""
        self._written, self._path = 0, path
        if path is not None:
            path.parent.mkdir(exist_ok=True)
            self._out = path.open("wb")

    def _write(self, data: bytes) -> None:
        if self._out is not None:
            self._written += self._out.write(data)
            if self._written > self._most:
                raise _NotCutError

    def cut(self, offset: int) -> UnpackedPart | None:
        """End the file at a border; where it lies, if there is one."""
        size = len(self._held) - (self._end - offset)
        self._write(self._held[:size])
        self._held = self._held[size:]
        return self._close()

    def rest(self) -> UnpackedPart | None:
        """Read to the end of the stream, and end the file there."""
        if self._path is None:
            return None
        while self.read(_CHUNK):
            pass
        part = self._close()
        return part and replace(part, fault=self._source.fault, last=self._source.last)

    def _close(self) -> UnpackedPart | None:
        if self._out is None:
            return None
        self._out.close()
        self._out = None
        return UnpackedPart(str(self._path))

    def discard(self) -> None:
        """Give up the file that is being written."""
        if self._out is not None:
            self._out.close()
            self._out = None
            cast(Path, self._path).unlink()


def large_pieces(
    piece: ByteRange,
    limits: ConvertLimits,
    folder: Path,
    index: int,
    is_done: Callable[[int], bool],
    step: int,
) -> Iterator[tuple[ByteRange, int]]:
    """The pieces of a large file, one after another, and how much of its bytes on disk each has.

    What cannot be cut here, since it cannot be read, was changed, or has a record that is far too
    large, is one piece to its end. Who reads that one finds the same fault, and treats it as ever.

    Args:
        piece: the whole file.
        limits: limits of the conversion.
        folder: takes the files of the pieces of a compressed one.
        index: number of the shard that the first piece makes.
        is_done: whether a shard is done; its piece is not written.
        step: bytes of a piece at least.
    """
    rest, taken, size = replace(piece, hashed=0), 0, piece.place.packed
    copy: _Copy | None = None

    def begin(copy: _Copy) -> None:
        _remove_done(folder, is_done)
        wanted = not piece.place.plain and not is_done(index)
        copy.begin(folder / str(index) if wanted else None)

    try:
        check_unchanged(piece.place)
        with _opened(piece, limits) as source:
            copy = _Copy(source, step + limits.record_bytes)
            begin(copy)
            for offset, number in _borders(copy, piece, step):
                unpacked = copy.cut(offset)
                check_unchanged(piece.place)
                share = min(source.taken, size) - taken
                yield replace(rest, end=offset, more=True, unpacked=unpacked), share
                rest = replace(rest, start=offset, first=number, sides=())
                index, taken = index + 1, taken + share
                begin(copy)
            rest = replace(rest, unpacked=copy.rest())
        check_unchanged(piece.place)
    except (_NotCutError, ChangedInputError):
        rest = replace(rest, unpacked=None)
    finally:
        if copy is not None:
            copy.discard()
    yield rest, size - taken


@contextlib.contextmanager
def _opened(piece: ByteRange, limits: ConvertLimits) -> Iterator[InputStream]:
    try:
        source = InputStream(piece.place, limits)
    except OSError as error:
        raise _NotCutError from error
    with source:
        yield source


def _remove_done(folder: Path, is_done: Callable[[int], bool]) -> None:
    """Remove the files of pieces whose shards are done."""
    for path in folder.iterdir() if folder.exists() else ():
        if is_done(int(path.name)):
            path.unlink()


def _borders(copy: _Copy, piece: ByteRange, step: int) -> Iterator[tuple[int, int]]:
    """Where a piece may begin that is not the first one, and the number of the record there."""
    if piece.framing == "jsonl":
        return _line_borders(copy, step)
    return _value_borders(copy, step, array=piece.framing == "json_array")


def _line_borders(copy: _Copy, step: int) -> Iterator[tuple[int, int]]:
    base, line, goal = 0, 1, step
    is_due = False
    while chunk := copy.read(_CHUNK):
        at = 0
        if is_due:
            yield base, line
            is_due, goal = False, base + step
        while base + len(chunk) >= goal:
            end = chunk.find(b"\n", max(at, goal - 1 - base)) + 1
            if not end:
                break
            line += newlines(chunk[at:end])
            at = end
            if is_due := at == len(chunk):  # if nothing follows, there is no other piece
                break
            yield base + at, line
            goal = base + at + step
        line += newlines(chunk[at:])
        base += len(chunk)


def _value_borders(copy: _Copy, step: int, *, array: bool) -> Iterator[tuple[int, int]]:
    scanner = JsonScanner(cast(BinaryIO, copy), _KEPT)
    start = 0
    for number, value in enumerate(scanner.elements() if array else scanner.documents(), 1):
        if not value.whole or value.stray:
            return
        if scanner.position - start >= step and scanner.goes_on(array=array):
            start = scanner.position
            yield start, number + 1
