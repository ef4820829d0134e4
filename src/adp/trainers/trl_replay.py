"""TRL's trainer in the order of a replay plan.

Only `adp.trainers.sft` imports this module, inside a function.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch  # noqa: TID253 - this module extends torch's sampler

from adp.trainers.replay import ReplayPlan


class ReplaySampler(torch.utils.data.Sampler[int]):  # type: ignore[misc]
    """The rows of an epoch, step after step.

    Args:
        plan: the order.
        epoch: says which epoch begins. It is asked, not told: what accelerate wraps a sampler in
            passes no epoch on to it in a training of several processes that is resumed.
    """

    def __init__(self, plan: ReplayPlan, epoch: Callable[[], int]) -> None:
        self._plan, self._epoch = plan, epoch

    def __iter__(self) -> Iterator[int]:
        for rows in self._plan.epoch(self._epoch()):
            yield from rows

    def __len__(self) -> int:
        return self._plan.length()


class ReplayOrder:
    """A trainer of TRL whose rows come as a plan says."""

    plan: ReplayPlan
    state: Any

    def _get_train_sampler(self, dataset: Any = None) -> ReplaySampler:
        return ReplaySampler(self.plan, lambda: self.state.global_step // self.plan.steps)
