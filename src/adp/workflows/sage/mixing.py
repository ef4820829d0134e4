"""Mixing tasks as AgentTuning does: the op ``mix`` with ``compat: sage``, on samples in memory.

Source: Zeng et al. 2023, AgentTuning; the arithmetic is that of SAGE's ``MultiTaskMixer``.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from adp.curation.ops.mix.options import SAGE_WEIGHTS, Mix
from adp.curation.ops.mix.sage import sage_counts


@dataclass
class TaskSample:
    """A sample with its task.

    Attributes:
        task_type: the task.
        data: the sample.
        source: where it comes from.
    """

    task_type: str
    data: dict[str, Any] = field(default_factory=dict)
    source: str | None = None


@dataclass
class MixerConfig:
    """How tasks are mixed.

    Attributes:
        task_weights: task -> weight; they are normalised.
        strategy: weighted, balanced or curriculum.
        shuffle: whether the order is drawn; of a curriculum, within each stage.
        seed: seed of all that is drawn.
        max_total_samples: most samples; None takes as many as there are.
    """

    task_weights: dict[str, float] = field(default_factory=lambda: dict(SAGE_WEIGHTS))
    strategy: Literal["weighted", "balanced", "curriculum"] = "weighted"
    shuffle: bool = True
    seed: int = 42
    max_total_samples: int | None = None


class MultiTaskMixer:
    """Mixes samples of several tasks.

    Args:
        config: the weights and the strategy.
    """

    def __init__(self, config: MixerConfig | None = None) -> None:
        self.config = config or MixerConfig()

    def mix(
        self, task_datasets: Mapping[str, Sequence[Any]], total_size: int | None = None
    ) -> list[TaskSample]:
        """Draw samples of each task, without replacement.

        Args:
            task_datasets: task -> its samples: `TaskSample`, or data.
            total_size: how many in all; None takes that of the config.

        Raises:
            ValidationError: the weights are wrong.
        """
        config = self.config
        weights = config.task_weights if config.strategy == "weighted" else {}
        options = Mix.model_validate(
            {
                "method": config.strategy,
                "weights": weights,
                "total": total_size or config.max_total_samples,
                "compat": "sage",
            }
        )
        drawn = random.Random(config.seed)
        mixed: list[TaskSample] = []
        for counts in sage_counts(options, {n: len(items) for n, items in task_datasets.items()}):
            stage = [
                _task_sample(name, item)
                for name, count in counts.items()
                for item in drawn.sample(list(task_datasets[name]), count)
            ]
            if config.shuffle:
                drawn.shuffle(stage)
            mixed += stage
        return mixed

    def set_weights(self, weights: Mapping[str, float]) -> None:
        """Take other weights."""
        self.config.task_weights = dict(weights)

    def get_task_distribution(self, samples: Sequence[TaskSample]) -> dict[str, int]:
        """Task -> number of samples."""
        return dict(Counter(sample.task_type for sample in samples))


def _task_sample(name: str, item: Any) -> TaskSample:
    return item if isinstance(item, TaskSample) else TaskSample(name, item)
