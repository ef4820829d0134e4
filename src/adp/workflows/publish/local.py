"""The files of a folder that is to be published: compared with those of the Hub, and grouped."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from adp.stores.cutting import count_one, cut_runs
from adp.workflows.publish.checksums import SUMS, check_names
from adp_schema.errors import InputError
from adp_schema.hub import HubFile
from adp_schema.manifest import RUN

LARGE = 10 << 20
"""Files above this are large objects, whatever their name."""


@dataclass
class LocalFile:
    """A file of the folder; it is hashed when it must be compared.

    Attributes:
        path: its path in the folder, which is that in the repository.
        file: where it lies.
        size: its bytes.
    """

    path: str
    file: Path
    size: int
    _hashes: tuple[str, str] | None = None

    def same(self, there: HubFile | None) -> bool:
        """Whether the Hub has this file."""
        if there is None or there.size != self.size:
            return False
        blob, sha256 = self._hashed()
        return there.sha256 == sha256 if there.sha256 else there.blob == blob

    def _hashed(self) -> tuple[str, str]:
        """The hash by which git knows the file, and that of its bytes."""
        if self._hashes is None:
            blob, sha256 = hashlib.sha1(b"blob %d\0" % self.size), hashlib.sha256()
            with self.file.open("rb") as file:
                while piece := file.read(1 << 20):
                    blob.update(piece)
                    sha256.update(piece)
            self._hashes = (blob.hexdigest(), sha256.hexdigest())
        return self._hashes


def scan(folder: Path) -> dict[str, LocalFile]:
    """The files of a folder: path in it -> file.

    With a list ``SHA256SUMS`` they are those that it names and itself. Without one, it is all
    but the hidden ones and ``run.json``.

    Raises:
        InputError: there are none, or one is a symbolic link.
        OutputExistsError: the folder is not what its list says.
    """
    results: dict[str, LocalFile] = {}
    if (folder / SUMS).is_file():
        for path in check_names(folder):
            results[path] = LocalFile(path, folder / path, (folder / path).stat().st_size)
        return results
    for file in sorted(folder.rglob("*")):
        path = file.relative_to(folder).as_posix()
        hidden = any(part.startswith(".") for part in path.split("/"))
        if file.is_symlink() and not hidden:
            raise InputError(f"{folder} holds a symbolic link, {path}; put the file there instead")
        if file.is_file() and not hidden and file.name != RUN:
            results[path] = LocalFile(path, file, file.stat().st_size)
    if not results:
        raise InputError(f"{folder} holds no files; there is nothing to upload")
    return results


def groups(
    files: Sequence[LocalFile], count: int, size: int, *, small: bool = False
) -> Iterator[list[LocalFile]]:
    """Cut a list of files at a number and at a sum of bytes.

    Args:
        files: the files.
        count: how many go into a group.
        size: how many bytes go into a group, unless one file is larger.
        small: count the bytes of small files only, which lie in the commit itself.
    """

    def weight(file: LocalFile) -> int:
        large = file.size > LARGE or file.path.endswith(".parquet")
        return 0 if small and large else file.size

    yield from cut_runs(files, [(count_one, count), (weight, size)])
