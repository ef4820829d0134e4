"""Walking folders and matching patterns: sorted, each folder once, whatever links there are."""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from adp.core.input_files import OUTSIDE, Roots
from adp_schema.location import INDEX_SUFFIX

COMPRESSIONS = frozenset({".gz", ".zst", ".zstd"})
ARCHIVES = frozenset({".zip", ".eval", ".tar", ".tgz"})
RECORDS = frozenset({".json", ".jsonl", ".ndjson", ".traj"})
DATABASES = frozenset({".db", ".sqlite", ".sqlite3", ".vscdb"})
DATA_SUFFIXES = RECORDS | {".parquet"} | ARCHIVES | DATABASES
TEXT_ENDS = ("chat.history.md", ".sse")
"""Ends of names of logs that are texts; they are found even where their name begins with a dot."""

LOG_FOLDERS = frozenset({".system_generated"})
"""Folders of logs that are looked into although their name begins with a dot."""

_MAGIC = re.compile(r"[*?\[]")
STORE_MARKS = ("adp.json", "growing.json")
"""Files that only a store has."""

_STORE = (*STORE_MARKS, ".run/plan.json")


def is_data(name: str) -> bool:
    """Whether a file is looked at when it is found, not named: by the end of its name.

    Args:
        name: its name or path.
    """
    suffixes = [suffix.lower() for suffix in PurePosixPath(name).suffixes]
    if not suffixes:
        return False
    if name.endswith(TEXT_ENDS):
        return True
    if suffixes[-1] in COMPRESSIONS:
        return len(suffixes) > 1 and (suffixes[-2] in RECORDS or suffixes[-2] == ".tar")
    return suffixes[-1] in DATA_SUFFIXES


def is_tar_name(name: str) -> bool:
    """Whether a file is called like a tar archive, compressed or not.

    Args:
        name: its name or path.
    """
    suffixes = [suffix.lower() for suffix in PurePosixPath(name).suffixes] or [""]
    if suffixes[-1] in COMPRESSIONS:
        suffixes.pop()
    return suffixes[-1:] in ([".tar"], [".tgz"])


def is_archive_name(name: str) -> bool:
    """Whether a file is called like an archive.

    Args:
        name: its name or path.
    """
    return is_tar_name(name) or PurePosixPath(name).suffix.lower() in ARCHIVES


def is_hidden(relative: str) -> bool:
    """Whether a path leads through a name that begins with a dot, or is made by macOS."""
    parts = [part for part in relative.split("/") if part not in (".", "..")]
    if parts and parts[-1].endswith(TEXT_ENDS):
        parts.pop()
    parts = [part for part in parts if part not in LOG_FOLDERS]
    return any(part.startswith(".") or part == "__MACOSX" for part in parts)


def is_store(folder: Path) -> bool:
    """Whether a folder holds a store, finished or not; False when it may not be looked into."""
    try:
        return any((folder / name).exists() for name in _STORE)
    except PermissionError:
        return False


def _is_index(folder: Path) -> bool:
    """Whether a folder is the index of the words of a store beside it."""
    name = folder.name.removesuffix(INDEX_SUFFIX)
    return name not in ("", folder.name) and is_store(folder.with_name(name))


@dataclass
class WalkedFiles:
    """What a walk found.

    Attributes:
        files: files, in the order of their paths.
        folders: folders, when they are asked for.
        faults: what could not be listed or followed: path -> why.
    """

    files: list[Path] = field(default_factory=list)
    folders: list[Path] = field(default_factory=list)
    faults: dict[Path, str] = field(default_factory=dict)


def walk(root: Path, depth: int | None = None, roots: Roots | None = None) -> WalkedFiles:
    """All files below a folder, but hidden ones and those of stores.

    A folder that several links lead to is visited once, so a circle of links ends.

    Args:
        root: the folder.
        depth: levels to go down; None means all.
        roots: where links may lead; None allows what lies in the folder itself.
    """
    walked_files = WalkedFiles()
    roots = roots or Roots([root])
    seen: set[str] = set()
    real, linked = deque([(root, 1)]), deque[tuple[Path, int]]()
    while real or linked:
        # Links come last, so that a folder has its own name rather than that of a link to it.
        folder, level = real.popleft() if real else linked.popleft()
        where = os.path.realpath(folder)
        if where in seen:
            continue
        seen.add(where)
        for path, entry in _entries(folder, walked_files):
            is_link = entry.is_symlink()
            if is_link:
                target = roots.locate(path)
                is_folder, is_file = target.is_folder, target.is_file
                if target.fault:
                    # A file that would not be looked at is not missed.
                    if target.fault != OUTSIDE or is_folder or is_data(path.name):
                        walked_files.faults[path] = target.fault
                    continue
            else:
                is_folder, is_file = entry.is_dir(), entry.is_file()
            if is_folder and not is_store(path) and not _is_index(path):
                walked_files.folders.append(path)
                if depth is None or level < depth:
                    (linked if is_link else real).append((path, level + 1))
            elif is_file:
                walked_files.files.append(path)
    walked_files.files.sort()
    walked_files.folders.sort()
    return walked_files


def _entries(folder: Path, walked_files: WalkedFiles) -> Iterator[tuple[Path, os.DirEntry[str]]]:
    """What is in a folder and not hidden, sorted."""
    try:
        with os.scandir(folder) as entries:
            listed = sorted(entries, key=lambda entry: entry.name)
    except OSError as error:
        walked_files.faults[folder] = f"the folder cannot be read: {error.strerror}"
        return
    for entry in listed:
        if not is_hidden(entry.name):
            yield folder / entry.name, entry


def is_pattern(source: str) -> bool:
    """Whether a source is a pattern such as ``logs/**/*.jsonl`` that the shell did not expand."""
    return is_magic(source) and not Path(source).exists()


def is_magic(source: str) -> bool:
    """Whether a path has characters that mean something in a pattern."""
    return bool(_MAGIC.search(source))


def base_of(pattern: str) -> Path:
    """The folder that a pattern begins with."""
    parts = Path(pattern).parts
    return Path(*parts[: next(at for at, part in enumerate(parts) if _MAGIC.search(part))])


def matches(pattern: str, roots: Roots | None = None) -> list[Path]:
    """The files and folders that a pattern names, sorted; ``**`` stands for any folders.

    Args:
        pattern: the pattern.
        roots: where links may lead; None allows what lies in its first folder.
    """
    base = base_of(pattern)
    wanted = Path(pattern).parts[len(base.parts) :]
    result = walk(base, None if "**" in wanted else len(wanted), roots)
    regex = re.compile(pattern_regex(wanted))
    paths = [*result.files, *result.folders, *(path for path in result.faults if path != base)]
    return sorted({path for path in paths if regex.fullmatch(path.relative_to(base).as_posix())})


def pattern_regex(parts: tuple[str, ...]) -> str:
    """The regular expression for the parts of a pattern, between which slashes stand."""
    out = []
    for part in parts[:-1]:
        out.append("(?:[^/]+/)*" if part == "**" else f"{_part_regex(part)}/")
    out.append(".+" if parts[-1] == "**" else _part_regex(parts[-1]))
    return "".join(out)


def _part_regex(part: str) -> str:
    """One part of a pattern; ``*`` and ``?`` do not match a slash."""
    out, at = [], 0
    while at < len(part):
        char = part[at]
        end = part.find("]", at + 2) if char == "[" else -1
        if char == "*":
            out.append("[^/]*")
        elif char == "?":
            out.append("[^/]")
        elif end > 0:
            inside = part[at + 1 : end].replace("\\", "\\\\")
            inside = "^" + inside[1:] if inside.startswith("!") else inside
            out.append(f"[{inside}]")
            at = end
        else:
            out.append(re.escape(char))
        at += 1
    return "".join(out)
