"""Tar archives: what is in them. Their members lie in them as they are, one after another.

A header is read by itself and never more than a megabyte of names, so that an archive that is made
to use up memory cannot.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import BinaryIO

from adp.core.input_files import open_file

_BLOCK = 512
_CHUNK = 1 << 20
_NAME_BYTES = 1 << 20
_LONG_NAME, _LONG_LINK, _EXTENDED, _SHARED = b"L", b"K", b"xX", b"g"
_FAULTS = {
    b"1": "the member is a link; links in archives are not followed",
    b"2": "the member is a link; links in archives are not followed",
    b"3": "the member is a device, and no file",
    b"4": "the member is a device, and no file",
    b"6": "the member is a pipe, and no file",
    b"S": "the member has holes; unpack the archive first",
}
_FILES = (b"0", b"\0", b"7")
_EMPTY = (b"1", b"2", b"3", b"4", b"5", b"6")
"""What has no data, whatever its header says of a size."""


@dataclass(frozen=True)
class TarMember:
    """A member that is no folder.

    Attributes:
        name: its name.
        start: its first byte in the archive.
        size: its length in bytes.
        fault: why it cannot be read; empty when it can.
    """

    name: str
    start: int
    size: int
    fault: str = ""


@dataclass
class _Further:
    """What headers before that of a member say of it."""

    name: bytes = b""
    size: int | None = None
    has_holes: bool = False


class _DamagedError(Exception):
    """The archive cannot be read any further; the text says why."""


@lru_cache(maxsize=8)
def tar_members(path: str, size: int, mtime_ns: int) -> tuple[tuple[TarMember, ...], str]:
    """The members of an archive, in its own order, and why there may be more; empty when not.

    Args:
        path: the archive, without links and not compressed.
        size: its size; with the time it keeps a changed file from being taken for the old one.
        mtime_ns: its time of change.

    Raises:
        OSError: it cannot be read.
    """
    members: list[TarMember] = []
    fault = ""
    with open_file(path) as file:
        try:
            members.extend(_members(file, size))  # of a damaged one those before the damage
        except _DamagedError as error:
            fault = f"the tar archive is damaged ({error})"
    return tuple(members), fault


def is_header(head: bytes) -> bool:
    """Whether a block is the header of a member: its checksum says so."""
    if len(head) < _BLOCK or not head.strip(b"\0"):
        return False
    try:
        return _octal(head[148:156]) == sum(head[:148]) + 8 * 0x20 + sum(head[156:_BLOCK])
    except _DamagedError:
        return False


def _members(file: BinaryIO, end: int) -> Iterator[TarMember]:
    at, further = 0, _Further()
    while True:
        file.seek(at)
        head = file.read(_BLOCK)
        if len(head) == _BLOCK and not head.strip(b"\0"):
            _check_end(file, at)
            return
        if len(head) < _BLOCK:
            raise _DamagedError("it ends without its last block, and may be cut")
        if not is_header(head):
            raise _DamagedError(f"at byte {at:,} there is no header of a member")
        kind = head[156:157]
        size = _number(head[124:136])
        start = at + _BLOCK
        if kind in (_LONG_NAME, _LONG_LINK, _SHARED) or kind in _EXTENDED:
            _read_further(file, kind, size, further)
        else:
            size = size if further.size is None else further.size
            size = 0 if kind in _EMPTY else size
            member = _member(head, kind, TarMember("", start, size), further)
            if member is not None:
                yield member
            further = _Further()
        at = start + -(-size // _BLOCK) * _BLOCK
        if start + size > end:
            raise _DamagedError("it ends inside a member")


def _check_end(file: BinaryIO, at: int) -> None:
    """Look whether only zeros follow the end: a header that became zeros would look like it."""
    while chunk := file.read(_CHUNK):
        if chunk.strip(b"\0"):
            raise _DamagedError(f"it seems to end at byte {at:,}, but more follows")


def _member(head: bytes, kind: bytes, place: TarMember, further: _Further) -> TarMember | None:
    """A member by its header; None when it is a folder."""
    name = further.name or _field(head[:100])
    if not further.name and head[257:263] == b"ustar\0" and (prefix := _field(head[345:500])):
        name = prefix + b"/" + name
    if kind == b"5" or (kind == b"\0" and name.endswith(b"/")):
        return None
    fault = "" if kind in _FILES else f"the member is of the kind {kind!r}, which is not read"
    fault = _FAULTS.get(kind, fault)
    if further.has_holes:
        fault = _FAULTS[b"S"]
    return TarMember(name.decode("utf-8", "backslashreplace"), place.start, place.size, fault)


def _read_further(file: BinaryIO, kind: bytes, size: int, further: _Further) -> None:
    """Take what a header says of the member after it."""
    if size > _NAME_BYTES:
        raise _DamagedError(f"a name takes more than {_NAME_BYTES:,} bytes")
    data = file.read(size)
    if kind == _LONG_NAME:
        further.name = _field(data)
    if kind not in _EXTENDED:
        return
    while data.strip(b"\0"):
        length, _, rest = data.partition(b" ")
        if not length.isdigit() or len(length) > 7 or not 0 < int(length) <= len(data):
            raise _DamagedError("an extended header is broken")
        key, _, value = rest[: int(length) - len(length) - 1].rstrip(b"\n").partition(b"=")
        data = data[int(length) :]
        if key == b"path" or key == b"GNU.sparse.name":
            further.name = value
        elif key == b"size":
            if not value.isdigit() or len(value) > 20:
                raise _DamagedError("an extended header is broken")
            further.size = int(value)
        further.has_holes |= key.startswith(b"GNU.sparse.")


def _field(data: bytes) -> bytes:
    return data.partition(b"\0")[0]


def _number(data: bytes) -> int:
    """A number of a header: octal, or binary when it is too large for that."""
    if data[0] == 0x80:
        return int.from_bytes(data[1:], "big")
    return _octal(data)


def _octal(data: bytes) -> int:
    text = _field(data).strip()
    try:
        value = int(text or b"0", 8)
    except ValueError:
        raise _DamagedError("a header has a broken number") from None
    if value < 0:
        raise _DamagedError("a header has a broken number")
    return value
