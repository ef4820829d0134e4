"""The one way rows are made: converters write plain values, the builder makes the columns.

A converter calls `RowBuilder.trajectory`, then `step`, `call`, `observation` and the rest in the
order of the source, and `finish`. The builder numbers steps, calls and turns, pairs results with
calls, makes ids unique, lifts base64 out of texts and cleans what Arrow cannot hold.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from adp_schema import extra_column, ids, media
from adp_schema.arrow import check_columns, json_columns, make_table
from adp_schema.errors import RecordError
from adp_schema.jsontext import text_of
from adp_schema.model import Columns, Media
from adp_schema.origin import Origin
from adp_schema.pairing import CallIndex
from adp_schema.row_changes import TrajectoryRows, taken_apart
from adp_schema.table_rows import TableRows
from adp_schema.tables import CHILD_TABLES, TABLES

if TYPE_CHECKING:
    from adp_schema.losses import Losses

__all__ = ["ROW_GROUP_BYTES", "ROW_GROUP_ROWS", "Origin", "RowBuilder"]

ROW_GROUP_BYTES = 32 << 20
ROW_GROUP_ROWS = 10_000
_TABLES_WITH_MARKS = frozenset({"steps", "tool_calls", "observations", "links", "tasks"})


class RowBuilder:
    """Collects rows of all tables. One builder serves one shard, from start to end."""

    def __init__(self) -> None:
        self.rows = {name: TableRows() for name in TABLES}
        self.base_ids: list[str] = []
        self.size = 0
        self._keys: dict[str, list[tuple[int, str, int]]] = {name: [] for name in CHILD_TABLES}
        self._repeats: Counter[str] = Counter()
        self._pair_repeats: Counter[str] = Counter()
        self._pair_bases: list[str] = []
        self._media_seen: dict[str, str | None] = {}
        self._tasks_seen: dict[tuple[str, str | None], str] = {}
        self._origin = Origin(seq=0, dataset="")
        self._mark: dict[str, int] = {}
        self._open = self._has_task = False
        self._sub = 0

    # ---- one record ------------------------------------------------------------------------

    def begin(self, origin: Origin) -> None:
        """Start a record; everything until the next `begin` comes from it."""
        self._origin = origin
        self._mark = {name: rows.size for name, rows in self.rows.items()}
        self._base_mark = len(self.base_ids)
        self._sub, self._open, self._has_task = 0, False, False
        self._new_tasks: list[tuple[str, str | None]] = []

    def mark(self) -> None:
        """Say that a converter sanitised a part of the record, so rows must be mended."""
        self._origin.marked = True

    def close_record(self, losses: Losses) -> None:
        """End the record: finish an open trajectory, and note the losses of the record on it.

        Raises:
            RecordError: the converter made neither a trajectory nor a task.
        """
        if self._open:
            self.finish()
        if not self._sub:
            if not self._has_task:
                raise RecordError("the record holds no trajectory")
            for row in self.made("tasks"):
                row["seq"], row["trajectory_id"] = self._origin.seq, None
                row.setdefault("dataset", self._origin.dataset)
            losses.take()
            return
        if losses.items or losses.unknown_items:
            row = self.rows["trajectories"][-1]
            origin = (row.get("source_format"), row.get("agent_version"))
            if items := losses.take(" ".join(name for name in origin if name)):
                row["losses"] = text_of(items)

    def made(self, table: str) -> list[Columns]:
        """The rows of a table since `begin`; those of trajectories may be added to."""
        if self._open:
            self.finish()
        return self.rows[table][self._mark[table] :]

    def change(self, edit: Callable[[TrajectoryRows], None]) -> None:
        """Let a function change the rows of each trajectory since `begin`; it numbers them."""
        trajectories = self.made("trajectories")
        for run in taken_apart(trajectories, self.rows, self._keys, self._mark):
            edit(run)
            for name, rows in run.tables().items():
                for columns in rows:
                    self._add(name, columns)
                if rows:
                    key = (run.columns["seq"], run.columns["trajectory_id"])
                    self._keys[name].append((*key, len(self.rows[name])))

    def check_record(self) -> None:
        """Check the columns of the rows since `begin`, for readers that nobody tested."""
        for name in self.rows:
            check_columns(name, self.made(name))

    def keep_raw(self, data: bytes) -> None:
        """Keep the record's bytes beside the trajectory that was finished last."""
        row = self.rows["trajectories"][-1]
        columns = {"record": row["source_records"][0], "source_file": row["source_file"],
                   "offset": row["source_offsets"][0], "data": data}  # fmt: skip
        self._add("raw", columns)
        self._keys["raw"].append((row["seq"], row["trajectory_id"], len(self.rows["raw"])))
        self.size += len(data)

    def rollback(self) -> None:
        """Forget everything since `begin`; the runner calls it when a converter fails."""
        for row in self.rows["media"][self._mark["media"] :]:
            del self._media_seen[row["media_id"]]
        for key in self._new_tasks:
            self._tasks_seen.pop(key, None)
        for _ in range(len(self.rows["pairs"]) - self._mark["pairs"]):
            self._pair_repeats[self._pair_bases.pop()] -= 1
        for name, length in self._mark.items():
            self.rows[name].truncate(length)
        for name, keys in self._keys.items():
            while keys and keys[-1][2] > len(self.rows[name]):
                keys.pop()
        for base in self.base_ids[self._base_mark :]:
            self._repeats[base] -= 1
        del self.base_ids[self._base_mark :]
        self._open = False

    def trajectory(self, columns: Columns) -> None:
        """Start a trajectory. ``source_id`` is the id that the source gave, or missing."""
        if self._open:
            self.finish()
        origin = self._origin
        row = {**origin.columns, **columns}
        row["seq"] = origin.seq + self._sub
        row.setdefault("dataset", origin.dataset)
        self._trajectory = row
        self._calls = CallIndex()
        self._step = (row.get("parent_step") or 0) - 1
        self._turn = -1
        self._last_source: str | None = None
        self._call = 0
        self._order = 0
        self._starts = {name: self.rows[name].size for name in CHILD_TABLES}
        self._open = True

    def finish(self) -> str:
        """End the trajectory and return its id."""
        row = self._trajectory
        if self._origin.marked:
            extra_column.mend_row(row, json_columns("trajectories"))
        source_id = row.get("source_id")
        base = ids.base_id(row["dataset"], source_id, row.get("source_hash") or "")
        if source_id is None and self._sub:
            base = f"{base}.{self._sub}"
        number = self._repeats[base] = self._repeats.get(base, 0) + 1
        self.base_ids.append(base)
        trajectory_id = row["trajectory_id"] = ids.numbered(base, number)
        self._add("trajectories", row)
        for name, start in self._starts.items():
            end = self.rows[name].size
            if end > start:
                self._keys[name].append((row["seq"], trajectory_id, end))
        for name in ("media", "tasks"):
            for child in reversed(self.rows[name]) if self.rows[name].size else ():
                if "trajectory_id" in child:
                    break
                child["seq"], child["trajectory_id"] = row["seq"], trajectory_id
        self._sub += 1
        self._open = False
        self.size += self._origin.size if self._sub == 1 else 0
        return trajectory_id

    @property
    def next_step(self) -> int:
        """The number that the next step of the open trajectory gets."""
        return self._step + 1

    # ---- rows of the open trajectory -------------------------------------------------------

    def step(self, columns: Columns) -> int:
        """Add a step and return its index. ``source`` is required."""
        self._step += 1
        self._call = self._order = 0
        source = columns["source"]
        if source == "user" and self._last_source != "user":
            self._turn += 1
        self._last_source = source
        columns["step"] = self._step
        if "turn" not in columns:
            columns["turn"] = self._turn if self._turn > 0 else 0
        self._add("steps", columns)
        return self._step

    def call(self, columns: Columns) -> int:
        """Add a call to the current step and return its index.

        ``call_id`` is the id as the source wrote it; when the trajectory has it already, the
        column gets ``id#2`` and ``native_id`` keeps what was written.
        """
        native = columns.get("call_id")
        index = self._call
        if native is not None:
            unique = self._calls.unique_id(native)
            if unique != native:
                columns["call_id"] = unique
                columns.setdefault("native_id", native)
        self._calls.add(self._step, index, columns)
        columns["step"] = self._step
        columns["call"] = index
        self._add("tool_calls", columns)
        self._call += 1
        return index

    def observation(
        self, columns: Columns, *, answers: str | None = None, by_order: bool = False
    ) -> None:
        """Add an observation that arrived after the current step.

        Args:
            columns: its columns.
            answers: the call id that the source wrote; a call with that id is looked for.
            by_order: without an id, pair with the oldest call of the last calling step that
                has no result yet (and has the same ``name``, when there is one).
        """
        call = None
        if answers is not None:
            call = self._calls.by_id(answers)
            if call is None or call.call_id != answers:
                columns["native_call_id"] = answers
        elif by_order:
            call = self._calls.next_open(columns.get("name"))
        if call is not None:
            call.answered = True
            columns["call_step"], columns["call"] = call.step, call.index
            columns["call_id"] = call.call_id
        columns["step"] = self._step
        columns["order"] = self._order
        self._order += 1
        self._add("observations", columns)

    def extend(self, table: str, columns: dict[str, list[Any]], count: int) -> None:
        """Add rows of the open trajectory as columns: numbered and paired already, and clean.

        Args:
            table: name of the table.
            columns: a value for each row; columns that are missing are null.
            count: number of the rows.
        """
        self.rows[table].extend_columns(columns, count)
        if table == "steps":
            self._step += count

    def settle(self) -> None:
        """Make columns of the steps, calls and observations so far, which nobody changes now."""
        for name in ("steps", "tool_calls", "observations"):
            self.rows[name].settle()

    def link(self, columns: Columns) -> None:
        """Add a link from this trajectory to another one."""
        self._add("links", columns)

    def raw(self, columns: Columns) -> None:
        """Keep a raw record beside the trajectory."""
        self._add("raw", columns)

    def task(self, columns: Columns) -> None:
        """Add a task, once a shard and data set; the trajectory's ``task_id`` refers to it.

        One that says something else than the first with its id is kept beside the trajectory.
        """
        self._has_task = True
        key, content = (self._origin.dataset, columns["task_id"]), ids.task_digest(columns)
        if self._tasks_seen.get(key) != content:
            if key not in self._tasks_seen:
                self._tasks_seen[key] = content
                self._new_tasks.append(key)
            self._add("tasks", columns)

    def media(self, blob: Media) -> str:
        """Add a blob, once a shard, and return its id."""
        media_id = blob.media_id or ""
        if media_id not in self._media_seen:
            self._media_seen[media_id] = blob.mime
            self._add("media", {k: v for k, v in blob.model_dump().items() if v is not None})
            self.size += blob.size or 0
        return media_id

    def stored_mime(self, media_id: str) -> str | None:
        """The media type that a blob was stored with; the same bytes may come with others."""
        return self._media_seen.get(media_id)

    def text(self, text: str) -> str:
        """Return a text with its base64 lifted out into media.

        Base64 stays where it is when the same bytes were stored with another media type: the
        text could not be restored.
        """
        if ";base64," not in text:
            return text
        lifted, blobs = media.lift(text)
        mimes = {blob.media_id or "": blob.mime for blob in blobs}
        if any(
            blob.mime != self._media_seen.get(blob.media_id or "", mimes[blob.media_id or ""])
            for blob in blobs
        ):
            return text
        for blob in blobs:
            self.media(blob)
        return lifted

    def add_rows(self, seq: int, trajectory: Columns, rows: dict[str, list[Columns]]) -> str:
        """Add a trajectory whose rows are whole already: nothing is numbered or paired anew.

        Args:
            seq: its place in the input order.
            trajectory: columns of the trajectory; without ``trajectory_id`` it gets one.
            rows: table -> rows that hang from it.

        Returns:
            The trajectory's id.
        """
        source_id, source_hash = trajectory.get("source_id"), trajectory.get("source_hash") or ""
        dataset = trajectory.get("dataset") or ""
        base = trajectory.get("trajectory_id") or ids.base_id(dataset, source_id, source_hash)
        self._repeats[base] += 1
        self.base_ids.append(base)
        trajectory_id = ids.numbered(base, self._repeats[base])
        self._add("trajectories", {**trajectory, "seq": seq, "trajectory_id": trajectory_id})
        for name, children in rows.items():
            more = {} if name in self._keys else {"seq": seq, "trajectory_id": trajectory_id}
            for columns in children:
                self._add(name, {**columns, **more} if more else columns)
            if name in self._keys and children:
                self._keys[name].append((seq, trajectory_id, len(self.rows[name])))
        return trajectory_id

    def reject(self, columns: Columns) -> None:
        """Add a rejected or skipped record."""
        self._add("rejects", columns)

    def pair(self, columns: Columns) -> None:
        """Add a preference pair; a ``pair_id`` that was there before gets ``#2``, ``#3``."""
        base = columns["pair_id"]
        self._pair_repeats[base] += 1
        self._pair_bases.append(base)
        columns["pair_id"] = ids.numbered(base, self._pair_repeats[base])
        self._add("pairs", columns)

    def source_file(self, columns: Columns) -> None:
        """Add an input file."""
        self._add("sources", columns)

    def sources(self) -> pa.Table:
        """The rows of the table of input files, which is not part of any shard."""
        return self._table("sources")

    def _add(self, table: str, columns: Columns) -> None:
        if self._origin.marked and table in _TABLES_WITH_MARKS:
            extra_column.mend_row(columns, json_columns(table))
        self.rows[table].append(columns)

    # ---- out -------------------------------------------------------------------------------

    def is_full(self) -> bool:
        """Whether the rows so far make a row group."""
        # A list is quicker than a generator, and this is asked at each record.
        longest = max([rows.size for rows in self.rows.values()])
        return self.size >= ROW_GROUP_BYTES or longest >= ROW_GROUP_ROWS

    def tables(self) -> dict[str, pa.Table]:
        """Return the rows as Arrow tables and start afresh; ids already given stay taken.

        Raises:
            SchemaError: a value has the wrong type, or a column is unknown.
        """
        out = {name: self._table(name) for name in TABLES if name != "sources"}
        for name in TABLES:
            self.rows[name].clear()
        for keys in self._keys.values():
            keys.clear()
        self._mark = dict.fromkeys(TABLES, 0)
        self._base_mark = len(self.base_ids)
        self.size = 0
        return out

    def _table(self, name: str) -> pa.Table:
        return make_table(name, self.rows[name], self._keys.get(name))
