"""Zip archives: what is in them. `adp.converters.files.streams` decompresses it."""

from __future__ import annotations

import stat
import struct
import zipfile
from collections.abc import Sequence
from functools import lru_cache
from typing import BinaryIO
from zipfile import ZipInfo

from adp.core.input_files import open_file

STORED, DEFLATED, BZIP2, ZSTANDARD = 0, 8, 12, 93
SUFFIXES = frozenset({".zip", ".eval"})
MAGIC = (b"PK\x03\x04", b"PK\x05\x06")
_READABLE = frozenset({STORED, DEFLATED, BZIP2, ZSTANDARD})
_END, _COMMENT, _MANY = struct.Struct("<4s6xH10x"), 0xFFFF, 0xFFFF
"""The end of an archive, the longest comment after it, and a count for more than it can hold."""
_UTF8 = 0x800
_LOCAL_HEADER = struct.Struct("<4s22xHH")


@lru_cache(maxsize=8)
def members(path: str, size: int, mtime_ns: int) -> tuple[ZipInfo, ...]:
    """The members of an archive, in its own order.

    Args:
        path: the archive, without links.
        size: its size; with the time it keeps a changed file from being taken for the old one.
        mtime_ns: its time of change.

    Raises:
        OSError: it cannot be read.
        zipfile.BadZipFile: it is no zip archive, or a damaged one.
    """
    with open_file(path) as file, zipfile.ZipFile(file) as archive:
        return tuple(archive.infolist())


def directory_fault(path: str, infos: Sequence[ZipInfo]) -> str:
    """Why members may be missing from the directory of an archive; empty when none are.

    Args:
        path: the archive, without links.
        infos: what its directory lists.

    Raises:
        OSError: it cannot be read.
    """
    with open_file(path) as file:
        declared = _declared_count(file)
        if declared not in (None, len(infos) & _MANY):  # some writers count from 0 again
            return f"the zip archive is damaged: it lists {len(infos)} of {declared} members"
        for info in infos:
            name = info.orig_filename.encode("utf-8" if info.flag_bits & _UTF8 else "cp437")
            file.seek(info.header_offset)
            header = file.read(_LOCAL_HEADER.size + len(name))
            if header[_LOCAL_HEADER.size :] != name:
                return "the zip archive is damaged: its directory has another name of a member"
    return ""


def _declared_count(file: BinaryIO) -> int | None:
    """How many members an archive says that it has; None when it is too many for that field."""
    file.seek(max(0, file.seek(0, 2) - _END.size - _COMMENT))
    tail = file.read()
    place = tail.rfind(MAGIC[1], 0, len(tail) - _END.size + len(MAGIC[1]))
    count: int = _END.unpack_from(tail, place)[1] if place >= 0 else _MANY
    return None if count == _MANY else count


def data_start(handle: BinaryIO, info: ZipInfo) -> int | None:
    """Where the data of a member begins; None when no member is there."""
    handle.seek(info.header_offset)
    header = handle.read(_LOCAL_HEADER.size)
    if len(header) < _LOCAL_HEADER.size:
        return None
    magic, name, extra = _LOCAL_HEADER.unpack(header)
    if magic != MAGIC[0]:
        return None
    return info.header_offset + _LOCAL_HEADER.size + int(name) + int(extra)


def member_fault(info: ZipInfo) -> str:
    """Why a member cannot be read; empty when it can."""
    if stat.S_ISLNK(info.external_attr >> 16):
        return "the member is a link; links in archives are not followed"
    if info.flag_bits & 1:
        return "the member is encrypted; unpack the archive first"
    if info.compress_type not in _READABLE:
        return (
            f"the member is compressed by method {info.compress_type}, which is not read; "
            "unpack the archive first"
        )
    return ""
