"""The config ``messages``: one row a trajectory, ready for training.

``messages`` and ``tools`` are JSON text, as the format ``openai_chat`` writes them. Arrow has one
type for a struct in all rows, so nested columns would give each call the arguments of every other
one, as nulls; and `datasets.Json` rounds numbers. A text stays as it is.

Each file holds the rows of some shards of the store, in their order. Which ones follows from the
sizes of the shards, so any number of workers writes the same bytes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from adp.converters.openai_chat import CONVERTER
from adp.converters.via_atif import as_foreign
from adp.core.progress import Progress
from adp.stores import shards
from adp.stores.staged import StagedRun, WrittenShard, counted, versions
from adp.workflows.publish.splits import Splits, splits_of
from adp_schema import extra_column, jsontext
from adp_schema.errors import StoreError
from adp_schema.losses import Losses
from adp_schema.model import Trajectory
from adp_schema.reader import ShardReader
from adp_schema.store import Store
from adp_schema.writer import placing

FOLDER = "messages"

PART_BYTES = 128 << 20
"""Shards of about this many bytes, as they lie on disk, become one file."""

_GROUP_BYTES, _GROUP_ROWS = 16 << 20, 10_000

_COLUMNS: tuple[tuple[str, pa.DataType, str], ...] = (
    ("id", pa.string(), "trajectory_id in the store."),
    ("dataset", pa.string(), "Name of the data set."),
    ("split", pa.string(), "Split of the data set, as the source names it."),
    ("task_id", pa.string(), "Task that it tries to solve."),
    ("messages", pa.string(), "JSON text: the messages, in the form of OpenAI chat."),
    ("tools", pa.string(), "JSON text: the tools on offer; null when the source lists none."),
    ("success", pa.bool_(), "Whether the task was solved; null when unknown."),
    ("reward", pa.float64(), "Reward of the whole run."),
    ("license", pa.string(), "License of the content, as the source states it."),
    ("source_format", pa.string(), "Format that it was read from."),
    ("agent", pa.string(), "Agent or harness."),
    ("model", pa.string(), "Model behind the agent."),
    ("num_messages", pa.int32(), "Number of messages."),
    ("num_steps", pa.int32(), "Number of steps of its own: messages without results."),
    ("num_calls", pa.int32(), "Number of calls of tools and code in those steps."),
    ("parent_id", pa.string(), "Branch: id of the row that it starts from; null on a main line."),
    ("branch_kind", pa.string(), "Branch: alternate, attempt, subagent, ...; null on a main line."),
    (
        "shared_messages",
        pa.int32(),
        "Branch: how many first messages repeat those of parent_id.",
    ),
)

SCHEMA = pa.schema(
    [pa.field(name, kind, metadata={"description": what}) for name, kind, what in _COLUMNS]
)
"""Columns of the config ``messages``; each carries its ``description``."""

_SAME_NAME = ("dataset", "split", "task_id", "success", "reward", "license", "source_format",
              "parent_id", "branch_kind")  # fmt: skip
"""Columns of trajectories that are columns here too."""

_CARRIED = frozenset({"$.agent_name"})
"""What the format has no place for, but a column of ours has."""

_NO_COLUMN = "no column of messages; the store has it"
_NO_PARENT = (
    "the branch is written without the steps of its parent, which is not in the store or is its "
    "own branch"
)

_OPTIONS: dict[str, Any] = {
    "compression": "zstd",
    "compression_level": 3,
    "use_dictionary": [name for name in SCHEMA.names if name != "messages"],
    "write_statistics": [name for name in SCHEMA.names if name not in ("messages", "tools")],
    "data_page_size": 256 << 10,
}


@dataclass
class File:
    """A Parquet file of the config.

    Attributes:
        path: path in the published folder.
        split: its split.
        rows: number of rows.
    """

    path: str
    split: str
    rows: int


@dataclass
class Messages:
    """What was written.

    Attributes:
        files: the files, split by split.
        splits: names of the splits, main lines first.
        losses: what the rows could not hold: ``path: reason`` -> number of times.
    """

    files: list[File] = field(default_factory=list)
    splits: tuple[str, ...] = ()
    losses: dict[str, int] = field(default_factory=dict)

    def text(self) -> str:
        """As JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def parse(cls, text: str) -> Messages:
        """The inverse of `text`."""
        plain = json.loads(text)
        files = [File(**file) for file in plain["files"]]
        return cls(files, tuple(plain["splits"]), plain["losses"])


@dataclass(frozen=True)
class MessagesJob:
    """One file of each split: the shards that it is made from.

    Attributes:
        index: number of the job.
        size: bytes to read.
        root: path of the store.
        shards: files of each shard: table -> address.
        splits: the splits of the store.
        out: folder to write to.
    """

    index: int
    size: int
    root: str
    shards: tuple[dict[str, str], ...]
    splits: Splits
    out: str


def write_messages(store: Store, out: Path, *, workers: int | None, progress: Progress) -> Messages:
    """Write the config ``messages``. A stopped call goes on when it is made again.

    Args:
        store: a finished store.
        out: the published folder; ``messages/`` in it is replaced.
        workers: number of processes; None takes one a core. The bytes do not depend on it.
        progress: told how far it is, in bytes of the store.
    """
    splits = splits_of(store)
    staging = out / ".run" / FOLDER
    key = {"act": FOLDER, "parent": shards.manifest_hash(store), "versions": versions("msgspec")}
    run = StagedRun(str(staging), key, workers)
    jobs = _jobs(store, splits, str(staging))
    written = run.shards(jobs, work, WrittenShard.parse, progress)
    rows = {(split, part.index): n for part in written for split, n in part.facts["rows"].items()}
    files = []
    target = out / FOLDER
    target.mkdir(exist_ok=True)
    for split in splits.order:
        for number, index in enumerate(job.index for job in jobs if (split, job.index) in rows):
            name = f"{split}-{number:05d}.parquet"
            staged = staging / f"{split}-{index:05d}.parquet"
            if staged.exists():
                staged.replace(target / name)
            files.append(File(f"{FOLDER}/{name}", split, rows[split, index]))
    return Messages(files, splits.order, dict(sorted(counted(written, "losses").items())))


def _jobs(store: Store, splits: Splits, out: str) -> list[MessagesJob]:
    """Neighbouring shards go together until they are large enough for a file."""
    jobs: list[MessagesJob] = []
    held: list[dict[str, str]] = []
    size = 0
    shard_files = shards.shard_files(store)
    for number, (files, members) in enumerate(shard_files):
        held.append(files)
        size += members
        if size >= PART_BYTES or number == len(shard_files) - 1:
            jobs.append(MessagesJob(len(jobs), size, store.root, tuple(held), splits, out))
            held, size = [], 0
    return jobs


def work(job: MessagesJob) -> WrittenShard:
    """Write the files of one job."""
    store = Store.open(job.root)
    losses = Losses()
    with ExitStack() as placed:
        writer = _Writer(job, placed)
        for files in job.shards:
            reader = ShardReader(files, store.renamed)
            for trajectory in reader.trajectories():
                split = job.splits.of(trajectory.split, branch=bool(trajectory.parent_id))
                writer.add(split, message_row(trajectory, store, losses))
                losses.take()
            reader.close()
        writer.flush()
    return WrittenShard(job.index, {}, {"rows": writer.rows, "losses": dict(losses.counts)})


class _Writer:
    """Writes rows to one file a split; row groups are bounded by bytes and rows.

    Args:
        job: what is written.
        placed: ends the files and puts them in their places.
    """

    def __init__(self, job: MessagesJob, placed: ExitStack) -> None:
        self._placed = placed
        self.rows: dict[str, int] = {}
        self._job = job
        self._files: dict[str, pq.ParquetWriter] = {}
        self._held: dict[str, list[dict[str, Any]]] = {}
        self._bytes = self._count = 0

    def add(self, split: str, row: dict[str, Any]) -> None:
        self._held.setdefault(split, []).append(row)
        self._bytes += len(row["messages"]) + len(row["tools"] or "")
        self._count += 1
        if self._bytes >= _GROUP_BYTES or self._count >= _GROUP_ROWS:
            self.flush()

    def flush(self) -> None:
        for split, rows in self._held.items():
            if split not in self._files:
                path = Path(self._job.out) / f"{split}-{self._job.index:05d}.parquet"
                staged = self._placed.enter_context(placing(path))
                file = pq.ParquetWriter(staged, SCHEMA, **_OPTIONS)
                self._files[split] = self._placed.enter_context(file)
            table = pa.Table.from_pylist(rows, schema=SCHEMA)
            self._files[split].write_table(table, row_group_size=len(rows))
            self.rows[split] = self.rows.get(split, 0) + len(rows)
        self._held.clear()
        self._bytes = self._count = 0


def message_row(trajectory: Trajectory, store: Store, losses: Losses) -> dict[str, Any]:
    """One row of the config; what it has no place for is reported.

    Args:
        trajectory: the trajectory, with its own steps only.
        store: where the steps that a branch shares with its parent are.
        losses: takes the reports.
    """
    main_line = trajectory
    if main_line.parent_id and main_line.parent_step is not None:
        try:
            trajectory = store.resolve(main_line)
        except StoreError:
            losses.add("$.parent_id", _NO_PARENT)
    as_foreign(trajectory)
    if trajectory is not main_line:
        as_foreign(main_line)
    record = CONVERTER.write(trajectory, losses)
    extra = extra_column.unpack(main_line.extra)
    native = main_line.source_format == CONVERTER.name
    tools = record.get(extra.shape.get("tools_key", "tools") if native else "tools")
    losses.items = [item for item in losses.items if item["path"] not in _CARRIED]
    for name in extra.fields if native else ():
        losses.add(f"$.extra.{name}", _NO_COLUMN)
    messages = json_text(record["messages"])
    shared, count = None, _count(record)
    if main_line.parent_id:
        own_messages = count if trajectory is main_line else _count(_written(main_line))
        shared = count - own_messages
    return {
        **{name: getattr(main_line, name) for name in _SAME_NAME},
        "id": main_line.trajectory_id,
        "messages": messages,
        "tools": None if main_line.tools is None else json_text(tools),
        "agent": main_line.agent_name,
        "model": main_line.agent_model,
        "num_messages": count,
        "num_steps": len(main_line.steps),
        "num_calls": sum(len(step.calls) for step in main_line.steps),
        "shared_messages": shared,
    }


def _written(trajectory: Trajectory) -> dict[str, Any]:
    """The chat of a trajectory; its losses are those of the row, which were taken already."""
    return CONVERTER.write(trajectory, Losses())


def _count(record: dict[str, Any]) -> int:
    """Number of messages of a chat: a step that no model saw is none."""
    messages = record["messages"]
    return len(messages if isinstance(messages, list) else json.loads(json_text(messages)))


def json_text(value: Any) -> str:
    """JSON text of a part of a record; one that its source kept as a string is not quoted twice."""
    data = jsontext.encode(value)
    if data[:1] == b'"':
        text: str = json.loads(data)
        return jsontext.replace_surrogates(text)
    return data.decode("utf-8")


def describe() -> Iterator[tuple[str, str, str]]:
    """The columns, for the data card: name, type and what it holds."""
    for name, kind, what in _COLUMNS:
        yield name, str(kind), what
