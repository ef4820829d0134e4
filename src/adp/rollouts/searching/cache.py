"""A cache of texts in one SQLite file, which processes share.

The first value of a key stays, so that all who ask get the same. A process that is killed while it
writes leaves the file as it was before.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from pathlib import Path
from typing import TypeVar

from adp_schema.errors import InputError

_T = TypeVar("_T")
_PATIENCE = 60.0


def query_key(query: str, *about: object) -> str:
    """The key of a query: without case and repeated spaces.

    Args:
        query: the query.
        about: whatever else the value depends on.
    """
    key = "\n".join([" ".join(query.casefold().split()), *map(str, about)])
    return key.encode("utf-8", "replace").decode("utf-8")


class TextCache:
    """Texts by key.

    Args:
        path: the file; it is made when it is not there.

    Raises:
        InputError: it is there and no such cache, or cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._do(
            lambda cache: cache.execute(
                "CREATE TABLE IF NOT EXISTS texts (key TEXT PRIMARY KEY, value TEXT NOT NULL)"
            )
        )

    def get(self, key: str) -> str | None:
        """The text of a key; None when there is none."""
        row = self._do(
            lambda cache: cache.execute("SELECT value FROM texts WHERE key = ?", (key,)).fetchone()
        )
        return None if row is None else str(row[0])

    def put(self, key: str, value: str) -> str:
        """Keep a text, unless there is one already.

        Returns:
            The text that is there now.
        """
        self._do(
            lambda cache: cache.execute(
                "INSERT OR IGNORE INTO texts (key, value) VALUES (?, ?)", (key, value)
            )
        )
        return self.get(key) or value

    def some(self, keys: Iterable[str]) -> dict[str, str]:
        """The texts of those keys that have one, by key."""

        def read(cache: sqlite3.Connection) -> dict[str, str]:
            texts: dict[str, str] = {}
            for key in keys:
                row = cache.execute("SELECT value FROM texts WHERE key = ?", (key,)).fetchone()
                if row is not None:
                    texts[key] = str(row[0])
            return texts

        return self._do(read)

    def put_all(self, texts: Mapping[str, str]) -> None:
        """Keep texts, all or none of them; those of keys that have one already are left out."""
        self._do(
            lambda cache: cache.executemany(
                "INSERT OR IGNORE INTO texts (key, value) VALUES (?, ?)", texts.items()
            )
        )

    def __len__(self) -> int:
        return int(
            self._do(lambda cache: cache.execute("SELECT count(*) FROM texts").fetchone())[0]
        )

    def _do(self, work: Callable[[sqlite3.Connection], _T]) -> _T:
        """Work with a connection of its own: they belong to one thread, and live no fork."""
        try:
            with closing(sqlite3.connect(self._path, timeout=_PATIENCE)) as cache, cache:
                return work(cache)
        except sqlite3.Error as error:
            raise InputError(
                f"the cache {self._path} cannot be used ({error}); name another file, or delete it"
            ) from error
