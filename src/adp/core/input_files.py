"""Input files: where links may lead, and opening them without waiting and without surprises.

What a user names is read, wherever it lies. What is found in a folder is read only when it lies
in something that was named: a link that leads out of it would bring in files that nobody meant.
"""

from __future__ import annotations

import errno
import io
import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from adp_schema.errors import InputError

OUTSIDE = "it is a link that leads out of what was named; --follow-links reads it"
"""Why a link is refused."""

_READ = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_CAREFUL = _READ | sum(
    getattr(os, name, 0) for name in ("O_NONBLOCK", "O_NOCTTY", "O_NOFOLLOW")
)  # fmt: skip
_KINDS = (
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISLNK, "a link"),
    (stat.S_ISDIR, "a folder"),
)


def kind_of(mode: int) -> str:
    """What an entry of a folder is, by its mode: ``a pipe``, ``a file``..."""
    return next((kind for test, kind in _KINDS if test(mode)), "a file")


@dataclass(frozen=True)
class Located:
    """Where a path leads.

    Attributes:
        path: the place without links; empty when it must not be read.
        status: its status; None when it is not known.
        fault: why it must not be read; empty when it may.
    """

    path: str
    status: os.stat_result | None
    fault: str = ""

    @property
    def is_folder(self) -> bool:
        """Whether a folder lies there."""
        return self.status is not None and stat.S_ISDIR(self.status.st_mode)

    @property
    def is_file(self) -> bool:
        """Whether a regular file lies there."""
        return self.status is not None and stat.S_ISREG(self.status.st_mode)


class Roots:
    """The places that input may come from.

    Args:
        named: files and folders that the user named; they may be links themselves.
        follow_links: read what links lead to, wherever that is.
    """

    def __init__(self, named: Iterable[str | os.PathLike[str]], follow_links: bool = False) -> None:
        self._named = frozenset(os.path.realpath(path) for path in named)
        self._follow = follow_links
        self._folders: dict[str, str] = {}

    def locate(self, path: str | os.PathLike[str]) -> Located:
        """Where a path leads, and whether it may be read."""
        folder, name = os.path.split(Path(path).absolute())
        if folder not in self._folders:
            self._folders[folder] = os.path.realpath(folder)
        place = os.path.join(self._folders[folder], name)  # noqa: PTH118
        linked = ""
        try:
            status = os.lstat(place)
            if name in ("", "..") or stat.S_ISLNK(status.st_mode):
                linked = "a link to "
                place = os.path.realpath(place)
                status = os.lstat(place)
        except OSError as error:
            nothing = linked and isinstance(error, FileNotFoundError | NotADirectoryError)
            fault = "it is a link to nothing" if nothing else f"it cannot be read: {error.strerror}"
            return Located("", None, fault)
        mode = status.st_mode
        if stat.S_ISLNK(mode):
            return Located("", None, "it is a link that leads back to itself")
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
            return Located("", status, f"it is {linked}{kind_of(mode)}, and no file")
        if not self._follow and not self._is_inside(place):
            return Located("", status, OUTSIDE)
        return Located(place, status)

    def _is_inside(self, place: str) -> bool:
        while place not in self._named:
            above = os.path.dirname(place)  # noqa: PTH120
            if above == place:
                return False
            place = above
        return True


def check_inside(path: Path, folder: Path) -> None:
    """Refuse a file that was found in a folder when it lies elsewhere, or is no file.

    For readers of folders that have no `Roots` and no option to follow links.

    Raises:
        InputError: it is a link that leads out of the folder, to nothing, to a pipe...
    """
    fault = Roots([folder]).locate(path).fault
    if fault == OUTSIDE:
        raise InputError(
            f"{path} is a link that leads out of {folder}; put the file itself there, "
            "or name the place where it lies"
        )
    if fault:
        raise InputError(f"{path}: {fault}; remove it")


def open_file(path: str | os.PathLike[str], buffering: int = -1) -> BinaryIO:
    """Open a regular file for reading.

    What stands there is looked at when it is open, so that a file that was changed for a pipe or a
    link since it was found neither blocks nor leads elsewhere.

    Args:
        path: absolute and without links, as `Roots.locate` gives it.
        buffering: as of `open`.

    Raises:
        OSError: it cannot be opened, is no regular file, or is reached by a link.
    """
    place = os.fspath(path)
    descriptor = os.open(place, _CAREFUL)
    try:
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, f"{kind_of(mode)} stands there, and no file", place)
        if _opened(descriptor) != place:
            _check_place(descriptor, place)
        return os.fdopen(descriptor, "rb", buffering)
    except BaseException:
        os.close(descriptor)
        raise


def _check_place(descriptor: int, place: str) -> None:
    """Refuse what is open when it is not what lies at its path, or when links lead there."""
    same = os.path.samestat(os.lstat(place), os.fstat(descriptor))
    if not same or os.path.realpath(place) != place:
        raise OSError(errno.ELOOP, "a link leads there now", place)


def _opened(descriptor: int) -> str:
    """The path of what is open, by the kernel; empty where it does not say."""
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}")  # noqa: PTH115
    except OSError:
        return ""


LARGEST = 64 << 20
"""Bytes of a file of settings, unless a reader of many records allows more."""

LARGEST_LIST = 1 << 30
"""Bytes of a file of records that is read as a whole, such as a list of tasks."""


def read_bytes(path: str | os.PathLike[str], largest: int = LARGEST) -> bytes:
    """All bytes of a file that a user names: a recipe, a configuration, a list of tasks.

    A pipe is read to its end: the shell makes one of ``<(command)``.

    Args:
        path: the file; links are followed.
        largest: bytes that it may have.

    Raises:
        OSError: it cannot be read, is no file and no pipe that somebody writes to, or is larger.
            Its ``strerror`` says so.
    """
    place = os.fspath(path)
    descriptor = os.open(place, _CAREFUL & ~getattr(os, "O_NOFOLLOW", 0))
    try:
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISFIFO(mode) and not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, f"it is {kind_of(mode)}, and no file", place)
        os.set_blocking(descriptor, True)
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            data = file.read(largest + 1)
    finally:
        os.close(descriptor)
    if len(data) > largest:
        raise OSError(errno.EINVAL, f"it is larger than {largest >> 20:,} MiB", place)
    if stat.S_ISFIFO(mode) and not data:
        raise OSError(errno.EPIPE, "it is a pipe that nobody writes to", place)
    return data


def read_text(path: str | os.PathLike[str], encoding: str = "utf-8") -> str:
    """The text of such a file, with any line ends.

    Args:
        path: the file.
        encoding: ``utf-8``, or ``utf-8-sig`` where a mark may stand before the text.

    Raises:
        OSError: as for `read_bytes`, or it is no text.
    """
    data = read_bytes(path)
    try:
        return io.TextIOWrapper(io.BytesIO(data), encoding=encoding).read()
    except UnicodeDecodeError:
        raise OSError(errno.EILSEQ, "it is no UTF-8 text", os.fspath(path)) from None
