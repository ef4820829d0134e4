"""Score tables: what scorers said about the trajectories of a store, kept beside its tables.

    my_store/scores/run-00000.parquet     one file a run of `adp score`; they are never changed

The folder is no part of the store: the manifest does not name it, a finished store gets one too,
and what makes a new store of it leaves it behind. Of a trajectory, the rows of the last run with
the same scorer and settings count; the rows of earlier runs stay as its history.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from adp_schema.errors import StoreError
from adp_schema.gate_files import ExtraView
from adp_schema.location import is_url
from adp_schema.model import Int32, JsonText, Row, _field
from adp_schema.tables import Table, columns_of
from adp_schema.views import STORE_COLUMN, View, shards_sql

FOLDER = "scores"
"""Folder in a store that holds its score tables."""

_FILE = re.compile(r"run-([0-9]{5,})\.parquet")
_LOCK = ".lock"


class ScoreRow(Row):
    """One number about one trajectory, or the reason why there is none."""

    trajectory_id: str | None = _field("Trajectory that it is about.")
    task_id: str | None = _field("Task that the trajectory tries to solve.")
    attempt: Int32 | None = _field("Number of the attempt at the task, from 0.")
    scorer: str | None = _field("Scorer that gave it.")
    version: str | None = _field("Version of the scorer.")
    settings: JsonText | None = _field("Settings of the scorer, and what it compared with.")
    settings_hash: str | None = _field("blake2b-128 of the settings, in hexadecimal.")
    metric: str | None = _field("Name of the number, such as tool_f1.")
    value: float | None = _field("The number; yes and no are 1 and 0; null when it is unscored.")
    reason: str | None = _field("Why it is unscored; null when it is scored.")
    evidence: JsonText | None = _field("What the number rests on: expected, found, ...")
    infrastructure: bool | None = _field(
        "True when it is unscored because something else than the agent failed."
    )
    run: Int32 | None = _field("Number of the run of the scorers, from 0.")


SCORES = Table(
    "score_history",
    ScoreRow,
    pa.schema(list(columns_of(ScoreRow).values())),
    ("trajectory_id",),
    (),
    required=False,
)
"""The table that every file of scores holds."""

_COLUMNS = {field.name: field.metadata[b"description"].decode() for field in SCORES.schema}

SCORE_VIEWS: dict[str, View] = {
    "scores": View(
        "scores",
        "What scorers say: the rows of the last run for each trajectory, scorer and settings.",
        _COLUMNS,
        "SELECT * FROM score_history QUALIFY run = max(run) OVER "
        "(PARTITION BY {store}trajectory_id, scorer, settings_hash)",
    ),
    "score_history": View(
        "score_history", "What scorers said in all runs.", _COLUMNS, "{shards}", "score_history"
    ),
}
"""The views over score tables. Only gates over whole stores have them, recipes do not."""


def score_files(root: str) -> list[str]:
    """The files of scores in a folder, in order.

    Args:
        root: a store, or a folder that scores were written to; a URL has none.
    """
    if is_url(root):
        return []
    folder = score_folder(root)
    if not folder.is_dir():
        return []
    paths = [path for path in folder.iterdir() if _FILE.fullmatch(path.name)]
    return [str(path) for path in sorted(paths, key=_number)]


def score_folder(root: str) -> Path:
    """Where scores are: in a store the folder ``scores``, else the folder itself."""
    folder = Path(root)
    is_store = any((folder / name).exists() for name in ("adp.json", "growing.json"))
    return folder / FOLDER if is_store else folder


def _number(path: Path) -> int:
    match = _FILE.fullmatch(path.name)
    return int(match[1]) if match else -1


def score_views(stores: Sequence[tuple[str, Sequence[str]]], *, named: bool) -> list[ExtraView]:
    """The views over the scores of stores, for the query gate.

    Args:
        stores: name and files of scores of each store.
        named: whether the gate tells the stores apart by a column ``store``.
    """
    selects, files = [], {}
    for index, (name, paths) in enumerate(stores):
        place = f"{{files{index}}}"
        files[place] = tuple(paths)
        sql = shards_sql(SCORES, [place] if paths else [], store=name if named else None)
        selects.append(sql.replace(f"'{place}'", place))
    store = f"{STORE_COLUMN[0]}, " if named else ""
    latest = SCORE_VIEWS["scores"].sql.replace("{store}", store)
    return [
        ExtraView("score_history", sql=" UNION ALL ".join(selects), files=files),
        ExtraView("scores", sql=latest),
    ]


class ScoreFile:
    """Writes the rows of one run; the file appears when it is complete and has rows.

    Attributes:
        folder: where it is written.
        run: number of the run.
        rows: rows so far.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.run = max((_number(Path(path)) + 1 for path in score_files(str(folder))), default=0)
        self.rows = 0
        self._part = folder / f".run-{self.run:05d}.part"
        self._writer: pq.ParquetWriter | None = None

    def write(self, rows: Sequence[dict[str, Any]]) -> None:
        """Write rows; their column ``run`` is filled in."""
        if not rows:
            return
        numbered = [row | {"run": self.run} for row in rows]
        table = pa.Table.from_pylist(numbered, schema=SCORES.schema)
        with _writable(self.folder):
            if self._writer is None:
                self._writer = pq.ParquetWriter(
                    self._part, SCORES.schema, compression="zstd", compression_level=3
                )
            self._writer.write_table(table, row_group_size=table.num_rows)
        self.rows += table.num_rows

    def close(self, *, keep: bool = True) -> Path | None:
        """End the file.

        Args:
            keep: False removes it.

        Returns:
            The file; None when there is none.
        """
        if self._writer is None:
            return None
        writer, self._writer = self._writer, None
        with _writable(self.folder):
            writer.close()
            if not keep:
                self._part.unlink(missing_ok=True)
                return None
            with self._part.open("rb") as file:
                os.fsync(file.fileno())
            target = self.folder / f"run-{self.run:05d}.parquet"
            self._part.replace(target)
        return target


@contextmanager
def writing(folder: Path) -> Iterator[ScoreFile]:
    """Write a run of scores into a folder; nobody else may write there meanwhile.

    Args:
        folder: folder of score tables; it is made.

    Raises:
        StoreError: it cannot be written to, or another run writes to it now.
    """
    from filelock import FileLock, Timeout

    with _writable(folder):
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / _LOCK)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            raise StoreError(
                f"scores are being written to {folder} now; wait for that run"
            ) from None
    file = ScoreFile(folder)
    try:
        yield file
        file.close()
    except BaseException:
        file.close(keep=False)
        raise
    finally:
        lock.release()


@contextmanager
def _writable(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreError(
            f"cannot write scores to {folder}: {error.strerror or error}; "
            "give another folder with -o FOLDER"
        ) from error
