"""Replay of earlier samples while new ones come in, against forgetting."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

from adp.core.reservoir import reservoir
from adp_schema.errors import UsageError


class OnlineContinualLearner:
    """A buffer of earlier samples, some of which join each batch.

    The buffer is a uniform sample of all that was offered: Vitter's algorithm R, as the op
    ``replay`` keeps it.

    Args:
        buffer_size: most samples that it holds.
        replay_ratio: replayed samples for each new one.
        selection_strategy: ``reservoir``; other ways to keep a buffer are options of ``replay``.
        seed: seed of all that is drawn.

    Raises:
        UsageError: the strategy is another one, or a number is out of range.
    """

    def __init__(
        self,
        buffer_size: int = 2048,
        replay_ratio: float = 0.25,
        selection_strategy: str = "reservoir",
        *,
        seed: int = 17,
    ) -> None:
        if selection_strategy != "reservoir":
            raise UsageError(
                f"selection_strategy {selection_strategy!r} is not kept in memory; use the op "
                "replay with policy: coreset and compat: sage"
            )
        if buffer_size < 1 or not 0 <= replay_ratio < float("inf"):
            raise UsageError("buffer_size is at least 1, and replay_ratio at least 0")
        self.buffer_size, self.replay_ratio = buffer_size, replay_ratio
        self._seed = seed
        self._random = random.Random(seed)
        self._kept: list[tuple[int, Any]] = []
        self._seen = 0

    def mix_with_replay(self, batch: Any) -> Any:
        """The batch with ``min(max(1, int(n * ratio)), held)`` samples of the buffer behind it.

        Args:
            batch: a list of samples, or a mapping of columns (lists, or tensors of one shape but
                for their first axis) as a data loader gives it.

        Returns:
            The same kind of batch.

        Raises:
            UsageError: the columns of a batch differ in length, or from those of the buffer.
        """
        new = _rows(batch)
        wanted = max(1, int(len(new) * self.replay_ratio)) if self.replay_ratio and new else 0
        return _like(batch, new + self.get_replay_samples(wanted))

    def update_buffer(self, batch: Any) -> None:
        """Offer the samples of a batch to the buffer."""
        new = list(enumerate(_rows(batch), self._seen + 1))
        rows = dict(self._kept) | dict(new)
        slots = reservoir(
            [(number, str(number)) for number, _ in self._kept],
            [(number, str(number)) for number, _ in new],
            self._seen,
            self.buffer_size,
            self._seed,
        )
        self._kept = [(number, rows[number]) for number in slots]
        self._seen += len(new)

    def get_replay_samples(self, n: int) -> list[Any]:
        """Draw samples of the buffer; all of it when it holds fewer."""
        held = self.buffer_snapshot()
        return self._random.sample(held, min(n, len(held)))

    def buffer_snapshot(self) -> list[Any]:
        """What the buffer holds, by slot."""
        return [row for _, row in self._kept]

    def clear_buffer(self) -> None:
        """Forget all samples, and how many there were."""
        self._kept, self._seen = [], 0


def _rows(batch: Any) -> list[Any]:
    if not isinstance(batch, Mapping):
        return list(batch)
    lengths = {len(column) for column in batch.values()}
    if len(lengths) > 1:
        raise UsageError(f"the columns of the batch have {sorted(lengths)} rows; give all as many")
    return [
        {name: column[place] for name, column in batch.items()}
        for place in range(max(lengths, default=0))
    ]


def _like(batch: Any, rows: Sequence[Any]) -> Any:
    if not isinstance(batch, Mapping):
        return list(rows)
    try:
        return {
            name: _column(column, [row[name] for row in rows]) for name, column in batch.items()
        }
    except (KeyError, TypeError, RuntimeError) as error:
        raise UsageError(
            f"the samples of the buffer do not fit the batch: {error}; pad them alike"
        ) from error


def _column(like: Any, values: list[Any]) -> Any:
    if isinstance(like, list | tuple):
        return type(like)(values)
    import torch

    return torch.stack(values)
