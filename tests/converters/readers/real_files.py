"""Real files of a format, where they are at hand, and what became of them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import adp
from adp.converters.conformance import conformance
from tests import samples

FOLDERS = os.environ.get("ADP_FORMAT_SAMPLES", str(samples.ROOT)).split(os.pathsep)
"""Folders with ``formats/<name>`` and ``formats_new/<name>``."""


def real(*names: str) -> list[Any]:
    """Parameters: the files with these names below the folders, or one that skips itself."""
    files = [
        path for folder in FOLDERS for name in names for path in sorted(Path(folder).glob(name))
    ]
    reason = f"no file {names[0]}: set ADP_FORMAT_SAMPLES to the folders of real files"
    return files or [pytest.param(None, marks=pytest.mark.skip(reason=reason))]


class Rows:
    """A store of some files, for questions."""

    def __init__(self, files: list[Path], folder: Path, **options: Any) -> None:
        self.manifest = adp.convert([str(file) for file in files], str(folder), **options).manifest
        self.folder = str(folder)

    def all(self, sql: str) -> list[dict[str, Any]]:
        """The rows of a query."""
        rows: list[dict[str, Any]] = adp.query(self.folder, sql).to_pylist()
        return rows

    def value(self, sql: str) -> Any:
        """The only value of a query."""
        (row,) = self.all(sql)
        (cell,) = row.values()
        return cell

    def count(self, table: str, where: str = "true") -> int:
        """Rows of a table."""
        return int(self.value(f"select count(*) from {table} where {where}"))

    def total(self, column: str, where: str = "true") -> int:
        """Sum of a column of the steps."""
        return int(self.value(f"select coalesce(sum({column}), 0) from steps where {where}"))


def silent(name: str, path: Path) -> list[str]:
    """Places of a real file whose change shows nowhere."""
    return [place.path for place in conformance(name, [str(path)], tries=1).silent()]
