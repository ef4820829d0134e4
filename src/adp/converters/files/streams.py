"""The bytes of an input as a stream: a plain file, a compressed one, or a member of an archive.

A stream that is damaged, cut short or over a limit ends there like any file, and
`InputStream.fault` says why. So all records before that point are read,
and the rest is counted as one reject.
"""

from __future__ import annotations

import bz2
import io
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast
from zipfile import ZipInfo

from adp.converters.files import archives
from adp.converters.files.limits import BOMB_BYTES, BOMB_RATIO, ConvertLimits
from adp.core.input_files import open_file
from adp_schema.errors import ChangedInputError

_STEP = 256 << 10
_BUFFER = 1 << 20
_GZIP, _DEFLATE = 31, -15  # what zlib calls its two framings

Chunks = Iterator[bytes]


class _BrokenError(Exception):
    """A stream cannot be read any further; the text says why."""


@dataclass(frozen=True)
class InputPlace:
    """Where the bytes of an input lie.

    Attributes:
        path: the file on disk, without links; empty when it must not be read.
        size: its size when the run was planned.
        mtime_ns: its time of change then.
        member: number of the member when the file is an archive.
        packed: bytes that the input takes on disk; a member takes a part of its archive.
        compression: ``gz``, ``zst`` or nothing.
        start: its first byte when it is a member of a tar archive.
    """

    path: str
    size: int
    mtime_ns: int
    member: int | None = None
    packed: int = 0
    compression: str = ""
    start: int | None = None

    @property
    def plain(self) -> bool:
        """Whether the bytes are those of the file on disk."""
        return self.member is None and not self.compression


class InputStream:
    """An open input.

    Args:
        place: where it lies.
        limits: how much may come out of a compressed one.

    Attributes:
        file: the bytes, decompressed; a plain file can seek.
    """

    def __init__(self, place: InputPlace, limits: ConvertLimits) -> None:
        self._handle = open_file(place.path, _BUFFER)
        self._chunks: _ChunkFile | None = None
        self.file: BinaryIO = self._handle
        if not place.plain:
            self._chunks = _ChunkFile(_unpacked(self._handle, place, limits))
            self.file = io.BufferedReader(self._chunks, _BUFFER)

    @property
    def fault(self) -> str:
        """Why the stream ended too early; empty while it has not."""
        return self._chunks.fault if self._chunks else ""

    @property
    def last(self) -> bytes:
        """The last byte of a compressed stream that was read to its end."""
        return self._chunks.last if self._chunks else b""

    @property
    def taken(self) -> int:
        """Bytes on disk that were read so far; about."""
        return self._handle.tell()

    def skip(self, count: int) -> None:
        """Go on behind the next bytes."""
        if self._chunks is None:
            self._handle.seek(count, io.SEEK_CUR)
            return
        while count > 0 and (part := self.file.read(min(count, _BUFFER))):
            count -= len(part)

    def __enter__(self) -> InputStream:
        return self

    def __exit__(self, *_: object) -> None:
        self.file.close()
        self._handle.close()


class _ChunkFile(io.RawIOBase):
    """Chunks of bytes as a file. What breaks them ends the file and is noted in ``fault``."""

    def __init__(self, chunks: Chunks) -> None:
        self._chunks = chunks
        self._left = memoryview(b"")
        self.fault = ""
        self.last = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._left:
            try:
                chunk = next(self._chunks, None)
            except _BrokenError as error:
                self.fault = str(error)
                chunk = None
            if chunk is None:
                return 0
            self._left = memoryview(chunk)
            self.last = chunk[-1:] or self.last
        count = min(len(buffer), len(self._left))
        buffer[:count] = self._left[:count]
        self._left = self._left[count:]
        return count


def _unpacked(handle: BinaryIO, place: InputPlace, limits: ConvertLimits) -> Chunks:
    def opened() -> Chunks:
        if place.member is None:
            return _read(handle, 0, place.size)
        if place.start is not None:
            return _read(handle, place.start, place.packed)
        return _member(
            handle, archives.members(place.path, place.size, place.mtime_ns)[place.member]
        )

    chunks = opened()
    if place.compression == "gz":
        chunks = _inflate(chunks, _GZIP)
    elif place.compression == "zst":
        chunks = _unzstd(opened)
    return _guarded(chunks, place.packed, limits.file_bytes)


def _guarded(chunks: Chunks, packed: int, limit: int) -> Chunks:
    """Stop at the limit, and at what only a bomb unpacks to."""
    total = 0
    for chunk in chunks:
        room = limit - total
        total += len(chunk)
        if len(chunk) > room:
            yield chunk[:room]
            raise _BrokenError(
                f"more than {limit:,} bytes decompressed; see --max-decompressed-bytes"
            )
        yield chunk
        if total > BOMB_BYTES and total > BOMB_RATIO * packed:
            raise _BrokenError(
                f"over {BOMB_BYTES:,} bytes decompressed from {packed:,}; it looks like a bomb"
            )


def _read(handle: BinaryIO, start: int, size: int) -> Chunks:
    """A range of a file."""
    at, end = start, start + size
    while at < end:
        handle.seek(at)
        chunk = handle.read(min(_STEP, end - at))
        if not chunk:
            raise _BrokenError("the file ends too early")
        at += len(chunk)
        yield chunk


def _member(handle: BinaryIO, info: ZipInfo) -> Chunks:
    """The contents of a member of a zip archive, checked against its checksum."""
    if fault := archives.member_fault(info):
        raise _BrokenError(fault)
    start = archives.data_start(handle, info)
    if start is None:
        raise _BrokenError("the zip archive is damaged: the member is not where it should be")

    def packed() -> Chunks:
        return _read(handle, start, info.compress_size)

    methods: dict[int, Callable[[], Chunks]] = {
        archives.STORED: packed,
        archives.DEFLATED: lambda: _inflate(packed(), _DEFLATE),
        archives.BZIP2: lambda: _bunzip2(packed()),
        archives.ZSTANDARD: lambda: _unzstd(packed),
    }
    checksum = 0
    for chunk in methods[info.compress_type]():
        checksum = zlib.crc32(chunk, checksum)
        yield chunk
    if checksum != info.CRC:
        raise _BrokenError("the zip archive is damaged: the checksum of the member is wrong")


def _inflate(chunks: Chunks, framing: int) -> Chunks:
    """Decompress what zlib made; several gzip members may follow each other."""
    decoder = zlib.decompressobj(framing)
    started = False
    for chunk in chunks:
        left = chunk
        while left:
            if not started and framing == _GZIP and not (left := left.lstrip(b"\0")):
                break  # tapes pad with zeros after the last member
            started = True
            before = decoder.copy()
            try:
                out = decoder.decompress(left, _STEP)
            except zlib.error as error:
                yield from _salvage(before, left)
                raise _BrokenError(f"the compressed data is damaged ({error})") from error
            if out:
                yield out
            if decoder.eof:
                left, decoder, started = decoder.unused_data, zlib.decompressobj(framing), False
                if framing == _DEFLATE:
                    return
            else:
                left = decoder.unconsumed_tail
    while started and (out := decoder.decompress(b"", _STEP)):
        yield out
    if started and not decoder.eof:
        raise _BrokenError("the compressed data ends too early")


def _salvage(decoder: Any, data: bytes) -> Chunks:
    """What can be had from data that is damaged somewhere: take smaller and smaller bites."""
    for step in (4096, 64, 1):
        while True:
            before = decoder.copy()
            try:
                out = decoder.decompress(data, step)
            except zlib.error:
                decoder = before
                break
            data = decoder.unconsumed_tail
            if not out:
                return
            yield out


def _bunzip2(chunks: Chunks) -> Chunks:
    decoder = bz2.BZ2Decompressor()
    for chunk in chunks:
        left = chunk
        while not decoder.eof and (left or not decoder.needs_input):
            try:
                out = decoder.decompress(left, _STEP)
            except OSError as error:
                raise _BrokenError(f"the compressed data is damaged ({error})") from error
            left = b""
            if out:
                yield out
    if not decoder.eof:
        raise _BrokenError("the compressed data ends too early")


def _unzstd(opened: Callable[[], Chunks]) -> Chunks:
    """Decompress Zstandard, several frames too.

    A read that fails gives nothing, not even what it had by then. So the stream is then read
    again to that point, and on byte by byte.
    """
    done = 0
    with _zstd_file(opened()) as file:
        try:
            while chunk := file.read(_STEP):
                done += len(chunk)
                yield chunk
            return
        except OSError as error:
            reason = str(error)
    with _zstd_file(opened()) as file:
        try:
            while done > 0:
                done -= len(file.read(min(done, _STEP)))
            while byte := file.read(1):
                yield byte
        except OSError:
            pass
    early = "Truncated" in reason
    raise _BrokenError(
        "the compressed data ends too early"
        if early
        else f"the compressed data is damaged ({reason})"
    )


def _zstd_file(chunks: Chunks) -> Any:
    import pyarrow as pa

    source = pa.PythonFile(cast(BinaryIO, io.BufferedReader(_ChunkFile(chunks), _BUFFER)), mode="r")
    return pa.CompressedInputStream(source, "zstd")


def beginning(place: InputPlace, limits: ConvertLimits, size: int) -> bytes:
    """The first bytes of an input; none when it cannot be read."""
    try:
        with InputStream(place, limits) as source:
            return source.file.read(size)
    except OSError:
        return b""


def check_unchanged(place: InputPlace) -> None:
    """Make sure that a file is still the one that was planned.

    Raises:
        ChangedInputError: it is not.
    """
    if not is_unchanged(place):
        raise ChangedInputError(place.path, "it changed while it was read")


def is_unchanged(place: InputPlace, *, may_grow: bool = False) -> bool:
    """Whether a file is still the one that was planned.

    Args:
        place: the file.
        may_grow: whether one that is longer now is, too.

    Raises:
        ChangedInputError: it is gone.
    """
    try:
        stat = Path(place.path).lstat()
    except OSError as error:
        raise ChangedInputError(place.path, f"it is gone ({error.strerror})") from error
    if may_grow and stat.st_size > place.size:
        return True
    return (stat.st_size, stat.st_mtime_ns) == (place.size, place.mtime_ns)


def unreadable(place: InputPlace, error: OSError) -> ChangedInputError:
    """The error for a file that could be read when the run was planned."""
    return ChangedInputError(place.path, f"it cannot be read ({error.strerror or error})")
