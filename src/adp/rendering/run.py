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
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from filelock import FileLock

from adp.core.progress import Progress, Silent
from adp.rendering.options import RenderOptions
from adp.rendering.render import Rendered, Renderer, TokenRow
from adp.rendering.report import MANIFEST, RenderReport, read_report
from adp.rendering.table import LOST, rows_table
from adp.rendering.worker_tokenizer import load_lean, save_lean
from adp.stores.locks import holding
from adp.stores.shards import manifest_hash
from adp.stores.staged import StagedRun, versions
from adp_schema.errors import EmptyResultError, OutputExistsError, UsageError
from adp_schema.ids import digest
from adp_schema.manifest import write_atomic
from adp_schema.store import Store
from adp_schema.writer import placing

RENDERING = 2
"""Raised when the same input gives other rows, so that caches are made anew."""

JOB_ROWS = 8000
"""Steps and observations that one job renders, about."""


@dataclass(frozen=True)
class RenderJob:
    """A run of trajectories to render."""

    index: int
    size: int
    root: str
    seqs: tuple[int, ...]
    tokenizer: str
    options: str
    out: str

    @property
    def reads(self) -> tuple[str, ...]:
        """What is read."""
        return (self.root,)


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
    if workers is not None and workers < 1:
        raise UsageError("the number of workers is 1 or more")
    options = options or RenderOptions()
    renderer = Renderer.load(model, options)
    members, branches = _members(store, options, splits)
    key = _key(store, renderer, splits)
    name = digest(json.dumps(key, sort_keys=True).encode())
    folder = Path(out) if out is not None else cache_folder() / name
    report = RenderReport(
        folder=str(folder),
        branches=branches,
        tokenizer=renderer.encoder.digest,
        template=renderer.template.digest,
        store=str(key["store"]),
        key=name,
    )
    fresh = not folder.exists()
    with _cached(folder) if out is None else holding(folder):
        result = read_report(folder)
        if result is not None and result.key == name and result.whole():
            result.cached = True
            return result
        if out is None:
            _make_room(folder)
        # What is appended while it is read must not be seen by some of the workers only.
        run = StagedRun(str(folder), {"render": name}, 1 if store.journal else workers)
        run_key = _tell(run, renderer)
        _stores[store.root] = store
        try:
            jobs = list(_jobs(store, members, (*run_key, str(folder))))
            for shard in run.shards(jobs, work, Done.parse, progress or Silent()):
                report.take(dict(shard.facts))
        finally:
            _stores.clear()
            _loaded.clear()
        if not report.rows:
            run.drop()
            if fresh or out is None:
                shutil.rmtree(folder, ignore_errors=True)
            raise EmptyResultError(_nothing(report))
        _finish(report, folder, key)
        run.end()
    return report


def _key(store: Store, renderer: Renderer, splits: Sequence[str] | None) -> dict[str, Any]:
    """All that the rows depend on."""
    return {
        "rendering": RENDERING,
        "store": _content(store),
        "tokenizer": renderer.encoder.digest,
        "template": renderer.template.digest,
        "options": renderer.options.model_dump(mode="json"),
        "splits": None if splits is None else sorted(splits),
        "versions": versions("transformers", "tokenizers", "jinja2"),
    }


def _tell(run: StagedRun, renderer: Renderer) -> tuple[str, str]:
    """Write the tokenizer for the workers; its file, and the options as JSON."""
    tokenizer = run.scratch / "tokenizer.json"
    save_lean(renderer.tokenizer, tokenizer, renderer.stops)
    renderer_key = (str(tokenizer), renderer.options.model_dump_json())
    _loaded[renderer_key] = renderer
    return renderer_key


@contextmanager
def _cached(folder: Path) -> Iterator[None]:
    """Wait for another run that writes the same rows into the cache; then they are there.

    Raises:
        OutputExistsError: nothing can be written there.
    """
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder.with_name(f".{folder.name}.lock"))
        lock.acquire()
    except OSError as error:
        raise OutputExistsError(f"cannot write to {folder.parent}: {error.strerror}") from error
    try:
        yield
    finally:
        lock.release()


def _content(store: Store) -> str:
    """A hash of what a store holds; of a growing one, of what it holds now."""
    if store.journal is None:
        return manifest_hash(store)
    key_parts = [store.manifest.text(), *sorted(store.journal.files)]
    key_parts += [
        digest(Path(path).read_bytes()) for _, path in sorted(store.journal.files.items())
    ]
    return digest(json.dumps(key_parts).encode("utf-8", "surrogatepass"))


def _make_room(folder: Path) -> None:
    """Remove what a cache holds under a name, unless it is a run that can go on."""
    if folder.exists() and not (folder / ".run" / "plan.json").is_file():
        shutil.rmtree(folder)


def _finish(report: RenderReport, folder: Path, key: dict[str, Any]) -> None:
    """Write what was made."""
    files = sorted((folder / "rows").glob("part-*.parquet"))
    report.parts = {path.name: path.stat().st_size for path in files}
    plain = {**vars(report), "folder": "", "lost": dict(sorted(report.lost.items()))}
    plain |= {"notes": dict(sorted(report.notes.items())), "made_from": key}
    write_atomic(folder / MANIFEST, json.dumps(plain, indent=2) + "\n")


def _nothing(report: RenderReport) -> str:
    if not report.trajectories:
        return "no trajectory was selected, so there is nothing to render"
    reasons = "; ".join(f"{count:,} steps: {why}" for why, count in report.lost.most_common(3))
    return f"not a single step can be trained ({reasons or 'no step of the agent has a weight'})"


def cache_folder() -> Path:
    """Where rows go that have no folder of their own: ``$ADP_CACHE``, else the user's cache."""
    cache = os.environ.get("ADP_CACHE")
    if cache:
        return Path(cache) / "render"
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "adp" / "render"


def _members(
    store: Store, options: RenderOptions, splits: Sequence[str] | None
) -> tuple[list[tuple[int, int]], int]:
    """``seq`` and size of what is rendered, in order, and how many branches are left out."""
    rows = store.scan("trajectories").select("seq", "parent_id", "branch_kind", "split")
    if splits is not None:
        rows = rows.filter(pl.col("split").is_in(list(splits)))
    for table in ("steps", "observations"):
        counts = store.scan(table).group_by("seq").agg(pl.len().alias(table))
        rows = rows.join(counts, on="seq", how="left")
    frame = rows.sort("seq").collect()
    main = pl.col("parent_id").is_null()
    wanted = main
    if options.branches:
        every = "all" in options.branches
        kinds = pl.lit(True) if every else pl.col("branch_kind").is_in(list(options.branches))
        wanted = main | kinds.fill_null(False)
    kept = frame.filter(wanted)
    size = pl.col("steps").fill_null(0) + pl.col("observations").fill_null(0) + 1
    pairs = kept.select("seq", size.alias("size").cast(pl.Int64)).rows()
    return pairs, frame.height - kept.height


def _jobs(
    store: Store, members: Sequence[tuple[int, int]], renderer_key: tuple[str, str, str]
) -> Iterator[RenderJob]:
    seqs: list[int] = []
    size = index = 0
    for position, (seq, rows) in enumerate(members):
        seqs.append(seq)
        size += rows
        if size >= JOB_ROWS or position + 1 == len(members):
            # Progress counts bytes; a row of a store has about two kilobytes.
            yield RenderJob(index, size * 2048, store.root, tuple(seqs), *renderer_key)
            seqs, size, index = [], 0, index + 1


_stores: dict[str, Store] = {}
"""The store that this process was given, by its path."""

_loaded: dict[tuple[str, str], Renderer] = {}
"""The renderer that this process works with."""


def _renderer(tokenizer: str, options: str) -> Renderer:
    if (tokenizer, options) not in _loaded:
        _loaded.clear()
        render_options = RenderOptions.model_validate_json(options)
        worker_tokenizer = load_lean(Path(tokenizer))
        _loaded[tokenizer, options] = Renderer(
            worker_tokenizer, render_options, worker_tokenizer.stops
        )
    return _loaded[tokenizer, options]


def work(job: RenderJob) -> Done:
    """Render the trajectories of a job and write their rows."""
    renderer = _renderer(job.tokenizer, job.options)
    renderer.forget()
    store = _stores.get(job.root) or Store.open(job.root)
    report: Counter[str] = Counter()
    lost: Counter[str] = Counter()
    notes: Counter[str] = Counter()
    gone: list[dict[str, Any]] = []
    rows: list[TokenRow] = []
    for trajectory in store.some(np.array(job.seqs, np.int64)):
        result = renderer.trajectory(store.resolve(trajectory))
        report.update(trajectories=1, steps=result.steps, trained=result.trained)
        lost += result.lost
        notes += result.notes
        gone += _gone(trajectory.trajectory_id, trajectory.seq, result)
        rows += result.rows
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


def _gone(trajectory_id: str | None, seq: int | None, value: Rendered) -> list[dict[str, Any]]:
    return [
        {"trajectory_id": trajectory_id, "seq": seq, "reason": reason, "steps": count}
        for reason, count in sorted(value.lost.items())
    ]


def _write(job: RenderJob, kind: str, table: pa.Table) -> None:
    """Write a part; a table without rows leaves no file."""
    if not table.num_rows:
        return
    folder = Path(job.out) / kind
    folder.mkdir(exist_ok=True)
    path = folder / f"part-{job.index:05d}.parquet"
    with placing(path, Path(job.out) / ".run") as staged:
        pq.write_table(table, staged, compression="zstd", row_group_size=2000)
