"""JSON values one after another, found without parsing and without holding the file.

The scanner follows strings and brackets only. A value that is larger than the limit is walked
over without being kept, so that what follows it is still found. Objects and arrays are looked for
in a whole buffer at once (`adp.converters.files.json_brackets`); anything else, and what is no
JSON, is read token by token, with the same result.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from adp.converters.files.json_brackets import brackets
from adp.converters.files.limits import KEPT_BYTES, Gathered

_CHUNK = 1 << 20
# Possessive repeats: the others keep a note for each step back, a hundred bytes for one.
_TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[\[\]{}]|"', re.DOTALL)
_STRING_REST = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL)
_ELEMENT_END = re.compile(rb"[,\]\s]")
_WORD_END = re.compile(rb"[\n{\[]")
_ELEMENT_GAP = re.compile(rb"[ \t\r\n,]*")
_GAP = re.compile(rb"[ \t\r\n]*")
_GAP_BYTES = 64
_FEW = 1 << 12
"""Bytes that are read token by token sooner than all at once."""
_BOM = b"\xef\xbb\xbf"


def is_closed(text: bytes) -> bool:
    """Whether all strings and brackets of a text are closed."""
    level = 0
    for match in _TOKEN.finditer(text):
        token = match.group()
        if token == b'"':
            return False
        level += (token in b"[{") - (token in b"]}")
    return level == 0


@dataclass(slots=True)
class Value:
    """A JSON value as it stands in a file.

    Attributes:
        offset: its first byte.
        data: its text; only the beginning when it is over the limit.
        size: its length in bytes.
        whole: False when the file ends inside it.
        hash: blake2b-128 of all of it when ``data`` is the beginning only.
        stray: it stands after the end of the array.
        multiline: a line break is in it.
    """

    offset: int
    data: bytes
    size: int
    whole: bool
    hash: str = ""
    stray: bool = False
    multiline: bool = False


class _Nesting:
    """Follows strings and brackets over the chunks of a file until a value ends."""

    def __init__(self, level: int = 0, in_string: bool = False, escaped: bool = False) -> None:
        self._level = level
        self._in_string = in_string
        self._escaped = escaped

    def feed(self, chunk: bytes, at: int) -> int | None:
        """Position after the value; None when it goes on in the next chunk."""
        size = _FEW
        while at < len(chunk):
            stop = min(at + size, len(chunk))
            end = self._look(chunk, at, stop) if size > _FEW else self._tokens(chunk, at, stop)
            if end is not None:
                return end
            at, size = stop, min(size * 8, _CHUNK)
        return None

    def _look(self, chunk: bytes, at: int, stop: int) -> int | None:
        """Look at a part all at once, when the value is in brackets."""
        made = None
        if self._level > 0:
            made = brackets(chunk, at, stop, in_string=self._in_string, escaped=self._escaped)
        if made is None:
            return self._tokens(chunk, at, stop)
        ends = (made.levels + self._level <= 0).nonzero()[0]
        if len(ends):
            return int(made.positions[ends[0]]) + 1
        self._level += int(made.levels[-1]) if len(made.levels) else 0
        self._in_string, self._escaped = made.in_string, made.escaped
        return None

    def _tokens(self, chunk: bytes, at: int, stop: int) -> int | None:
        """Look at a part token by token."""
        while True:
            if self._in_string:
                end = self._string_end(chunk, at, stop)
                if end is None or self._level == 0:
                    return end
                at = end
            for match in _TOKEN.finditer(chunk, at, stop):
                token = match.group()
                if token == b'"':
                    self._in_string, at = True, match.end()
                    break
                self._level += (token in b"[{") - (token in b"]}")
                if self._level <= 0:
                    return match.end()
            else:
                return None

    def _string_end(self, chunk: bytes, at: int, stop: int) -> int | None:
        if self._escaped and at < stop:
            self._escaped, at = False, at + 1
        match = _STRING_REST.match(chunk, at, stop)
        at = match.end() if match else at
        if at >= stop:
            return None
        if chunk[at] == 0x5C:  # a backslash at the end: what it escapes comes next
            self._escaped = True
            return None
        self._in_string = False
        return at + 1


class JsonScanner:
    """Walks over one file from its first byte.

    Args:
        file: open at its first byte.
        limit: keep no value that is larger.
        start: its first byte, when it is a part of another one.

    Attributes:
        gap: what was skipped before the present value; the end of it when it is long.
    """

    def __init__(self, file: BinaryIO, limit: int, start: int = 0) -> None:
        self._file = file
        self._limit = limit
        self._base = start
        self._at = 0
        self._looked = False  # whether the buffer was looked at at once
        self._open: tuple[int, _Nesting] | None = None
        self._buffer = file.read(_CHUNK)
        self.gap = b""
        if start == 0 and self._buffer.startswith(_BOM):
            self._at = len(_BOM)

    @property
    def position(self) -> int:
        """Byte that is looked at next."""
        return self._base + self._at

    def elements(self, *, opened: bool = False, more: bool = False) -> Iterator[Value]:
        """The elements of an array, then what follows it, if anything does.

        An array that is never closed ends with an empty value that is not whole.

        Args:
            opened: the file begins behind the bracket that opens the array.
            more: the array goes on behind the end of the file.
        """
        if not opened:
            self.next_byte()
            self._at += 1
        while True:
            yield from self._in_brackets(b" \t\r\n,")
            if (first := self.next_byte(_ELEMENT_GAP)) is None:
                break
            if first == b"]":
                self._at += 1
                yield from self._rest()
                return
            value = self.value(_ELEMENT_END)
            yield value
            if not value.whole:
                return
        if not more:
            yield Value(self.position, b"", 0, whole=False)

    def documents(self) -> Iterator[Value]:
        """Values that follow each other, with or without white space between them."""
        while True:
            yield from self._in_brackets(b" \t\r\n")
            if self.next_byte() is None:
                return
            yield self.value(_WORD_END)

    def _in_brackets(self, gap: bytes) -> Iterator[Value]:
        """The next objects and arrays, as long as they are whole in the buffer.

        Args:
            gap: what may stand between them.
        """
        at, buffer = self._at, self._buffer
        if self._looked or len(buffer) - at < _FEW:
            return
        self._looked = True
        made = brackets(buffer, at, len(buffer))
        if made is None:
            return
        below = (made.levels < 0).nonzero()[0]
        levels = made.levels[: below[0]] if len(below) else made.levels
        ends = (levels == 0).nonzero()[0]
        starts = [0, *(ends[:-1] + 1).tolist()] if len(ends) else []
        places = made.positions
        for start, end in zip(places[starts].tolist(), (places[ends] + 1).tolist(), strict=False):
            if (start - at and buffer[at:start].strip(gap)) or end - start > self._limit:
                return
            self._at = at = end
            data = buffer[start:end]
            yield Value(self._base + start, data, end - start, True, multiline=b"\n" in data)
        last = int(ends[-1]) + 1 if len(ends) else 0
        if last < len(levels) == len(made.levels):
            nesting = _Nesting(int(levels[-1]), made.in_string, made.escaped)
            self._open = int(places[last]), nesting

    def goes_on(self, *, array: bool) -> bool:
        """Whether another value follows; goes to its first byte."""
        following = self.next_byte(_ELEMENT_GAP if array else _GAP)
        return following is not None and not (array and following == b"]")

    def next_byte(self, gap: re.Pattern[bytes] = _GAP) -> bytes | None:
        """Skip what stands between values; return the byte after it, None at the end."""
        self.gap = b""
        while True:
            if match := gap.match(self._buffer, self._at):
                self.gap = (self.gap + match.group())[-_GAP_BYTES:]
                self._at = match.end()
            if self._at < len(self._buffer):
                return self._buffer[self._at : self._at + 1]
            if not self._more():
                return None

    def value(self, word_end: re.Pattern[bytes] = _WORD_END, stop: int | None = None) -> Value:
        """The value that begins here.

        Args:
            word_end: what ends a value that is neither a string nor in brackets.
            stop: give up after so many bytes; the value is then not whole.
        """
        value = Value(self.position, b"", 0, whole=True)
        nesting = _Nesting() if self._buffer[self._at] in b'{["' else None
        text = Gathered(self._limit)
        is_open = self._open is not None and self._open[0] == self._at
        if self._open is not None and is_open:
            nesting = self._open[1]
        while True:
            if is_open:
                end, is_open = None, False
            elif nesting is not None:
                end = nesting.feed(self._buffer, self._at)
            else:
                match = word_end.search(self._buffer, self._at + (text.size == 0))
                end = match.start() if match else None
            part = self._buffer[self._at : end]
            text.add(part)
            value.multiline = value.multiline or b"\n" in part
            self._at += len(part)
            if end is not None:
                break
            if (stop is not None and text.size > stop) or not self._more():
                value.whole = nesting is None
                break
        value.data, value.size, value.hash = text.data(), text.size, text.hash()
        if nesting is None:
            value.data = value.data.rstrip()
        return value

    def _rest(self) -> Iterator[Value]:
        """All that stands behind the closing bracket, as one value."""
        if self.next_byte() is None:
            return
        offset, text = self.position, Gathered(KEPT_BYTES)
        while part := self._buffer[self._at :]:
            text.add(part)
            self._more()
        yield Value(offset, text.data(), text.size, True, text.hash(), stray=True)

    def _more(self) -> bool:
        """Read on and forget what was there."""
        self._base += len(self._buffer)
        self._buffer, self._at = self._file.read(_CHUNK), 0
        self._looked, self._open = False, None
        return bool(self._buffer)
