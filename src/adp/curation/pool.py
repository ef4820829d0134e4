"""The pool: the trajectories that a recipe works on, as an op sees them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa

from adp.core.progress import Progress, Silent
from adp.curation.inputs import Input
from adp.curation.partitions import Partition, cut
from adp.curation.repeatable import check_repeatable
from adp.stores.condition import check_condition, own_lines
from adp.stores.stage import run_stage
from adp.stores.tasks import task_index
from adp_schema.errors import QueryError
from adp_schema.gate import Parameters, QueryGate
from adp_schema.gate_files import ExtraView, StoreFiles
from adp_schema.views import quote_name
from adp_schema.writer import placing

COLUMNS: Mapping[str, str] = {
    "seq": "Key of the trajectory: over several inputs that of the gate, else that of the store.",
    "input": "Name of the input.",
    "trajectory_id": "Its id; made unique where two inputs have the same.",
    "source_id": "The id that the source gave.",
    "dataset": "Data set.",
    "split": "Split of the data set.",
    "task_id": "Task, as the source names it.",
    "task": "Key of the task: data set and task_id (for a rollout, data set or environment of the "
    "task, so that all runs at it have one key); without an id, a hash of what the user asks for. "
    "Words that all runs of a data set begin with, such as a worked example, do not count.",
    "attempt": "Number of the attempt.",
    "agent_model": "Model behind the agent.",
    "success": "Whether the task was solved; null when unknown.",
    "reward": "Reward of the run.",
    "size": "Text of the trajectory, in bytes.",
    "rows": "Its steps, calls and observations.",
}
"""Columns that every pool has."""

MEMORY = "1GB"
"""Memory of the query engine."""


@dataclass(eq=False)
class Pool:
    """Trajectories that are still in, with what earlier ops said about them.

    Only main lines are members; a branch goes where its parent goes (see `branches`).

    Attributes:
        inputs: the stores.
        members: `COLUMNS` and the columns of earlier ops, one row a trajectory, sorted by ``seq``.
        scratch: an existing folder for files of this op.
        seed: seed of this op.
        workers: number of processes; None takes one a core.
        progress: told how far `map` is.
        folder: folder of the recipe, to which the paths in options are relative.
        steps: ``seq``, ``step`` and the step columns of earlier ops; None when there are none.
        weights: ``seq``, ``step``, ``loss_weight`` of earlier ops; None when there are none.
        edits: ``seq``, ``step``, ``text`` of steps that earlier ops repaired; None when there are
            none.
        waiting: the same columns for trajectories of reserve inputs that are not in yet.
        branches: ``seq``, ``trajectory_id``, ``parent_seq``, ``parent_step``, ``branch_kind``,
            ``input``, ``size`` and ``rows`` of the branches of all inputs.
    """

    inputs: Sequence[Input]
    members: pl.DataFrame
    scratch: Path
    seed: int = 0
    workers: int | None = None
    progress: Progress = field(default_factory=Silent)
    folder: Path = field(default_factory=Path)
    steps: pl.DataFrame | None = None
    weights: pl.DataFrame | None = None
    edits: pl.DataFrame | None = None
    waiting: pl.DataFrame = field(default_factory=pl.DataFrame)
    branches: pl.DataFrame = field(default_factory=pl.DataFrame)
    _gate: QueryGate | None = field(default=None, init=False)

    def __len__(self) -> int:
        return self.members.height

    # ---- reading ---------------------------------------------------------------------------

    @functools.cached_property
    def partitions(self) -> list[Partition]:
        """The partitions that hold a member, in order."""
        path = self.scratch / "members.parquet"
        self.members.select("seq").write_parquet(path)
        tasks = [self.scratch / f"tasks-{source.index}.parquet" for source in self.inputs]
        for source, file in zip(self.inputs, tasks, strict=True):
            rows = task_index(source.store).rows
            with_id = rows.filter(rows["shared"].is_not_null())
            with_id.select("seq", "row").write_parquet(file)
        sizes = self.members.select("seq", "size")
        return cut(sizes, self.inputs, str(path), [str(file) for file in tasks])

    def map(
        self, work: Callable[[Partition, Any], pl.DataFrame], options: Any = None, name: str = "map"
    ) -> pl.DataFrame:
        """Call a function for each partition, in several processes, and stack what it returns.

        What is done is kept, so a stopped run goes on where it was.

        Args:
            work: a function of a module; it must depend on nothing but its arguments. It returns
                frames of one schema.
            options: its second argument; it must be picklable.
            name: tells several calls of one op apart.

        Returns:
            The frames of all partitions, in order.
        """
        paths = [
            self.scratch / f"{name}-{partition.index:05d}.parquet" for partition in self.partitions
        ]
        # Looked up in a list: a client of NFS remembers for a while that a file is not there.
        names = {path.name for path in self.scratch.iterdir()}
        known = {place: None for place, path in enumerate(paths) if path.name in names}
        write_part = functools.partial(_write_part, work, options, paths)
        run_stage(
            self.partitions, write_part, self.workers, self.progress,
            folder=self.scratch, known=known,
        )  # fmt: skip
        frames = [pl.read_parquet(path, glob=False) for path in paths]
        return pl.concat(frames) if frames else pl.DataFrame()

    def query(
        self,
        sql: str,
        parameters: Parameters | None = None,
        *,
        most: int | None = None,
        of_user: bool = False,
    ) -> pl.DataFrame:
        """Answer one SELECT through the query gate.

        Besides the views of ``docs/schema.md``, over all inputs and with ``seq`` as in the pool,
        there are ``pool``, all columns of the trajectories and of `members`, with one row a
        member; ``step_columns``; and ``members`` (``seq``) to join with.

        Args:
            sql: the statement.
            parameters: values of ``?`` in order, or of ``$name`` by name.
            most: rows after which no more are read, for what might go on for ever.
            of_user: whether a user wrote it, so that it is stopped when it takes too long.

        Raises:
            QueryError: the statement is not allowed, not valid, fails, or gives another result
                each time.
        """
        check_repeatable(sql)
        try:
            gate = self.gate()
            ask = gate.of_user if of_user else gate.batches
            frame = pl.from_arrow(_first(ask(sql, parameters), most))
        except pl.exceptions.PolarsError as error:
            raise QueryError(
                f"a column of the query is of a kind that cannot be kept; cast it ({error})"
            ) from None
        assert isinstance(frame, pl.DataFrame)
        return frame

    def where(self, condition: str) -> pl.DataFrame:
        """``seq`` of the members for which a condition over the view ``pool`` is true, sorted.

        Args:
            condition: what a user writes after WHERE.

        Raises:
            QueryError: it is not one valid condition.
        """
        check_condition(condition)
        try:
            sql = f"SELECT seq FROM pool WHERE (\n{condition}\n) ORDER BY seq"
            return self.query(sql, of_user=True)
        except QueryError as error:
            raise QueryError(own_lines(str(error))) from None

    def gate(self) -> QueryGate:
        """The query gate over the inputs and the pool; it is opened once and used again."""
        if self._gate is None:
            self.members.write_parquet(self.scratch / "pool.parquet")
            names = [name for name in self.members.columns if name not in _OF_TABLE]
            no_steps = pl.DataFrame(schema={"seq": pl.Int64, "step": pl.Int32})
            steps = no_steps if self.steps is None else self.steps
            steps.write_parquet(self.scratch / "step_columns.parquet")
            columns = ", ".join(f"m.{quote_name(name)}" for name in names)
            pool_sql = (
                "SELECT t.* REPLACE (m.trajectory_id AS trajectory_id, m.split AS split), "
                f"{columns} FROM all_trajectories t JOIN members m USING (seq)"
            )
            files = [
                StoreFiles(source.name, source.store.tables_files(), source.store.renamed)
                for source in self.inputs
            ]
            self._gate = QueryGate(
                files if len(files) > 1 else files[0].tables,
                renamed=files[0].renamed if len(files) == 1 else {},
                threads=self.workers,
                memory_limit=MEMORY,
                temp_directory=str(self.scratch),
                extra=[
                    ExtraView("members", str(self.scratch / "pool.parquet")),
                    ExtraView("step_columns", str(self.scratch / "step_columns.parquet")),
                    ExtraView("pool", sql=pool_sql),
                ],
            )
        return self._gate

    def close(self) -> None:
        """Close the gate."""
        if self._gate is not None:
            self._gate.close()
            self._gate = None


_OF_TABLE = frozenset(
    {
        *("seq", "trajectory_id", "source_id", "dataset", "split", "task_id", "attempt"),
        *("agent_model", "success", "reward"),
    }
)
"""Columns of `COLUMNS` that the table of trajectories has too."""


def _write_part(
    work: Callable[[Partition, Any], pl.DataFrame],
    options: Any,
    paths: Sequence[Path],
    partition: Partition,
) -> None:
    """Do one partition, and write what comes of it into its file."""
    with placing(paths[partition.index]) as staged:
        work(partition, options).write_parquet(staged)


def _first(reader: pa.RecordBatchReader, most: int | None) -> pa.Table:
    """The first rows of a reader, a few more perhaps; all without a number."""
    if most is None:
        return reader.read_all()
    batches, rows = [], 0
    for batch in reader:
        batches.append(batch)
        rows += batch.num_rows
        if rows >= most:
            break
    reader.close()
    return pa.Table.from_batches(batches, reader.schema)
