"""What a model is asked about: the rows of training, and the answers in them alone.

An answer alone is what the model writes in one step, behind the words with which the chat template
begins an answer and nothing else.
"""

from __future__ import annotations

import functools
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from adp.curation.partitions import Partition
from adp.rendering.options import RenderOptions
from adp.rendering.probe import TemplateRefusalError
from adp.rendering.render import Renderer
from adp.rendering.worker_tokenizer import load_lean
from adp_schema.ids import digest
from adp_schema.model import Trajectory
from adp_schema.writer import placing

Array = np.ndarray[Any, Any]

INDEX: dict[str, Any] = {
    "seq": pl.Int64,
    "part": pl.Int32,
    "row": pl.Int32,
    "alone": pl.Boolean,
    "key": pl.String,
    "length": pl.Int32,
    "steps": pl.List(pl.Int32),
    "lost": pl.String,
}
"""What is known of each sequence without its tokens; and, with a null ``row``, of each trajectory
which of its steps are in no sequence: reason -> number, as JSON."""

_TOKENS = pa.schema(
    [
        pa.field("ids", pa.list_(pa.int32())),
        pa.field("weights", pa.list_(pa.float32())),
        pa.field("steps", pa.list_(pa.int32())),
    ]
)


@dataclass(frozen=True, slots=True)
class AskedTokens:
    """Tokens, and which of them are trained. The arrays have one entry a token.

    Attributes:
        ids: token ids, int32.
        weights: weight in the training loss, 0 where nothing is trained, float32.
        steps: the step that a token trains, -1 elsewhere, int32.
        alone: whether it is an answer alone.
    """

    ids: Array
    weights: Array
    steps: Array
    alone: bool = False

    def places(self) -> Array:
        """Places of the trained tokens. The first token of all follows nothing, so it is none."""
        result = np.flatnonzero(self.weights)
        return result[result > 0]

    def groups(self) -> tuple[Array, Array]:
        """The steps that have a trained token, in order, and the number of the step of each."""
        steps, groups = np.unique(self.steps[self.places()], return_inverse=True)
        return steps, groups

    def key(self) -> str:
        """A name of the tokens and of what is trained of them, whichever trajectory has them."""
        _, groups = self.groups()
        return digest(
            b"".join(
                np.ascontiguousarray(values).tobytes()
                for values in (
                    np.array([len(self.ids)], np.int64),
                    self.ids.astype(np.int32),
                    self.weights.astype(np.float32),
                    groups.astype(np.int32),
                )
            )
        )


def answer_start(renderer: Renderer) -> tuple[int, ...]:
    """The tokens before an answer alone.

    These are what the chat template puts before an answer; without such words the token that begins
    a text, or ends one; else nothing, and then the first token of an answer does not count.
    """
    talk = [{"role": "user", "content": "a"}]
    tokenizer = renderer.tokenizer
    try:
        text = renderer.template.render(talk, None)
        asked = renderer.template.render(talk, None, prompt=True)
    except TemplateRefusalError:
        text = asked = ""
    if asked.startswith(text) and len(asked) > len(text):
        return tuple(map(int, renderer.encoder.encode(asked[len(text) :]).ids))
    for name in ("bos_token_id", "eos_token_id"):
        number = getattr(tokenizer, name, None)
        if isinstance(number, int):
            return (number,)
    return ()


def sequences_of(
    trajectory: Trajectory, renderer: Renderer, start: tuple[int, ...] | None
) -> tuple[list[AskedTokens], Counter[str]]:
    """The sequences of a trajectory.

    Args:
        trajectory: the trajectory, with the weights and texts that count.
        renderer: makes the rows of training.
        start: tokens before an answer alone; None: no answers alone.

    Returns:
        The sequences, and reason -> number of the steps with a weight that are in none.
    """
    rendered = renderer.trajectory(trajectory)
    sequences: list[AskedTokens] = []
    for row in rendered.rows:
        whole = AskedTokens(row.input_ids, row.loss_weights, row.step_index)
        sequences.append(whole)
        if start is not None:
            sequences += _answers(whole, start)
    return sequences, rendered.lost


def _answers(whole: AskedTokens, start: tuple[int, ...]) -> Iterator[AskedTokens]:
    """The answers of a row, each stretch of trained tokens of one step alone."""
    trained = whole.places()
    steps = whole.steps[trained]
    breaks = np.flatnonzero((np.diff(trained) > 1) | (np.diff(steps) != 0)) + 1
    before = np.array(start, np.int32)
    for places in np.split(trained, breaks):
        if len(places):
            nothing = np.zeros(len(before), np.float32)
            yield AskedTokens(
                np.concatenate([before, whole.ids[places]]),
                np.concatenate([nothing, np.ones(len(places), np.float32)]),
                np.concatenate([nothing.astype(np.int32) - 1, whole.steps[places]]),
                alone=True,
            )


def index_rows(
    seq: int, part: int, first: int, sequences: list[AskedTokens], lost: Counter[str]
) -> list[dict[str, Any]]:
    """The rows of `INDEX` of a trajectory.

    Args:
        seq: the trajectory.
        part: number of the file that its tokens are in.
        first: number of the row of its first sequence in it.
        sequences: its sequences.
        lost: reason -> number of the steps that are in none.
    """
    rows: list[dict[str, Any]] = [
        {
            "seq": seq,
            "part": part,
            "row": row,
            "alone": sequence.alone,
            "key": sequence.key(),
            "length": len(sequence.ids),
            "steps": sequence.groups()[0].tolist(),
            "lost": None,
        }
        for row, sequence in enumerate(sequences, first)
    ]
    empty: dict[str, Any] = dict.fromkeys(INDEX)
    rows.append({**empty, "seq": seq, "part": part, "lost": json.dumps(dict(sorted(lost.items())))})
    return rows


# ---- partitions of a pool -----------------------------------------------------------------------


@dataclass(frozen=True)
class RenderPlan:
    """How workers render.

    Attributes:
        tokenizer: file of the tokenizer, by `save_lean`.
        options: `RenderOptions` as JSON.
        start: tokens before an answer alone; None: no answers alone.
        folder: where the tokens go, a file a partition.
        weights: file of the weights of earlier ops; empty without.
        edits: file of the texts that earlier ops repaired; empty without.
    """

    tokenizer: str
    options: str
    start: tuple[int, ...] | None
    folder: str
    weights: str = ""
    edits: str = ""

    def file(self, part: int) -> Path:
        """The file with the tokens of a partition."""
        return Path(self.folder, f"tokens-{part:05d}.arrow")


def render_partition(partition: Partition, plan: RenderPlan) -> pl.DataFrame:
    """Write the sequences of a partition into its file, and return their rows of `INDEX`."""
    renderer = _renderer(plan.tokenizer, plan.options)
    renderer.forget()
    weights = _by_step(plan.weights, "loss_weight", partition)
    edits = _by_step(plan.edits, "text", partition)
    rows: list[dict[str, Any]] = []
    count = 0
    with (
        placing(plan.file(partition.index)) as staged,
        pa.OSFile(str(staged), "wb") as file,
        pa.ipc.new_file(file, _TOKENS) as writer,
    ):
        for seq, trajectory in partition.trajectories():
            _change(seq, trajectory, weights, edits)
            sequences, lost = sequences_of(trajectory, renderer, plan.start)
            rows += index_rows(seq, partition.index, count, sequences, lost)
            count += len(sequences)
            for sequence in sequences:
                arrays = [
                    pa.array([getattr(sequence, field.name)], field.type) for field in _TOKENS
                ]
                writer.write_batch(pa.record_batch(arrays, schema=_TOKENS))
    return pl.DataFrame(rows, schema=INDEX)


def _change(
    seq: int,
    trajectory: Trajectory,
    weights: dict[tuple[int, int], Any],
    edits: dict[tuple[int, int], Any],
) -> None:
    """Put in weights and texts of earlier ops, as the store that is written will have them."""
    for place, step in enumerate(trajectory.steps):
        key = (seq, place if step.step is None else step.step)
        if weights.get(key) is not None:
            step.loss_weight = weights[key]
        if edits.get(key) is not None:
            # The others describe the text that is replaced.
            step.text, step.prose, step.content = edits[key], None, None


def _by_step(path: str, column: str, partition: Partition) -> dict[tuple[int, int], Any]:
    if not path:
        return {}
    here = pl.col("seq").is_between(partition.first, partition.last)
    frame = pl.scan_parquet(path, glob=False).filter(here).select("seq", "step", column).collect()
    return {(seq, step): value for seq, step, value in frame.iter_rows()}


@functools.lru_cache(1)
def _renderer(tokenizer: str, options: str) -> Renderer:
    worker_tokenizer = load_lean(Path(tokenizer))
    read = RenderOptions.model_validate_json(options)
    return Renderer(worker_tokenizer, read, worker_tokenizer.stops)


class TokenFiles:
    """The sequences that workers wrote, mapped into memory.

    Args:
        plan: how they were rendered.
        parts: numbers of the files.
    """

    def __init__(self, plan: RenderPlan, parts: list[int]) -> None:
        self._files = {
            part: pa.ipc.open_file(pa.memory_map(str(plan.file(part)))) for part in parts
        }

    def sequence(self, part: int, row: int) -> AskedTokens:
        """One sequence."""
        batch = self._files[part].get_batch(row)
        ids, weights, steps = (
            batch.column(field.name)[0].values.to_numpy(zero_copy_only=False) for field in _TOKENS
        )
        return AskedTokens(ids, weights, steps)
