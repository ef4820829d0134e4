"""The elements of a JSON array, found without parsing and without holding the file.

The scanner follows strings and brackets only. What does not close, or follows the array, comes
out as a last element that no reader will accept, so that it is rejected and not lost.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO

_CHUNK = 4 << 20
_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}]|"', re.DOTALL)
_SCALAR_END = re.compile(rb"[,\]\s]")
_GAP = re.compile(rb"[ \t\r\n,]*")


def is_closed(text: bytes) -> bool:
    """Whether all strings and brackets of a text are closed."""
    level = 0
    for match in _TOKEN.finditer(text):
        token = match.group()
        if token == b'"':
            return False
        level += (token in b"[{") - (token in b"]}")
    return level == 0


class ArrayScanner:
    """Walks over one file.

    Args:
        file: open at its first byte.
        limit: stop looking for the end of an element after this many bytes.
    """

    def __init__(self, file: BinaryIO, limit: int) -> None:
        self._file = file
        self._limit = limit
        self._buffer = file.read(_CHUNK)
        self._base = 0
        self._at = self._buffer.index(b"[") + 1

    def elements(self) -> Iterator[tuple[int, bytes]]:
        """Byte offset and text of each element."""
        while self._skip_gap():
            if self._buffer[self._at] == 0x5D:
                yield from self._rest()
                return
            end = self._end()
            start, self._at = self._at, end or len(self._buffer)
            yield self._base + start, self._buffer[start : self._at].rstrip()
            if end is None:
                return
        yield self._base + self._at, b"["

    def _rest(self) -> Iterator[tuple[int, bytes]]:
        """What follows the closing bracket, if anything does."""
        offset = self._base + self._at
        rest = (self._buffer[self._at + 1 :] + self._file.read(_CHUNK)).strip()
        if rest:
            yield offset, b"]" + rest

    def _skip_gap(self) -> bool:
        """Move to the next element or to the closing bracket; False when the file ends first."""
        while True:
            match = _GAP.match(self._buffer, self._at)
            self._at = match.end() if match else self._at
            if self._at < len(self._buffer):
                return True
            if not self._more():
                return False

    def _more(self) -> bool:
        """Read on; forget what lies before the present position."""
        kept = self._buffer[self._at :]
        more = self._file.read(max(_CHUNK, len(kept)))
        self._base += self._at
        self._buffer, self._at = kept + more, 0
        return bool(more)

    def _end(self) -> int | None:
        """Position after the present element; None when the file ends first."""
        if self._buffer[self._at] not in b'{["':
            return self._scalar_end()
        seen = level = 0
        while True:
            start = self._at
            for match in _TOKEN.finditer(self._buffer, start + seen):
                token = match.group()
                if token == b'"':
                    break
                seen = match.end() - start
                level += (token in b"[{") - (token in b"]}")
                if level <= 0:
                    return match.end()
            if len(self._buffer) - start > self._limit or not self._more():
                return None

    def _scalar_end(self) -> int | None:
        while True:
            match = _SCALAR_END.search(self._buffer, self._at)
            if match:
                return match.start()
            if not self._more():
                return None
