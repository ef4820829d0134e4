"""Writing shards: one setting everywhere, so that equal rows make equal bytes.

A shard is a file of the same name in each table's folder; the files of one shard hold the same
trajectories. Their row groups are cut at the same trajectories too, so a reader can stream a
shard table by table without holding it.
"""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from adp_schema.builder import RowBuilder
from adp_schema.ids import digest_file
from adp_schema.manifest import Shard
from adp_schema.tables import TABLES, Table

LONG_COLUMNS = frozenset(
    {
        "text", "prose", "content", "reasoning", "arguments", "arguments_raw", "visible_text",
        "html", "axtree", "data", "structured", "source_hash", "media_id", "edit_summary",
    }
)  # fmt: skip
"""Columns whose values rarely repeat: no dictionary and no statistics."""

_BLOOM = {"ndv": 1024, "fpp": 0.01}

_REPEATED_SHARE = 0.5
"""A long column of which less than this is distinct, by bytes, gets a dictionary all the same."""

_COMPARED_BYTES = 64
_COMPARED_ROWS = 1024
_REPEATED_FROM = 512 << 10
"""Columns of fewer bytes fit into one page, which is compressed as one."""

_REPEATED_LIMIT = 64 << 20
"""Limit of such a dictionary, in bytes: more than a row group holds."""


def shard_name(index: int) -> str:
    """File name of a shard."""
    return f"part-{index:05d}.parquet"


def writer_options(table: Table, repeated: Sequence[str] = ()) -> dict[str, Any]:
    """Parquet settings of a table.

    Args:
        table: the table.
        repeated: long columns whose values do repeat; each value is stored once a row group.
    """
    names = [field.name for field in table.schema if not pa.types.is_list(field.type)]
    short = [name for name in names if name not in LONG_COLUMNS]
    options = {
        "compression": "zstd",
        "compression_level": 2,
        "use_dictionary": [*short, *repeated],
        "write_statistics": short,
        "bloom_filter_options": dict.fromkeys(table.bloom, _BLOOM) or None,
        # Small pages: a reader that wants one trajectory skips the pages of the others. Those of
        # 512 kB at level 2 take as many bytes as those of 256 at level 3, and less CPU.
        "data_page_size": 512 << 10,
    }
    return {**options, "dictionary_pagesize_limit": _REPEATED_LIMIT} if repeated else options


def repeated_columns(rows: pa.Table) -> list[str]:
    """Long columns most of whose bytes stand in earlier rows: histories told again each turn.

    Pages are compressed one by one, so nothing but a dictionary sees what repeats from page to
    page. Values of one length with the same beginning and end count as equal, which is quick and
    decides nothing but how the column is stored.

    Args:
        rows: the first row group of a shard.
    """
    kinds = (pa.string(), pa.binary())
    named = [it for it in rows.schema if it.name in LONG_COLUMNS and it.type in kinds]
    return [it.name for it in named if _repeats(rows[it.name].combine_chunks())]


def _repeats(column: pa.Array) -> bool:
    if column.nbytes < _REPEATED_FROM:
        return False
    # pyarrow.compute makes all its functions as it is imported, which takes longer than these.
    from pyarrow._compute import SliceOptions, call_function

    values = column.view(pa.binary())
    lengths = call_function("binary_length", [values]).to_pylist()
    enough = sum(filter(None, lengths)) * _REPEATED_SHARE

    def have_enough(*compared: SliceOptions) -> bool:
        """Whether the values that differ in length and these parts have half of the bytes."""
        seen: set[tuple[Any, ...]] = set()
        distinct = 0
        for start in range(0, len(values), _COMPARED_ROWS):
            rows = values.slice(start, _COMPARED_ROWS)
            parts = [call_function("binary_slice", [rows], part).to_pylist() for part in compared]
            new = {*zip(lengths[start : start + len(rows)], *parts, strict=True)} - seen
            distinct += sum(key[0] or 0 for key in new)
            if distinct >= enough:
                return True
            seen |= new
        return False

    # Mostly the first half of the beginnings shows it.
    beginning, end = SliceOptions(0, _COMPARED_BYTES), SliceOptions(-_COMPARED_BYTES, None)
    return not (have_enough(beginning) or have_enough(beginning, end))


def table_writer(path: Path, name: str, rows: pa.Table | None) -> pq.ParquetWriter:
    """A writer of one table of a shard.

    Args:
        path: the file.
        name: the table.
        rows: its first row group; None when it has no rows.
    """
    repeated = () if rows is None else repeated_columns(rows)
    return pq.ParquetWriter(path, TABLES[name].schema, **writer_options(TABLES[name], repeated))


class ShardWriter:
    """Writes one shard: call `flush` when the builder is full, and `close` at the end.

    Args:
        folder: folder for the files; each is called ``<table>.parquet`` until it is placed.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.folder.mkdir(parents=True, exist_ok=True)
        self._writers: dict[str, pq.ParquetWriter] = {}
        self.rows: dict[str, int] = {}

    def flush(self, builder: RowBuilder) -> None:
        """Write the builder's rows as one row group a table."""
        for name, rows in builder.tables().items():
            self.write(name, rows)

    def write(self, name: str, rows: pa.Table) -> None:
        """Write rows of one table as one row group."""
        if not rows.num_rows:
            return
        with self._whole():
            writer = self._writer(name, rows)
            writer.write_table(rows.combine_chunks(), row_group_size=rows.num_rows)
        self.rows[name] = self.rows.get(name, 0) + rows.num_rows

    def _writer(self, name: str, rows: pa.Table | None = None) -> pq.ParquetWriter:
        if name not in self._writers:
            self._writers[name] = table_writer(self.folder / f"{name}.parquet", name, rows)
        return self._writers[name]

    def close(self) -> list[str]:
        """Finish the files and return the names of the tables that have one."""
        with self._whole():
            for table in TABLES.values():
                if table.required and table.name != "sources":
                    self._writer(table.name)
            for writer in self._writers.values():
                writer.close()
        return sorted(self._writers)

    def discard(self) -> None:
        """Give the files up, and remove their folder."""
        self._release()
        shutil.rmtree(self.folder)

    def _release(self) -> None:
        for writer in self._writers.values():
            with suppress(OSError):
                writer.close()
            writer.is_open = False

    @contextmanager
    def _whole(self) -> Iterator[None]:
        """When the disk is full, give the files up, or each would say so again as it goes."""
        try:
            yield
        except OSError:
            self._release()
            raise


def unshared(path: Path) -> Path:
    """A path beside another one that no other process has, on any machine that sees the folder.

    The work on a shard may be done twice at once: its first worker was thought dead, and is not.
    """
    return path.with_name(f"{path.name}-{secrets.token_hex(8)}")


def shard_scratch(store: Path, index: int) -> Path:
    """Make a folder for the files of a shard until they are placed; each try has another one.

    Only in a run that goes on: after it, a worker that was thought dead must write nothing more.

    Args:
        store: folder of the new store.
        index: number of the job that makes the shard.
    """
    folder = unshared(store / ".run" / f"part-{index:05d}")
    folder.mkdir()
    return folder


@contextmanager
def placing(target: Path, scratch: Path | None = None) -> Iterator[Path]:
    """Give a path to write a file to, and put the file in its place when the block has ended.

    Args:
        target: where the file belongs; it is there whole or not at all.
        scratch: folder for the file until then, on the same disk; None takes that of the target.
    """
    staged = unshared((scratch or target.parent) / f"{target.name}.tmp")
    try:
        yield staged
        staged.replace(target)
    except BaseException:
        staged.unlink(missing_ok=True)
        raise


def place(
    staged: Path, store: Path, table: str, index: int, rows: int, *, name: str | None = None
) -> Shard:
    """Move a finished file into the store and describe it.

    Args:
        staged: the file.
        store: folder of the store.
        table: name of the table.
        index: number of the shard.
        rows: number of rows in the file.
        name: name of the file, when it is not that of the shard.
    """
    target = store / table / (name or shard_name(index))
    target.parent.mkdir(parents=True, exist_ok=True)
    shard = Shard(
        path=f"{table}/{target.name}",
        rows=rows,
        size=staged.stat().st_size,
        hash=digest_file(str(staged)),
    )
    staged.replace(target)
    return shard
