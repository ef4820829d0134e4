"""The index of the words of a store: one file of SQLite for each shard, made once, replaced whole.

A file is named by the hashes of the shard's tables, so it never goes stale: a store that grew, or
was made again, has other shards. What belongs to no shard any more is removed. The index holds
words and places, not the texts: these are read from the store.

The library is SQLite's FTS5 (https://www.sqlite.org/fts5.html), of Python's standard library, with
a table without content. A row id is the place of the text (2 bits) and the row in its table.
"""

from __future__ import annotations

import hashlib
import os
import re
import sqlite3
import time
from collections.abc import Iterator, Sequence, Set
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

import pyarrow.compute as pc

from adp.core.output_files import whole_file
from adp.core.progress import Progress
from adp.stores.fulltext.search_words import spaced, unescaped
from adp.stores.shards import narrow
from adp.stores.stage import run_stage
from adp_schema import location
from adp_schema.errors import OutputExistsError
from adp_schema.ids import digest
from adp_schema.location import INDEX_SUFFIX
from adp_schema.reader import ShardReader
from adp_schema.store import Store
from adp_schema.verification import verified

INDEX_VERSION = 1

_INDEX_NAME = re.compile(r"[0-9a-f]{32}\.db")
_LEFT_SECONDS = 600
"""A file that nobody wrote to for so long is of a process that was killed."""


@dataclass(frozen=True)
class TextPlace:
    """A column whose texts are searched.

    Attributes:
        name: what users call it.
        table: the table.
        columns: the columns; the first one that is not null counts.
        source: the column that says who wrote it.
        writer: who did when that is null.
    """

    name: str
    table: str
    columns: tuple[str, ...]
    source: str
    writer: str


PLACES = (
    TextPlace("text", "steps", ("text",), "source", ""),
    TextPlace("reasoning", "steps", ("reasoning",), "source", ""),
    TextPlace("arguments", "tool_calls", ("arguments", "arguments_raw"), "requestor", "agent"),
    TextPlace("observation", "observations", ("text",), "source", "environment"),
)
PLACE_SHIFT = 40
"""A row id is ``(number of the place << PLACE_SHIFT) + row in its table``."""

TABLE = (
    "CREATE VIRTUAL TABLE words USING fts5(text{content}, tokenize='unicode61 remove_diacritics 2')"
)


@dataclass(frozen=True)
class IndexWork:
    """One shard to index.

    Attributes:
        index: its number.
        size: bytes to read.
        files: table -> address.
        renamed: how columns are called in the files.
        out: the file of the index.
    """

    index: int
    size: int
    files: dict[str, str]
    renamed: dict[str, dict[str, str]]
    out: str


def index_folder(store: Store) -> Path:
    """Where the index of a store lies: beside a local store, in the cache for one at a URL."""
    if not location.is_url(store.root):
        root = Path(store.root).resolve()
        return root.with_name(root.name + INDEX_SUFFIX)
    cache = os.environ.get("ADP_CACHE")
    if not cache:
        base = os.environ.get("XDG_CACHE_HOME")
        cache = str((Path(base) if base else Path.home() / ".cache") / "adp")
    return Path(cache) / "search" / digest(store.root.encode())


def index_works(store: Store, folder: Path) -> list[IndexWork]:
    """The shards of a store that never change, and where the index of each is, or is to be.

    Args:
        store: the store; what is only in its journals is left out.
        folder: folder of the index.
    """
    works = []
    shards = {shard.path: shard for shards in store.manifest.tables.values() for shard in shards}
    for index, files in enumerate(store.shard_files()):
        if index >= len(store.manifest.tables.get("trajectories", [])):
            break
        name = files["trajectories"].rsplit("/", 1)[-1]
        tables = sorted({place.table for place in PLACES} & set(files))
        members = [shards[f"{table}/{name}"] for table in tables]
        words = [str(INDEX_VERSION), *(shard.hash for shard in members)]
        out = folder / f"{hashlib.blake2b(' '.join(words).encode(), digest_size=16).hexdigest()}.db"
        size = sum(shard.size for shard in members)
        works.append(IndexWork(index, size, dict(files), store.renamed, str(out)))
    return works


def make_index(
    store: Store, folder: Path, workers: int | None, report: Progress
) -> list[IndexWork]:
    """Index the shards that have no index yet, and remove what belongs to none.

    Args:
        store: the store.
        folder: folder of the index.
        workers: number of processes; None takes one a core.
        report: told how far it is, in bytes.

    Returns:
        The shards with their indices.

    Raises:
        DamagedStoreError: the files are not those of the manifest; all are hashed before.
        OutputExistsError: the index cannot be written.
    """
    works = index_works(store, folder)
    todo = [work for work in works if not Path(work.out).exists()]
    if todo:
        with verified():
            store.check()
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OutputExistsError(
                f"cannot write the index {folder}: {error.strerror}; name a folder for it"
            ) from error
        run_stage(todo, index_shard, workers, report)
        if folder == index_folder(store):  # another one may hold indices of several stores
            _remove_others(folder, {Path(work.out).name for work in works})
    return works


def _remove_others(folder: Path, kept: Set[str]) -> None:
    """Remove the indices of shards that are no more; other files are nobody's to remove."""
    for path in folder.glob("*.db"):
        if _INDEX_NAME.fullmatch(path.name) and path.name not in kept:
            path.unlink(missing_ok=True)


def index_shard(work: IndexWork) -> int:
    """Write the index of a shard, and return its bytes.

    Raises:
        OutputExistsError: it cannot be written.
    """
    out = Path(work.out)
    for left in out.parent.glob(f"{out.name}.*.part"):
        with suppress(OSError):
            if time.time() - left.stat().st_mtime > _LEFT_SECONDS:
                left.unlink()
    reader = ShardReader(work.files, work.renamed)
    try:
        with whole_file(out) as part, closing(sqlite3.connect(part)) as index:
            index.execute("PRAGMA journal_mode = OFF")
            index.execute("PRAGMA synchronous = OFF")
            index.execute(TABLE.format(content=", content=''"))
            index.executemany("INSERT INTO words(rowid, text) VALUES (?, ?)", documents(reader))
            index.execute("INSERT INTO words(words) VALUES ('optimize')")
            index.commit()
    except sqlite3.Error as error:
        raise OutputExistsError(f"cannot write the index {out}: {error}") from error
    finally:
        reader.close()
    return out.stat().st_size


def documents(reader: ShardReader) -> Iterator[tuple[int, str]]:
    """The texts of a shard with their row ids, in the order of these."""
    for number, place in enumerate(PLACES):
        row = number << PLACE_SHIFT
        for rows in narrow(reader, place.table, place.columns):
            texts = rows.columns[0]
            if len(place.columns) > 1:
                texts = pc.coalesce(*rows.columns)
            for text in texts.to_pylist():
                if text:
                    yield row, prepared(place, text)
                row += 1


def prepared(place: TextPlace, text: str) -> str:
    """A text as its words are looked up."""
    return spaced(unescaped(text) if place.name == "arguments" else text)


def chosen_places(names: Sequence[str]) -> list[int]:
    """Numbers of the places of some names; of all when there is none."""
    return [number for number, place in enumerate(PLACES) if not names or place.name in names]
