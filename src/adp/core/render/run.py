"""A whole store as rows of tokens, in Parquet.

    render/
      render.json                counts, options, tokenizer and template by hash; written last
      rows/part-00000.parquet    one row of training data each, see `ROWS`
      lost/part-00000.parquet    trained steps that are in no row: trajectory, reason, number

The work is cut by what the store holds, never by the number of workers, so the bytes do not depend
on them. Without a folder of its own, what is rendered goes to a cache: the same store, tokenizer,
template and options are rendered once.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from filelock import FileLock

from adp.core.progress import Progress, Silent
from adp.core.render.lean import load_lean, save_lean
from adp.core.render.options import RenderOptions
from adp.core.render.render import Rendered, Renderer, Row
from adp.core.shards import manifest_hash
from adp.core.staged import StagedRun, versions
from adp_schema.errors import EmptyResultError
from adp_schema.ids import digest
from adp_schema.manifest import write_atomic
from adp_schema.store import Store

MANIFEST = "render.json"

ROWS = pa.schema(
    [
        pa.field("trajectory_id", pa.string()),
        pa.field("seq", pa.int64()),
        pa.field("segment", pa.int32()),
        pa.field("window", pa.int32()),
        pa.field("input_ids", pa.list_(pa.int32())),
        pa.field("labels", pa.list_(pa.int32())),
        pa.field("loss_weights", pa.list_(pa.float32())),
        pa.field("step_index", pa.list_(pa.int32())),
        pa.field("context_cut", pa.bool_()),
        pa.field("length", pa.int32()),
        pa.field("trained", pa.int32()),
    ]
)
"""Columns of the rows."""

LOST = pa.schema(
    [
        pa.field("trajectory_id", pa.string()),
        pa.field("seq", pa.int64()),
        pa.field("reason", pa.string()),
        pa.field("steps", pa.int32()),
    ]
)
"""Columns of what was lost."""

JOB_ROWS = 8000
"""Steps and observations that one job renders, about."""


@dataclass
class RenderReport:
    """What was rendered.

    Attributes:
        folder: where it is.
        trajectories: trajectories that were looked at.
        rows: rows written.
        tokens: their tokens.
        trained_tokens: tokens under the loss.
        longest: tokens of the longest row.
        fractional: whether a weight is neither 0 nor 1.
        steps: steps that have a weight in the store.
        trained: steps that are trained in a row.
        lost: reason -> number of the other ones.
        notes: what was written differently, or drifts -> how often.
        branches: branches that were left out.
        tokenizer: hash of the tokenizer.
        template: hash of the chat template and of what it was given.
        store: hash of the store's manifest.
        key: names the content: store, tokenizer, template, options and versions.
        cached: whether it was there already.
    """

    folder: str = ""
    trajectories: int = 0
    rows: int = 0
    tokens: int = 0
    trained_tokens: int = 0
    longest: int = 0
    fractional: bool = False
    steps: int = 0
    trained: int = 0
    lost: Counter[str] = field(default_factory=Counter)
    notes: Counter[str] = field(default_factory=Counter)
    branches: int = 0
    tokenizer: str = ""
    template: str = ""
    store: str = ""
    key: str = ""
    cached: bool = False

    def files(self) -> list[Path]:
        """The files of rows, in order."""
        return sorted(Path(self.folder, "rows").glob("part-*.parquet"))

    def take(self, facts: dict[str, Any]) -> None:
        """Add the counts of a job."""
        self.longest = max(self.longest, facts.pop("longest"))
        self.fractional = self.fractional or facts.pop("fractional")
        self.lost += Counter(facts.pop("lost"))
        self.notes += Counter(facts.pop("notes"))
        for name, value in facts.items():
            setattr(self, name, getattr(self, name) + value)


@dataclass(frozen=True)
class Job:
    """A run of trajectories to render."""

    index: int
    size: int
    root: str
    seqs: tuple[int, ...]
    tokenizer: str
    options: str
    out: str


@dataclass
class Done:
    """What a job gave."""

    index: int
    facts: dict[str, Any]

    def text(self) -> str:
        """As JSON."""
        return json.dumps({"index": self.index, "facts": self.facts})

    @classmethod
    def parse(cls, text: str) -> Done:
        """The inverse of `text`."""
        return cls(**json.loads(text))


def render_store(
    store: Store,
    model: str,
    out: str | None = None,
    options: RenderOptions | None = None,
    *,
    splits: Sequence[str] | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
) -> RenderReport:
    """Render the trajectories of a store.

    Args:
        store: the store.
        model: whose tokenizer and chat template: a folder, a name on the Hub, or ``tiny``.
        out: folder for the rows; None takes a folder in the cache, see `cache_folder`.
        options: how.
        splits: only trajectories of these splits; None takes all.
        workers: number of processes; None takes one a core.
        progress: told how far it is.

    Raises:
        EmptyResultError: no row comes out.
        OutputExistsError: the folder holds something else.
        UsageError: the model has no tokenizer that can be used.
    """
    options = options or RenderOptions()
    renderer = Renderer.load(model, options)
    members, branches = _members(store, options, splits)
    key = {
        "store": manifest_hash(store) if store.journal is None else digest(repr(members).encode()),
        "tokenizer": renderer.encoder.digest,
        "template": renderer.template.digest,
        "options": options.model_dump(mode="json"),
        "splits": None if splits is None else sorted(splits),
        "versions": versions("transformers", "tokenizers", "jinja2"),
    }
    name = digest(json.dumps(key, sort_keys=True).encode())
    folder = Path(out) if out is not None else cache_folder() / name
    folder.parent.mkdir(parents=True, exist_ok=True)
    # Two runs may want the same rows at once; a folder of one's own is not shared.
    lock = FileLock(folder.with_name(f".{folder.name}.lock")) if out is None else nullcontext()
    with lock:
        found = read_report(folder)
        if found is not None and found.key == name:
            found.cached = True
            return found
        run = StagedRun(str(folder), {"render": name}, workers)
        tokenizer = run.scratch / "tokenizer.json"
        save_lean(renderer.tokenizer, tokenizer)
        told = (str(tokenizer), options.model_dump_json(), str(folder))
        _loaded.clear()
        _loaded[told[:2]] = renderer
        report = RenderReport(
            folder=str(folder),
            branches=branches,
            tokenizer=renderer.encoder.digest,
            template=renderer.template.digest,
            store=str(key["store"]),
            key=name,
        )
        done = run.shards(list(_jobs(store, members, told)), work, Done.parse, progress or Silent())
        for one in done:
            report.take(dict(one.facts))
        if not report.rows:
            run.drop()
            raise EmptyResultError(_nothing(report))
        plain = {**vars(report), "folder": "", "lost": dict(sorted(report.lost.items()))}
        plain |= {"notes": dict(sorted(report.notes.items())), "made_from": key}
        write_atomic(folder / MANIFEST, json.dumps(plain, indent=2) + "\n")
        run.end()
        _loaded.clear()
    return report


def _nothing(report: RenderReport) -> str:
    if not report.trajectories:
        return "no trajectory was selected, so there is nothing to render"
    reasons = "; ".join(f"{count:,} steps: {why}" for why, count in report.lost.most_common(3))
    return f"not a single step can be trained ({reasons or 'no step of the agent has a weight'})"


def read_report(folder: Path) -> RenderReport | None:
    """The report of what a folder holds; None when it holds nothing that is finished."""
    path = folder / MANIFEST
    if not path.is_file():
        return None
    plain = json.loads(path.read_text(encoding="utf-8"))
    plain.pop("made_from")
    plain |= {"folder": str(folder), "lost": Counter(plain["lost"])}
    return RenderReport(**{**plain, "notes": Counter(plain["notes"])})


def cache_folder() -> Path:
    """Where rows go that have no folder of their own: ``$ADP_CACHE``, else the user's cache."""
    own = os.environ.get("ADP_CACHE")
    if own:
        return Path(own) / "render"
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "adp" / "render"


def _members(
    store: Store, options: RenderOptions, splits: Sequence[str] | None
) -> tuple[list[tuple[int, int]], int]:
    """``seq`` and size of what is rendered, in order, and how many branches are left out."""
    import polars as pl

    rows = store.scan("trajectories").select("seq", "parent_id", "branch_kind", "split")
    if splits is not None:
        rows = rows.filter(pl.col("split").is_in(list(splits)))
    for table in ("steps", "observations"):
        counts = store.scan(table).group_by("seq").agg(pl.len().alias(table))
        rows = rows.join(counts, on="seq", how="left")
    found = rows.sort("seq").collect()
    main = pl.col("parent_id").is_null()
    wanted = main
    if options.branches:
        every = "all" in options.branches
        kinds = pl.lit(True) if every else pl.col("branch_kind").is_in(list(options.branches))
        wanted = main | kinds.fill_null(False)
    kept = found.filter(wanted)
    size = pl.col("steps").fill_null(0) + pl.col("observations").fill_null(0) + 1
    pairs = kept.select("seq", size.alias("size").cast(pl.Int64)).rows()
    return pairs, found.height - kept.height


def _jobs(
    store: Store, members: Sequence[tuple[int, int]], told: tuple[str, str, str]
) -> Iterator[Job]:
    seqs: list[int] = []
    size = index = 0
    for position, (seq, rows) in enumerate(members):
        seqs.append(seq)
        size += rows
        if size >= JOB_ROWS or position + 1 == len(members):
            # Progress counts bytes; a row of a store has about two kilobytes.
            yield Job(index, size * 2048, store.root, tuple(seqs), *told)
            seqs, size, index = [], 0, index + 1


_loaded: dict[tuple[str, str], Renderer] = {}
"""The renderer that this process works with."""


def _renderer(tokenizer: str, options: str) -> Renderer:
    if (tokenizer, options) not in _loaded:
        _loaded.clear()
        told = RenderOptions.model_validate_json(options)
        _loaded[tokenizer, options] = Renderer(load_lean(Path(tokenizer)), told)
    return _loaded[tokenizer, options]


def work(job: Job) -> Done:
    """Render the trajectories of a job and write their rows."""
    renderer = _renderer(job.tokenizer, job.options)
    renderer.forget()
    store = Store.open(job.root)
    report: Counter[str] = Counter()
    lost: Counter[str] = Counter()
    notes: Counter[str] = Counter()
    gone: list[dict[str, Any]] = []
    rows: list[Row] = []
    for trajectory in store.some(np.array(job.seqs, np.int64)):
        found = renderer.trajectory(store.resolve(trajectory))
        report.update(trajectories=1, steps=found.steps, trained=found.trained)
        lost += found.lost
        notes += found.notes
        gone += _gone(trajectory.trajectory_id, trajectory.seq, found)
        rows += found.rows
    table = rows_table(rows)
    _write(job, "rows", table)
    _write(job, "lost", pa.Table.from_pylist(gone, schema=LOST))
    weights = np.unique(np.concatenate([row.loss_weights for row in rows] or [np.zeros(1)]))
    lengths = table["length"].to_numpy()
    facts = {
        **{name: report[name] for name in ("trajectories", "steps", "trained")},
        "rows": len(rows),
        "tokens": int(lengths.sum()),
        "trained_tokens": int(table["trained"].to_numpy().sum()),
        "longest": int(lengths.max(initial=0)),
        "fractional": bool(np.any((weights != 0) & (weights != 1))),
        "lost": dict(lost),
        "notes": dict(notes),
    }
    return Done(job.index, facts)


def _gone(trajectory_id: str | None, seq: int | None, found: Rendered) -> list[dict[str, Any]]:
    return [
        {"trajectory_id": trajectory_id, "seq": seq, "reason": reason, "steps": count}
        for reason, count in sorted(found.lost.items())
    ]


def rows_table(rows: Sequence[Row]) -> pa.Table:
    """Rows as an Arrow table with the columns `ROWS`."""
    columns: list[pa.Array] = []
    for name in ("trajectory_id", "seq", "segment", "window"):
        columns.append(pa.array([getattr(row, name) for row in rows], ROWS.field(name).type))
    lengths = np.array([len(row.input_ids) for row in rows], np.int32)
    offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32))
    for name in ("input_ids", "labels", "loss_weights", "step_index"):
        kind = ROWS.field(name).type
        empty = np.empty(0, kind.value_type.to_pandas_dtype())
        values = np.concatenate([empty, *(getattr(row, name) for row in rows)])
        columns.append(pa.ListArray.from_arrays(offsets, pa.array(values, kind.value_type)))
    columns.append(pa.array([row.context_cut for row in rows], pa.bool_()))
    columns.append(pa.array(lengths))
    trained = [int(np.count_nonzero(row.loss_weights)) for row in rows]
    columns.append(pa.array(trained, pa.int32()))
    return pa.Table.from_arrays(columns, schema=ROWS)


def _write(job: Job, kind: str, table: pa.Table) -> None:
    """Write a part; a table without rows leaves no file."""
    if not table.num_rows:
        return
    folder = Path(job.out) / kind
    folder.mkdir(exist_ok=True)
    path = folder / f"part-{job.index:05d}.parquet"
    staged = path.with_suffix(".tmp")
    pq.write_table(table, staged, compression="zstd", row_group_size=2000)
    staged.replace(path)
