"""A store that is still being written, such as by rollouts.

Finished trajectories go to a journal, one line each, flushed to the disk before `append`
returns. From time to time a journal is sealed into a shard. Readers see shards and journal
together; `seal` ends it and leaves a finished store.

    store/growing.json          manifest so far
    store/journal-00002.jsonl   trajectories after the shards 0 and 1
"""

from __future__ import annotations

import atexit
import base64
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from adp_schema.builder import RowBuilder
from adp_schema.errors import OutputExistsError, StoreError
from adp_schema.manifest import MANIFEST, Counts, Lineage, Manifest, Shard, write_atomic
from adp_schema.model import Observation, Row, Step, Trajectory
from adp_schema.tables import CHILD_TABLES, TABLES
from adp_schema.writer import ShardWriter, place

GROWING = "growing.json"
SEAL_BYTES = 64 << 20
"""A journal of this size becomes a shard."""


def journal_path(root: Path, index: int) -> Path:
    """The journal that will become shard ``index``."""
    return root / f"journal-{index:05d}.jsonl"


class GrowingStore:
    """Appends trajectories to a store. One process writes; any number may read.

    Args:
        root: folder of the store; it is made, or gone on with when it is a growing store.
        seal_bytes: size of a journal at which it becomes a shard.

    Raises:
        OutputExistsError: the folder holds a finished store or something else.
    """

    def __init__(self, root: str | Path, *, seal_bytes: int = SEAL_BYTES) -> None:
        self.root = Path(root)
        if (self.root / MANIFEST).exists():
            raise OutputExistsError(f"{root} is a finished store; it never changes")
        known = (self.root / GROWING).exists()
        if self.root.exists() and any(self.root.iterdir()) and not known:
            raise OutputExistsError(f"{root} is not empty and is no growing store; choose another")
        self.root.mkdir(parents=True, exist_ok=True)
        self.manifest = load(self.root) if known else Manifest(lineage=[Lineage(act="grow")])
        if not known:
            self._save()
        self._seal_bytes = seal_bytes
        self._seq = self.manifest.counts.trajectories
        self._journal = self._open_journal()

    def _save(self) -> None:
        write_atomic(self.root / GROWING, self.manifest.text())

    def _shards(self) -> int:
        return len(self.manifest.tables.get("trajectories", []))

    def _open_journal(self) -> IO[bytes]:
        """Open the journal for appending; a line that a kill cut short is removed."""
        path = journal_path(self.root, self._shards())
        if path.exists():
            whole = path.read_bytes()
            kept = whole[: whole.rfind(b"\n") + 1]
            self._seq += kept.count(b"\n")
            if len(kept) < len(whole):
                os.truncate(path, len(kept))
        return path.open("ab")

    def append(self, trajectory: Trajectory) -> None:
        """Add a finished trajectory; when this returns it is on the disk."""
        line = json.dumps(_plain(trajectory, self._seq), ensure_ascii=True)
        self._journal.write(line.encode("ascii") + b"\n")
        self._journal.flush()
        os.fsync(self._journal.fileno())
        self._seq += 1
        if self._journal.tell() >= self._seal_bytes:
            self.seal_journal()

    def seal_journal(self) -> None:
        """Turn the journal into a shard."""
        self._journal.close()
        index = self._shards()
        path = journal_path(self.root, index)
        builder = RowBuilder()
        shards = write_shard(self.root, index, path, builder)
        if shards:
            for table, shard in shards.items():
                self.manifest.tables.setdefault(table, []).append(shard)
            count = len(builder.base_ids)
            counts = Counts(records=count, used=count, trajectories=count)
            self.manifest.counts.add(counts)
            self._save()
        path.unlink(missing_ok=True)
        self._seq = self.manifest.counts.trajectories
        self._journal = self._open_journal()

    def close(self) -> None:
        """Stop appending; the store stays a growing one."""
        self._journal.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def load(root: Path) -> Manifest:
    """The manifest of a growing store.

    Raises:
        StoreError: the folder is no growing store.
    """
    path = root / GROWING
    if not path.exists():
        raise StoreError(f"{root} is no growing store: it has no {GROWING}")
    return Manifest.model_validate_json(path.read_text(encoding="utf-8"))


def seal(root: str | Path) -> Manifest:
    """End a growing store: seal its journal and write the manifest of a finished store.

    Raises:
        StoreError: the folder is no growing store.
    """
    folder = Path(root)
    load(folder)
    with GrowingStore(folder) as store:
        store.seal_journal()
        manifest = store.manifest
    _finish(folder, manifest)
    return manifest


def _finish(folder: Path, manifest: Manifest) -> None:
    from adp_schema.store import Store

    for left in folder.glob("journal-*.jsonl"):
        left.unlink()
    manifest.lineage.append(Lineage(act="seal"))
    rows = Store(str(folder), manifest).scan("trajectories").select("dataset").collect()
    names = sorted(rows["dataset"].unique().drop_nulls().to_list())
    counted = {name: int((rows["dataset"] == name).sum()) for name in names}
    manifest.datasets = counted
    manifest.write(folder)
    (folder / GROWING).unlink()


def write_shard(root: Path, index: int, journal: Path, builder: RowBuilder) -> dict[str, Shard]:
    """Write the trajectories of a journal as a shard; nothing when there are none."""
    lines = list(journal_rows(journal))
    if not lines:
        return {}
    staged = root / f".sealing-{index:05d}"
    writer = ShardWriter(staged)
    for plain in lines:
        _add(builder, plain)
        if builder.is_full():
            writer.flush(builder)
    writer.flush(builder)
    shards = {
        table: place(staged / f"{table}.parquet", root, table, index, writer.rows.get(table, 0))
        for table in writer.close()
    }
    shutil.rmtree(staged)
    return shards


class Journal:
    """The journal of a growing store as a shard of its own, for readers.

    Args:
        root: folder of the store.
        index: number of the shard that the journal will become.

    Attributes:
        files: table -> Parquet file in a scratch folder, which lives as long as the process: a
            lazy frame may outlive the store that it came from.
        counts: what the journal adds to the manifest's counts.
    """

    def __init__(self, root: Path, index: int) -> None:
        folder = Path(tempfile.mkdtemp(prefix="adp-journal-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        builder = RowBuilder()
        shards = write_shard(folder, index, journal_path(root, index), builder)
        count = len(builder.base_ids)
        self.files = {table: str(folder / shard.path) for table, shard in shards.items()}
        self.counts = Counts(records=count, used=count, trajectories=count)


def journal_rows(journal: Path) -> Iterator[dict[str, Any]]:
    """The whole lines of a journal; one that is being written is left out."""
    if not journal.exists():
        return
    with journal.open("rb") as file:
        for line in file:
            if line.endswith(b"\n"):
                yield json.loads(line)


def _add(builder: RowBuilder, plain: dict[str, Any]) -> None:
    trajectory = _typed("trajectories", plain["trajectory"])
    rows = {name: [_typed(name, row) for row in rows] for name, rows in plain["rows"].items()}
    builder.add_rows(plain["seq"], trajectory, rows)


def rows_of(trajectory: Trajectory) -> dict[str, list[Row]]:
    """The rows that hang from a trajectory, by table."""
    steps = trajectory.steps
    results = [*trajectory.early_observations, *(o for s in steps for o in s.observations)]
    blobs = trajectory.media
    return {
        "steps": list(steps),
        "tool_calls": [call for step in steps for call in step.calls],
        "observations": list(results),
        "links": list(trajectory.links),
        "raw": list(trajectory.raw),
        "media": [blobs[name] for name in sorted(blobs) if _uses(trajectory, name)],
        "tasks": [trajectory.task] if trajectory.task is not None else [],
    }


def _uses(trajectory: Trajectory, media_id: str) -> bool:
    """Whether a trajectory refers to a blob; readers hand out those of a whole shard."""
    rows: list[Step | Observation] = [
        *trajectory.steps,
        *trajectory.early_observations,
        *(o for s in trajectory.steps for o in s.observations),
    ]
    return any(
        media_id in (value or "")
        for row in rows
        for value in (row.content, row.text, getattr(row, "reasoning", None))
    )


def _plain(trajectory: Trajectory, seq: int) -> dict[str, Any]:
    """A trajectory as JSON."""
    return {
        "seq": seq,
        "trajectory": _row_plain(trajectory),
        "rows": {
            name: [_row_plain(row) for row in rows]
            for name, rows in rows_of(trajectory).items()
            if rows
        },
    }


def _row_plain(row: Row) -> dict[str, Any]:
    values = row.model_dump(exclude_none=True)
    return {name: _value_plain(value) for name, value in values.items()}


def _value_plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    return base64.b64encode(value).decode("ascii") if isinstance(value, bytes) else value


def _typed(table: str, row: dict[str, Any]) -> dict[str, Any]:
    """The inverse of `_row_plain`, checked by the model."""
    hints = TABLES[table].row.model_fields
    out = dict(row)
    for name, value in row.items():
        annotation = str(hints[name].annotation) if name in hints else ""
        if isinstance(value, str) and "datetime" in annotation:
            out[name] = datetime.fromisoformat(value)
        elif isinstance(value, str) and "bytes" in annotation:
            out[name] = base64.b64decode(value)
    if table not in CHILD_TABLES:
        return out
    return {name: value for name, value in out.items() if name not in ("seq", "trajectory_id")}
