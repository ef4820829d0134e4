"""The training loss of trajectories by a model, for Python."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import polars as pl

from adp.core.progress import Progress, Silent
from adp.curation.training_loss.figures import figures
from adp.curation.training_loss.model_sums import SequencePlace, model_sums
from adp.curation.training_loss.sequences import (
    INDEX,
    AskedTokens,
    answer_start,
    index_rows,
    sequences_of,
)
from adp.curation.training_loss.settings import ScoreSettings, renderer_of
from adp_schema.model import Trajectory
from adp_schema.store import Store


@dataclass(frozen=True)
class TrajectoryLoss:
    """What a model says of a trajectory; the numbers are those of the op `score`.

    Attributes:
        trajectory_id: its id.
        loss: the training loss, a token; None when it cannot be had.
        perplexity: exp of the mean loss of the trained tokens, without weights.
        ifd: Instruction-Following Difficulty; None when it was not asked for.
        trained_tokens: tokens that the loss is the mean of.
        row_tokens: tokens of its rows.
        steps: step -> its training loss, a token.
        reason: why there is no loss; empty when there is one.
    """

    trajectory_id: str | None
    loss: float | None
    perplexity: float | None
    ifd: float | None
    trained_tokens: int
    row_tokens: int
    steps: dict[int, float | None]
    reason: str = ""


def trajectory_losses(
    source: Store | Iterable[Trajectory],
    model: str | ScoreSettings,
    *,
    progress: Progress | None = None,
    **settings: Any,
) -> list[TrajectoryLoss]:
    """The training loss of trajectories by a model.

        losses = trajectory_losses(Store.open("runs"), "tiny", render={"max_length": 4096})

    Args:
        source: a store, of which the main lines are taken, or trajectories. Their tokens are in
            memory at once; for more than fit there, use the op `score`.
        model: a folder, a name on the Hub, or tiny; or all settings.
        progress: told how far it is, in tokens.
        **settings: fields of `ScoreSettings`, when a name is given.

    Returns:
        One entry a trajectory, in order.

    Raises:
        UsageError: there is no such model.
        MissingExtraError: the extra train is not installed.
    """
    asked = model
    if isinstance(asked, str):
        asked = ScoreSettings.model_validate({"model": asked, "ifd": False, **settings})
    renderer = renderer_of(asked)
    start = answer_start(renderer) if asked.ifd else None
    names: list[str | None] = []
    rows: list[dict[str, Any]] = []
    sequences: list[AskedTokens] = []
    for number, trajectory in enumerate(_main_lines(source)):
        parts, lost = sequences_of(trajectory, renderer, start)
        names.append(trajectory.trajectory_id)
        rows += index_rows(number, 0, len(sequences), parts, lost)
        sequences += parts
    places = [
        SequencePlace(sequence.key(), len(sequence.ids), lambda item=sequence: item)  # type: ignore[misc]
        for sequence in sequences
        if len(sequence.places())
    ]
    sums, _ = model_sums(places, asked.which, asked.batch_tokens, progress or Silent())
    return _losses(names, *figures(pl.DataFrame(rows, schema=INDEX), sums, ifd=asked.ifd))


def _main_lines(source: Store | Iterable[Trajectory]) -> Iterator[Trajectory]:
    if not isinstance(source, Store):
        yield from source
        return
    for trajectory in source:
        if trajectory.parent_id is None:
            yield trajectory


def _losses(
    names: list[str | None], columns: pl.DataFrame, steps: pl.DataFrame, events: pl.DataFrame
) -> list[TrajectoryLoss]:
    by_step: dict[int, dict[int, float | None]] = {}
    for seq, step, loss in steps.select("seq", "step", "loss").iter_rows():
        by_step.setdefault(seq, {})[step] = loss
    bad = events.filter(pl.col("verdict") == "not_scored")
    reasons = dict(bad.select("seq", "reason").iter_rows())
    return [
        TrajectoryLoss(
            trajectory_id=names[row["seq"]],
            loss=row["loss"],
            perplexity=row["perplexity"],
            ifd=row.get("ifd"),
            trained_tokens=row["trained_tokens"],
            row_tokens=row["row_tokens"],
            steps=by_step.get(row["seq"], {}),
            reason=reasons.get(row["seq"], ""),
        )
        for row in columns.iter_rows(named=True)
    ]
