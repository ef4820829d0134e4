"""The stage ``score``: `adp score` into a folder of its own, and a table that a recipe can join."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import Field

from adp.core.options import OptionsModel
from adp.eval.scoring import ScoreOptions, choose, read_scores, score_store
from adp.eval.scoring.given_references import given_references
from adp.workflows.loop.hashes import combined
from adp.workflows.loop.stage_kind import StageContext, StageFacts, StageKind
from adp_schema.ids import digest_file
from adp_schema.store import Store

COLUMNS = "columns.parquet"
"""A row a trajectory, a column a metric: for the op annotate of a recipe."""


class ScoreStage(OptionsModel):
    """Options of a stage ``score``: those of the command."""

    store: str
    """The store whose trajectories are scored."""
    scorers: tuple[str, ...] = Field(alias="with", min_length=1)
    """Scorers with their settings: tool_f1, answer:manner=squad; or YAML files."""
    reference: str | None = None
    """Take the runs of this store for the right ones."""
    tasks: str | None = None
    """Take the tasks of this file or store."""
    branches: bool = False
    """Score branches too."""
    concurrency: int = Field(default=64, ge=1)
    """Requests of a judge that run at once."""


def _check(options: ScoreStage, context: StageContext) -> None:
    choose(list(options.scorers))
    if options.reference is not None and options.tasks is not None:
        given_references(options.reference, options.tasks)


def _run(options: ScoreStage, context: StageContext, out: Path) -> None:
    store = Store.open(context.given_path(options.store))
    reference, tasks = options.reference, options.tasks
    right = given_references(
        None if reference is None else context.given_path(reference),
        None if tasks is None else context.given_path(tasks),
    )
    how = ScoreOptions(str(out), right, options.branches, options.concurrency)
    score_store(store, choose(list(options.scorers)), how, context.progress)
    _write_columns(store, out)


def _write_columns(store: Store, out: Path) -> None:
    """Write the scores as columns: the name of the scorer, and that of the metric."""
    rows: dict[str, dict[str, float | None]] = {}
    names: dict[str, None] = {}
    seen: Counter[str] = Counter()
    for item in read_scores(store, str(out)):
        seen[item.scorer] += 1
        number = f"_{seen[item.scorer]}" if seen[item.scorer] > 1 else ""
        for row in item.rows:
            name = re.sub(r"\W", "_", f"{item.scorer}{number}_{row.score.metric}")
            names[name] = None
            rows.setdefault(row.trajectory_id, {})[name] = row.score.value
    ids = sorted(rows)
    table = {"trajectory_id": pa.array(ids, pa.string())}
    for name in sorted(names):
        values = [rows[trajectory_id].get(name) for trajectory_id in ids]
        table[name] = pa.array(values, pa.float64())
    pq.write_table(pa.table(table), out / COLUMNS)


def _facts(options: ScoreStage, folder: Path) -> StageFacts:
    table = pq.read_table(folder / COLUMNS)
    counts = {"trajectories": table.num_rows, "metrics": table.num_columns - 1}
    line = f"{table.num_rows:,} trajectories, {table.num_columns - 1:,} metrics"
    return StageFacts(combined({COLUMNS: digest_file(str(folder / COLUMNS))}), counts, line=line)


KIND = StageKind(
    name="score",
    about="Scorers give numbers about the trajectories of a store.",
    options=ScoreStage,
    run=_run,
    facts=_facts,
    check=_check,
    free=frozenset({"concurrency"}),
)
