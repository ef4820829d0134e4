"""The texts that a blob holds: all of it, or the texts beside the picture of a PNG file.

Source: https://www.w3.org/TR/png-3/#11textinfo
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

_TEXT = re.compile(
    r"(?i)^text/|[/+](?:json|xml|yaml|x-yaml|javascript|ecmascript|x-ndjson|jsonl?|sql|x-sh|toml"
    r"|x-www-form-urlencoded|x-python|xhtml|svg|csv|markdown|plain)\b"
)

_VAGUE = frozenset({None, "application/octet-stream", "application/x-pem-file"})

_PNG = b"\x89PNG\r\n\x1a\n"

_MOST = 1 << 20
"""Bytes of a compressed text that are looked at; a few bytes can stand for gigabytes."""

_MOST_COMPRESSED = 16
"""Compressed texts of one picture that are looked at."""


@dataclass(frozen=True)
class BlobText:
    """A text in a blob.

    Attributes:
        start: where it begins in the blob, with what frames it.
        end: where it ends.
        text: the text.
        kind: kind of its chunk in a PNG file; None when the blob is the text.
        head: what stands before the text in the chunk, when it is not compressed.
    """

    start: int
    end: int
    text: str
    kind: bytes | None = None
    head: bytes = b""

    def framed(self, text: str) -> bytes:
        """Another text in its place, never compressed: which bytes that makes depends on zlib.

        Args:
            text: the text.
        """
        if self.kind is None:
            return text.encode("utf-8", "surrogateescape")
        code = "utf-8" if self.kind == b"iTXt" else "latin-1"
        body = self.head + text.encode(code, "surrogateescape")
        check = zlib.crc32(self.kind + body)
        return len(body).to_bytes(4, "big") + self.kind + body + check.to_bytes(4, "big")


def texts_of_blob(data: bytes | None, mime: str | None) -> list[BlobText]:
    """The texts that a blob holds.

    A type that says nothing is believed to be text when its bytes can be.

    Args:
        data: the bytes; None when there are none.
        mime: their type, as the source says it.
    """
    if data is None:
        return []
    if data.startswith(_PNG):
        return list(_texts_of_png(data))
    if mime is not None and _TEXT.search(mime):
        return [BlobText(0, len(data), data.decode("utf-8", "surrogateescape"))]
    if mime in _VAGUE and b"\x00" not in data[:4096]:
        try:
            return [BlobText(0, len(data), data.decode("utf-8"))]
        except UnicodeDecodeError:
            return []
    return []


def _texts_of_png(data: bytes) -> Iterator[BlobText]:
    """The texts of a PNG file, until it is damaged."""
    start, left = len(_PNG), _MOST_COMPRESSED
    while start + 12 <= len(data):
        size = int.from_bytes(data[start : start + 4], "big")
        kind, end = data[start + 4 : start + 8], start + 12 + size
        if end > len(data):
            return
        if kind in (b"tEXt", b"zTXt", b"iTXt"):
            read = _read(kind, data[start + 8 : end - 4], expand=left > 0)
            if read is not None:
                text, head, compressed = read
                left -= compressed
                yield BlobText(start, end, text, b"iTXt" if kind == b"iTXt" else b"tEXt", head)
        start = end


def _read(kind: bytes, body: bytes, *, expand: bool) -> tuple[str, bytes, bool] | None:
    """Text of a chunk, what stands before it, and whether it is compressed; None if damaged."""
    keyword, end, rest = body.partition(b"\0")
    if kind == b"iTXt":
        language, first, more = rest[2:].partition(b"\0")
        translated, second, words = more.partition(b"\0")
        head = b"\0".join((keyword, b"\0\0" + language, translated, b""))
        ends, compressed, rest = end and first and second, rest[:1] == b"\1", words
    else:
        head, compressed = keyword + b"\0", kind == b"zTXt"
        ends, rest = end, rest[1:] if compressed else rest
    if not ends or (compressed and not expand):
        return None
    if compressed:
        try:
            rest = zlib.decompressobj().decompress(rest, _MOST)
        except zlib.error:
            return None
    code = "utf-8" if kind == b"iTXt" else "latin-1"
    return rest.decode(code, "surrogateescape"), head, compressed
