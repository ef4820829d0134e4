"""A part of a stream that was unpacked into a file of its own, for a process that reads it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import BinaryIO

from adp.core.input_files import open_file

_BUFFER = 1 << 20


@dataclass(frozen=True)
class UnpackedPart:
    """Where the part lies, and how its stream ended.

    Attributes:
        path: the file.
        fault: why the stream ended too early, when it ended in this part.
        last: the last byte of the stream, when it ended in this part.
    """

    path: str
    fault: str = ""
    last: bytes = b""


class UnpackedStream:
    """An open part; it is read like an `InputStream`.

    Args:
        part: where it lies.

    Attributes:
        file: its bytes.
        fault: as of the part.
        last: as of the part.
    """

    def __init__(self, part: UnpackedPart) -> None:
        self.file: BinaryIO = open_file(part.path, _BUFFER)
        self.fault, self.last = part.fault, part.last

    def __enter__(self) -> UnpackedStream:
        return self

    def __exit__(self, *_: object) -> None:
        self.file.close()


class Bounded:
    """The next bytes of a file, and no more of it.

    Args:
        file: stands at the first one.
        size: how many.
    """

    def __init__(self, file: BinaryIO, size: int) -> None:
        self._file = file
        self._left = size

    def read(self, size: int) -> bytes:
        """At most so many bytes; none at the end."""
        data = self._file.read(min(size, self._left))
        self._left -= len(data)
        return data
