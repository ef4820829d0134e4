"""SHA256SUMS: the hash of every published file, in the form that ``sha256sum -c`` reads.

The manifest of the store has hashes of its own; these are for people and programs without `adp`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from adp_schema.manifest import write_atomic

SUMS = "SHA256SUMS"


@dataclass(frozen=True)
class Sum:
    """A file and its hash.

    Attributes:
        path: path in the published folder.
        size: size in bytes.
        sha256: its SHA-256, in hexadecimal.
    """

    path: str
    size: int
    sha256: str


def write_sums(folder: Path, names: Sequence[str], *, last: bool) -> list[Sum]:
    """Hash files, and with ``last`` write the list of them.

    Args:
        folder: the published folder.
        names: files, and folders of which all files are taken.
        last: write ``SHA256SUMS``, and return it too.
    """
    found = [_sum(folder, path) for name in names for path in _files(folder / name)]
    found.sort(key=lambda one: one.path)
    if last:
        text = "".join(f"{one.sha256}  {one.path}\n" for one in found)
        write_atomic(folder / SUMS, text)
        found.append(_sum(folder, folder / SUMS))
    return found


def read_sums(folder: Path) -> list[Sum]:
    """The files that ``SHA256SUMS`` lists, and itself; sizes are those on disk."""
    found = []
    for line in (folder / SUMS).read_text(encoding="utf-8").splitlines():
        sha256, _, path = line.partition("  ")
        found.append(Sum(path, (folder / path).stat().st_size, sha256))
    return [*found, _sum(folder, folder / SUMS)]


def check_sums(folder: Path) -> bool:
    """Whether all files are as ``SHA256SUMS`` says."""
    lines = (folder / SUMS).read_text(encoding="utf-8").splitlines()
    for line in lines:
        sha256, _, path = line.partition("  ")
        file = folder / path
        if not file.is_file() or _sum(folder, file).sha256 != sha256:
            return False
    return True


def _files(path: Path) -> Iterator[Path]:
    if path.is_dir():
        yield from (each for each in sorted(path.rglob("*")) if each.is_file())
    else:
        yield path


def _sum(folder: Path, path: Path) -> Sum:
    with path.open("rb") as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    return Sum(path.relative_to(folder).as_posix(), path.stat().st_size, sha256)
