"""Zip archives: what is in them. `adp.converters.files.streams` decompresses it."""

from __future__ import annotations

import stat
import struct
import zipfile
from functools import lru_cache
from typing import BinaryIO
from zipfile import ZipInfo

from adp.core.input_files import open_file

STORED, DEFLATED, BZIP2, ZSTANDARD = 0, 8, 12, 93
SUFFIXES = frozenset({".zip", ".eval"})
MAGIC = (b"PK\x03\x04", b"PK\x05\x06")
_READABLE = frozenset({STORED, DEFLATED, BZIP2, ZSTANDARD})
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
