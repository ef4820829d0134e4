"""The order of prompts in TRL's trainers that generate, which a training that goes on keeps.

TRL's sampler draws a new order for each epoch from random numbers that begin with the training. A
training that is resumed in its third epoch would take the order of the first one again.
Only the modules `adp.trainers.trl_*` import this one.
"""

from __future__ import annotations

from typing import Any

import torch  # noqa: TID253 - this module extends TRL's sampler
from trl.trainer.utils import RepeatSampler  # noqa: TID253


class EpochSampler(RepeatSampler):  # type: ignore[misc]
    """TRL's sampler, whose order follows from its seed and the epoch."""

    def set_epoch(self, epoch: int) -> None:
        """Go to an epoch; its order is the one that it has in a training without a stop.

        Args:
            epoch: number of the epoch, from 0.
        """
        if not self.shuffle:
            return
        self.generator.manual_seed(self.seed)
        for _ in range(epoch):
            torch.randperm(self.num_samples, generator=self.generator)


class KeptOrder:
    """A trainer of TRL that generates, and whose order of prompts survives a stop."""

    sampler: type[EpochSampler] = EpochSampler
    """The sampler that takes the place of TRL's."""

    def _get_train_sampler(self, dataset: Any = None) -> Any:
        made = super()._get_train_sampler(dataset)  # type: ignore[misc]
        return self.sampler(
            data_source=made.data_source,
            mini_repeat_count=made.mini_repeat_count,
            batch_size=made.batch_size,
            repeat_count=made.repeat_count,
            shuffle=made.shuffle,
            seed=made.seed,
        )
