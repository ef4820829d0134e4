"""Rows of a run on disk: for training and for measuring, in the order in which they are trained.

A file is needed, not only convenient: what `datasets` computes from rows in memory is cached in a
folder of each process, so the processes of a run would not find each other's results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from adp.core.progress import Progress
from adp.rendering.model import load_tokenizer, stop_ids
from adp.rendering.render import Renderer
from adp.rendering.report import check_ends
from adp.trainers.config import TrainConfig
from adp.trainers.method import TrainingPlan
from adp.trainers.preference_rows import PairCounts
from adp.trainers.rows import EVAL, TOKENS, TRAIN, write_arrow
from adp.trainers.store_parts import Part, StoreParts
from adp_schema.errors import EmptyResultError
from adp_schema.store import Store

MASK = pa.list_(pa.int8())
"""1 for the tokens in the loss."""

IDS = TOKENS

_BATCH = 128
_COUNTS = {"held": pa.bool_(), "tokens": pa.int32(), "trained": pa.int32(), "longest": pa.int32()}


@dataclass(frozen=True)
class TrainingRow:
    """A row of a method.

    Attributes:
        part: what it is for.
        columns: values of its columns.
        tokens: its tokens.
        trained: those in the loss.
        longest: tokens of its longest sequence.
    """

    part: Part
    columns: dict[str, Any]
    tokens: int
    trained: int
    longest: int


Examples = Callable[[Store, Renderer, StoreParts, PairCounts], Iterator[TrainingRow]]
"""The examples of a store that are in a part of the run, counted in the tally."""


@dataclass(frozen=True)
class Order:
    """In which order rows are trained.

    Attributes:
        shuffle: whether they are shuffled on disk.
        others: from the indices of the rows, in order, those whose columns stand beside them.
        columns: columns that are taken from there; named with ``prefix``.
        prefix: of their names.
    """

    shuffle: bool = False
    others: Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]] | None = None
    columns: tuple[str, ...] = ()
    prefix: str = ""


def renderer_of(config: TrainConfig) -> Renderer:
    """The renderer of a run.

    Raises:
        UsageError: the tokenizer cannot be loaded or used.
    """
    model = config.model
    name = model.tokenizer_name_or_path or model.model_name_or_path
    tokenizer = load_tokenizer(name, trust_remote_code=model.trust_remote_code)
    return Renderer(tokenizer, config.render, stop_ids(name))


def write_rows(
    config: TrainConfig,
    folder: Path,
    schema: pa.Schema,
    examples: Examples,
    order: Order,
    progress: Progress,
) -> TrainingPlan:
    """Write the rows of a run, for training and for measuring.

    Args:
        config: the run.
        folder: where to.
        schema: columns of a row.
        examples: makes the rows of a store.
        order: in which order they are trained.
        progress: what is told about it.

    Raises:
        EmptyResultError: no row is left to train on.
    """
    assert config.data.store is not None
    renderer = renderer_of(config)
    tally = PairCounts()
    raw = folder / "raw.arrow"
    store = Store.open(config.data.store)
    progress.status("rendering rows")
    _write_raw(raw, schema, examples(store, renderer, StoreParts.of_run(store, config), tally))
    check_ends(tally.notes, config.render)
    plan = TrainingPlan(dropped=tally.left_out, notes=tally.notes)
    with pa.memory_map(str(raw)) as source:
        table = pa.ipc.open_stream(source).read_all()
        held = table["held"].to_numpy()
        chosen = _choose(np.flatnonzero(~held), config, order)
        if not len(chosen):
            raise EmptyResultError(_nothing(tally, bool(held.any())))
        _write_part(folder / TRAIN, table, schema, chosen, order)
        plan.rows = plan.sequences = len(chosen)
        plan.tokens, plan.trained = (
            int(table[name].to_numpy()[chosen].sum()) for name in ("tokens", "trained")
        )
        plan.longest = int(table["longest"].to_numpy()[chosen].max())
        if held.any():
            _write_part(folder / EVAL, table, schema, np.flatnonzero(held), order)
            plan.eval_rows = int(held.sum())
    if config.data.eval_store is not None:
        plan.eval_rows = _write_eval(config, folder, schema, examples, order, renderer)
    raw.unlink()
    plan.facts = facts(store, renderer)
    return plan


def facts(store: Store, renderer: Renderer) -> dict[str, Any]:
    """What the record of a run says about where its rows come from."""
    return {
        "store": store.name,
        "tokenizer": renderer.encoder.digest,
        "template": renderer.template.digest,
    }


def _nothing(tally: PairCounts, all_held: bool) -> str:
    if all_held:
        return "all rows are for measuring the loss; lower data.eval_share, or name other splits"
    reasons = ", ".join(f"{reason}: {count}" for reason, count in tally.left_out.most_common(5))
    missing = "the store has no rows for this method; pairs come from a recipe with the op pairs"
    return f"nothing is left to train on ({reasons or missing})"


def _write_raw(path: Path, schema: pa.Schema, examples: Iterable[TrainingRow]) -> int:
    full = pa.schema([*schema, *(pa.field(name, kind) for name, kind in _COUNTS.items())])
    return write_arrow(path, full, _batches(full, examples))


def _batches(schema: pa.Schema, examples: Iterable[TrainingRow]) -> Iterator[pa.RecordBatch]:
    rows: list[dict[str, Any]] = []
    for example in examples:
        counts = {
            "held": example.part == "eval",
            "tokens": example.tokens,
            "trained": example.trained,
            "longest": example.longest,
        }
        rows.append({**example.columns, **counts})
        if len(rows) == _BATCH:
            yield _batch(schema, rows)
            rows = []
    yield _batch(schema, rows)


def _batch(schema: pa.Schema, rows: list[dict[str, Any]]) -> pa.RecordBatch:
    columns = [pa.array([row[field.name] for row in rows], field.type) for field in schema]
    return pa.record_batch(columns, schema=schema)


def _choose(
    indices: np.ndarray[Any, Any], config: TrainConfig, order: Order
) -> np.ndarray[Any, Any]:
    """The rows to train on, in their order."""
    random = np.random.default_rng(config.training.seed)
    most = config.data.max_rows
    if most is not None and len(indices) > most:
        indices = np.sort(random.choice(indices, most, replace=False))
    return random.permutation(indices) if order.shuffle else indices


def _write_part(
    path: Path, table: pa.Table, schema: pa.Schema, indices: np.ndarray[Any, Any], order: Order
) -> None:
    """Write some rows, with the columns that they take from others."""
    others = order.others(indices) if order.others is not None else None
    extra = [] if others is None else [schema.field(name) for name in order.columns]
    full = pa.schema([*schema, *(field.with_name(order.prefix + field.name) for field in extra)])

    def batches() -> Iterator[pa.RecordBatch]:
        for start in range(0, len(indices), _BATCH):
            part = table.select(schema.names).take(indices[start : start + _BATCH])
            columns = [part[name].combine_chunks() for name in schema.names]
            if others is not None:
                take = table.select(list(order.columns)).take(others[start : start + _BATCH])
                columns += [take[name].combine_chunks() for name in order.columns]
            yield pa.record_batch(columns, schema=full)

    write_arrow(path, full, batches())


def _write_eval(
    config: TrainConfig,
    folder: Path,
    schema: pa.Schema,
    examples: Examples,
    order: Order,
    renderer: Renderer,
) -> int:
    assert config.data.eval_store is not None
    raw, tally = folder / "raw_eval.arrow", PairCounts()
    store = Store.open(config.data.eval_store)
    parts = StoreParts.to_measure(store, config.data.eval_splits)
    count = _write_raw(raw, schema, examples(store, renderer, parts, tally))
    if not count:
        raise EmptyResultError(f"data.eval_store: {_nothing(tally, False)}")
    with pa.memory_map(str(raw)) as source:
        table = pa.ipc.open_stream(source).read_all()
        _write_part(folder / EVAL, table, schema, np.arange(count), order)
    raw.unlink()
    return count
