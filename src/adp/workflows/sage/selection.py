"""Choosing samples to train on: the ops ``score`` and ``coreset``, on samples in memory."""

from __future__ import annotations

from typing import Literal, TypeVar

_Sample = TypeVar("_Sample")
Strategy = Literal["loss_topk", "diversity", "hybrid", "random"]


class CoresetSelector:
    """Keeps a part of samples that stands for the whole.

    Args:
        strategy: loss_topk keeps what has the highest loss; diversity what is least alike; hybrid
            a share by loss and the rest by diversity; random draws.
        target_size: how many are kept.
        loss_ratio: of hybrid, the share by loss.
        seed: of random.
    """

    def __init__(
        self,
        strategy: Strategy = "hybrid",
        target_size: int = 1000,
        loss_ratio: float = 0.6,
        *,
        seed: int = 13,
    ) -> None:
        self.strategy, self.target_size = strategy, target_size
        self.loss_ratio, self.seed = loss_ratio, seed
