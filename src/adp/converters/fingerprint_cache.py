"""Fingerprints of files that were not touched since, so that they are not read again.

The cache lies in the user's cache folder, never in a store. It is a shortcut only: without it the
files are read. A file whose time of change is less than two seconds before it was looked at is not
noted, since it may change again within the same tick of the clock.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from adp.converters.files.streams import InputPlace

_SETTLED_NS = 2_000_000_000
_SCHEMA = """
    CREATE TABLE IF NOT EXISTS files (
        path TEXT PRIMARY KEY, size INTEGER, mtime_ns INTEGER, readers TEXT, format TEXT,
        fingerprint TEXT
    ) WITHOUT ROWID"""


@dataclass(frozen=True)
class CachedFile:
    """What is known of a file that did not change: its format and its fingerprint."""

    format: str | None
    fingerprint: str


class FingerprintCache:
    """What earlier runs found out about files.

    Args:
        readers: which formats there are; what was noted with others is not trusted.
        path: the database; None is the one in the user's cache folder.
    """

    def __init__(self, readers: str = "", path: Path | None = None) -> None:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        self._readers = readers
        self._path = path or Path(base) / "adp" / "inputs.sqlite"

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(self._path, timeout=2.0)) as connection, connection:
            connection.execute(_SCHEMA)
            yield connection

    def known(self, places: Iterable[InputPlace]) -> dict[str, CachedFile]:
        """What is known of the files that did not change, by path; nothing when it is unreadable.

        Args:
            places: where they lie, with their size and time of change as they are now.
        """
        wanted = {place.path: place for place in places if place.member is None}
        results: dict[str, CachedFile] = {}
        with suppress(sqlite3.Error, OSError), self._open() as connection:
            for path, *state, name, print_ in connection.execute("SELECT * FROM files"):
                place = wanted.get(path)
                if place and state == [place.size, place.mtime_ns, self._readers]:
                    results[path] = CachedFile(name, print_)
        return results

    def note(self, files: Iterable[tuple[InputPlace, str | None, str]]) -> None:
        """Remember format and fingerprint of files that were read.

        Args:
            files: where each lies, its format, and its fingerprint.
        """
        settled = time.time_ns() - _SETTLED_NS
        rows = [
            (place.path, place.size, place.mtime_ns, self._readers, name, print_)
            for place, name, print_ in files
            if place.member is None and place.mtime_ns < settled
        ]
        with suppress(sqlite3.Error, OSError), self._open() as connection:
            connection.executemany("INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?, ?, ?)", rows)
