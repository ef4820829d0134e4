"""SHA256SUMS: the hash of every published file, in the form that ``sha256sum -c`` reads.

The manifest of the store has hashes of its own; these are for people and programs without `adp`.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from adp.stores.visible_text import visible
from adp_schema.errors import OutputExistsError
from adp_schema.manifest import write_atomic

SUMS = "SHA256SUMS"

SCRATCH = ".run"
"""Folder for what only the run needs; it must not be uploaded."""


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
    sums = [_sum(folder, path) for name in names for path in _files(folder / name)]
    sums.sort(key=lambda item: item.path)
    if last:
        text = "".join(f"{item.sha256}  {item.path}\n" for item in sums)
        write_atomic(folder / SUMS, text)
        sums.append(_sum(folder, folder / SUMS))
    return sums


def read_sums(folder: Path) -> list[Sum]:
    """The files that ``SHA256SUMS`` lists, and itself; sizes are those on disk."""
    sums = [
        Sum(path, (folder / path).stat().st_size, sha256)
        for path, sha256 in _listed(folder).items()
    ]
    return [*sums, _sum(folder, folder / SUMS)]


def check_names(folder: Path) -> list[str]:
    """Check that a folder holds what ``SHA256SUMS`` lists, and nothing else but ``.run``.

    Returns:
        The paths of its files, ``SHA256SUMS`` with them, in order.

    Raises:
        OutputExistsError: a file is missing, or somebody else put one there. A symbolic link is
            never one of ours.
    """
    listed = {*_listed(folder), SUMS}
    ours, others = _walk(folder)
    others += [path for path in ours if path not in listed]
    if others:
        more = f" (and {len(others) - 1:,} more)" if len(others) > 1 else ""
        raise OutputExistsError(
            f"{folder} holds {visible(min(others))}{more}, which adp publish did not write; move "
            "it away, then call again"
        )
    if missing := listed - set(ours):
        raise OutputExistsError(
            f"{visible(min(missing))} is missing in {folder}; remove the folder, then call again"
        )
    return sorted(ours)


def check_sums(folder: Path) -> None:
    """Check that a folder holds what ``SHA256SUMS`` lists, unchanged, and nothing else.

    Raises:
        OutputExistsError: a file was changed or is missing, or somebody else put one there.
    """
    check_names(folder)
    for path, sha256 in _listed(folder).items():
        if _sum(folder, folder / path).sha256 != sha256:
            raise OutputExistsError(
                f"{visible(path)} in {folder} was changed since it was written; remove the "
                "folder, then call again"
            )


def _listed(folder: Path) -> dict[str, str]:
    """Path -> hash, as ``SHA256SUMS`` says."""
    results = {}
    for line in (folder / SUMS).read_text(encoding="utf-8", errors="replace").split("\n"):
        sha256, _, path = line.partition("  ")
        if path:
            results[path] = sha256
    return results


def _walk(folder: Path) -> tuple[list[str], list[str]]:
    """The regular files of a folder, and what else it holds: links, pipes, empty folders not."""
    files, others = [], []
    for root, folders, names in os.walk(folder):
        if Path(root) == folder and SCRATCH in folders:
            folders.remove(SCRATCH)
        for name in [*names, *folders]:
            path = Path(root, name)
            kind = path.lstat().st_mode
            if stat.S_ISREG(kind):
                files.append(path.relative_to(folder).as_posix())
            elif not stat.S_ISDIR(kind):
                others.append(path.relative_to(folder).as_posix())
    return files, others


def _files(path: Path) -> Iterator[Path]:
    if path.is_dir():
        yield from (item for item in sorted(path.rglob("*")) if item.is_file())
    else:
        yield path


def _sum(folder: Path, path: Path) -> Sum:
    with path.open("rb") as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    return Sum(path.relative_to(folder).as_posix(), path.stat().st_size, sha256)
