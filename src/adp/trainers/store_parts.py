"""What each trajectory of a store is for: training, measuring the loss, or neither."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from adp.trainers.config import TrainConfig
from adp.trainers.held_out import held_out
from adp_schema.store import Store

Part = Literal["train", "eval"]


class StoreParts:
    """The parts of a store.

    Args:
        splits: trajectory -> its split.
        train: splits that are trained on; None: all.
        measured: splits that are measured; None: none.
        held: trajectories that are measured, whatever their split is.
    """

    def __init__(
        self,
        splits: dict[str, str | None],
        train: Sequence[str] | None,
        measured: Sequence[str] | None,
        held: frozenset[str] = frozenset(),
    ) -> None:
        self._splits = splits
        self._train = train
        self._measured = measured
        self._held = held

    @classmethod
    def of_run(cls, store: Store, config: TrainConfig) -> StoreParts:
        """The parts of the store that a run trains on."""
        data = config.data
        held = held_out(store, data.eval_share) if data.eval_share else frozenset()
        eval_splits = data.eval_splits if data.eval_store is None else None
        return cls(_splits(store), data.splits, eval_splits, held)

    @classmethod
    def to_measure(cls, store: Store, splits: Sequence[str] | None) -> StoreParts:
        """The parts of a store that is only measured.

        Args:
            store: the store.
            splits: those that are; None: all.
        """
        result = _splits(store)
        every = {str(split) for split in result.values()}
        named = {name: str(split) for name, split in result.items()}
        return cls({**named}, (), splits if splits is not None else tuple(every))

    def of(self, *trajectories: str) -> Part | None:
        """What a row is for that comes from some trajectories; None: it is in no part.

        Args:
            trajectories: their ids. If one of them is measured, none of them is trained on.
        """
        items = [self._single_part(name) for name in trajectories]
        if None in items:
            return None
        return "eval" if "eval" in items else "train"

    def _single_part(self, name: str) -> Part | None:
        split = self._splits.get(name)
        if self._measured is not None and split in self._measured:
            return "eval"
        if self._train is not None and split not in self._train:
            return None
        return "eval" if name in self._held else "train"


def _splits(store: Store) -> dict[str, str | None]:
    rows = store.scan("trajectories").select("trajectory_id", "split").collect()
    return dict(zip(rows["trajectory_id"], rows["split"], strict=True))
