"""The members of an archive as places to read from: of zip, tar and compressed tar archives."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from adp.converters.files import archives
from adp.converters.files.detect import compression_of_head
from adp.converters.files.limits import ConvertLimits
from adp.converters.files.streams import InputPlace, InputStream, check_unchanged
from adp.converters.files.tar import is_header, tar_members
from adp.converters.files.walk import is_tar_name
from adp.core.input_files import open_file
from adp_schema.errors import ChangedInputError
from adp_schema.ids import digest

_BLOCK = 512
_CHUNK = 4 << 20


@dataclass(frozen=True)
class Unpacking:
    """Where compressed archives are unpacked, and how much may come out.

    Attributes:
        folder: the folder; None when there is none, and such archives cannot be read.
        limits: limits of the conversion.
    """

    folder: Path | None = None
    limits: ConvertLimits = field(default_factory=ConvertLimits)


@dataclass(frozen=True)
class ArchiveMember:
    """A member of an archive.

    Attributes:
        name: its name as text, with slashes; a label that leads nowhere.
        place: where its bytes lie.
        fault: why it cannot be read; empty when it can.
    """

    name: str
    place: InputPlace
    fault: str = ""


@dataclass(frozen=True)
class ArchiveListing:
    """What is in an archive.

    Attributes:
        members: its files, in its own order.
        fault: why there may be more, or none at all; empty when this is all.
    """

    members: list[ArchiveMember]
    fault: str = ""


def archive_kind(path: str, name: str, named: bool) -> str:
    """What an archive a file is: ``zip``, ``tar``, a compression of a tar archive, or nothing.

    Args:
        path: the file, without links.
        name: its name. A file that was not named by the user is an archive only by its name.
        named: whether the user named it.
    """
    is_tar = is_tar_name(name)
    is_zip = PurePosixPath(name).suffix.lower() in archives.SUFFIXES
    if not (named or is_tar or is_zip):
        return ""
    try:
        with open_file(path) as file:
            head = file.read(_BLOCK)
            status = os.fstat(file.fileno())
    except OSError:
        return ""
    if head[:4] in archives.MAGIC:
        return "zip" if named or is_zip else ""
    if not (named or is_tar):
        return ""
    compression = compression_of_head(head)
    if not compression:
        return "tar" if is_header(head) else ""
    size = status.st_size
    place = InputPlace(path, size, status.st_mtime_ns, packed=size, compression=compression)
    try:
        with InputStream(place, ConvertLimits()) as source:
            return compression if is_header(source.file.read(_BLOCK)) else ""
    except OSError:
        return ""


def zip_listing(place: InputPlace) -> ArchiveListing:
    """What is in a zip archive.

    Args:
        place: the archive.
    """
    try:
        infos = archives.members(place.path, place.size, place.mtime_ns)
        fault = archives.directory_fault(place.path, infos)
    except (OSError, zipfile.BadZipFile, NotImplementedError, ValueError) as error:
        return ArchiveListing([], f"the zip archive is damaged ({error})")
    members = []
    for index, info in enumerate(infos):
        inside = InputPlace(place.path, place.size, place.mtime_ns, index, info.compress_size)
        label = info.filename.encode("utf-8", "backslashreplace").decode()
        if not label.endswith("/"):
            members.append(ArchiveMember(_label(label), inside, archives.member_fault(info)))
    return ArchiveListing(members, fault)


def tar_listing(place: InputPlace, kind: str, unpacking: Unpacking) -> ArchiveListing:
    """What is in a tar archive.

    Args:
        place: the archive.
        kind: its compression, or ``tar``.
        unpacking: where it is unpacked when it is compressed.

    Raises:
        OSError: there is no room to unpack it.
    """
    fault = ""
    try:
        if kind != "tar":
            if unpacking.folder is None:
                return ArchiveListing([], "a compressed tar archive; unpack it first")
            place, fault = _unpacked(replace(place, compression=kind), unpacking)
        listed, damage = tar_members(place.path, place.size, place.mtime_ns)
    except ChangedInputError as change:
        return ArchiveListing([], f"{change.reason}; convert it again")
    except OSError as error:
        return ArchiveListing([], f"it cannot be read: {error.strerror or error}")
    members = [
        ArchiveMember(
            _label(member.name),
            InputPlace(
                place.path, place.size, place.mtime_ns, index, member.size, start=member.start
            ),
            member.fault,
        )
        for index, member in enumerate(listed)
    ]
    return ArchiveListing(members, fault or damage)


def _label(name: str) -> str:
    return name.replace("\\", "/").removeprefix("./")


def _unpacked(place: InputPlace, unpacking: Unpacking) -> tuple[InputPlace, str]:
    """The archive without its compression, and why there is no more of it, if it ends too early.

    It gets the time of the archive, so that a run that goes on finds the same inputs.
    """
    folder = Path(os.path.realpath(unpacking.folder or ""))
    folder.mkdir(parents=True, exist_ok=True)
    name = digest(f"{place.path}\0{place.size}\0{place.mtime_ns}".encode(errors="surrogateescape"))
    target, note = folder / f"{name}.tar", folder / f"{name}.fault"
    if not target.exists():
        new = target.with_suffix(".new")
        with InputStream(place, unpacking.limits) as source, new.open("wb") as out:
            for chunk in _chunks(source):
                out.write(chunk)
            note.write_text(source.fault, encoding="utf-8")
        check_unchanged(place)
        os.utime(new, ns=(place.mtime_ns, place.mtime_ns))
        new.replace(target)
    status = target.stat()
    size = status.st_size
    return InputPlace(str(target), size, status.st_mtime_ns, packed=size), note.read_text("utf-8")


def _chunks(source: InputStream) -> Iterator[bytes]:
    while chunk := source.file.read(_CHUNK):
        yield chunk
