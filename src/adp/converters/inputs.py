"""Which files a conversion reads, what each is called in the store, and its data set."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from adp_schema.errors import InputError

DATA_SUFFIXES = frozenset({".json", ".jsonl", ".ndjson", ".parquet"})


@dataclass(frozen=True)
class InputFile:
    """An input file.

    Attributes:
        path: where it lies.
        source_file: its path relative to the root of the conversion, with forward slashes.
        named: True when the user named it; False when it was found in a folder.
    """

    path: Path
    source_file: str
    named: bool

    @property
    def dataset(self) -> str:
        """The data set when none is given: the first folder of the path, else the file's stem."""
        parts = self.source_file.split("/")
        return parts[0] if len(parts) > 1 else parts[0].split(".")[0] or parts[0]


def collect(sources: list[str]) -> list[InputFile]:
    """Find the input files of a conversion, in the order given; folders are walked sorted.

    The root is the folder itself when a single folder is given, else the folder that all
    sources share.

    Raises:
        InputError: a source does not exist, or a folder holds no data file.
    """
    if not sources:
        raise InputError("no input was given; name at least one file or folder")
    paths = [Path(source) for source in sources]
    for path in paths:
        if not path.exists():
            raise InputError(f"{path} does not exist; check the path")
    root = _root(paths)
    found: dict[str, InputFile] = {}
    for path in paths:
        for file in _walk(path) if path.is_dir() else [path]:
            name = Path(os.path.relpath(file.absolute(), root)).as_posix()
            found.setdefault(name, InputFile(file, name, named=not path.is_dir()))
    return list(found.values())


def _root(paths: list[Path]) -> Path:
    if len(paths) == 1 and paths[0].is_dir():
        return paths[0].absolute()
    return Path(os.path.commonpath([path.absolute().parent for path in paths]))


def _walk(folder: Path) -> list[Path]:
    files = sorted(
        path for path in folder.rglob("*") if path.is_file() and path.suffix in DATA_SUFFIXES
    )
    if not files:
        kinds = ", ".join(sorted(DATA_SUFFIXES))
        raise InputError(f"{folder} holds no data file ({kinds}); name the files themselves")
    return files
