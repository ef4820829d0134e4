"""What a training method is: the page that each of SFT, DPO, KTO and GRPO implements.

A method first prepares its rows, in one process and without the model, and writes them under a
folder. Then each process of the training opens that folder and builds TRL's trainer. What all
methods share (checking the configuration, printing the plan, launching, resuming, the record of
the run) is in `adp.trainers.run`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from adp.core.progress import Progress
from adp.core.registry import Registry
from adp.trainers.config import TrainConfig


@dataclass
class TrainingPlan:
    """What a training is about to do.

    Attributes:
        rows: rows to train on; of DPO pairs, of GRPO prompts.
        eval_rows: rows to measure the loss on.
        tokens: tokens in the rows, context included.
        trained: tokens under the loss.
        sequences: rows that reach the trainer; fewer than ``rows`` when they are packed.
        dropped: reason -> number of trained steps, or of pairs, that are in no row.
        notes: what is done differently from the store -> how often.
        longest: tokens of the longest row.
        steps: optimiser steps to come.
        facts: what the record says about the rows: hashes of store, tokenizer and template, ...
        precision: the number format, as `adp.trainers.precision.Precision` writes it.
        warnings: what may go wrong, one sentence each.
    """

    rows: int = 0
    eval_rows: int = 0
    tokens: int = 0
    trained: int = 0
    sequences: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    notes: Counter[str] = field(default_factory=Counter)
    longest: int = 0
    steps: int = 0
    facts: dict[str, Any] = field(default_factory=dict)
    precision: dict[str, Any] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    def plain(self) -> dict[str, Any]:
        """As JSON has it."""
        result = dict(vars(self))
        for name in ("dropped", "notes"):
            result[name] = dict(sorted(result[name].items()))
        return result

    @classmethod
    def from_plain(cls, plain: dict[str, Any]) -> TrainingPlan:
        """The other way round."""
        counters = {name: Counter(plain[name]) for name in ("dropped", "notes")}
        return cls(**{**plain, **counters})


class TrainingMethod(Protocol):
    """One method. It keeps nothing: what it prepares lies in the folder."""

    name: str
    """Name, as in ``adp train NAME``."""

    def prepare(self, config: TrainConfig, folder: Path, progress: Progress) -> TrainingPlan:
        """Write the rows under a folder; no model is loaded, and no process was started.

        Args:
            config: checked, with all paths as they can be opened.
            folder: an empty folder.
            progress: what is told about it.

        Returns:
            The plan; the caller fills in ``steps``.

        Raises:
            EmptyResultError: nothing is left to train on.
        """
        ...

    def trainer(
        self, config: TrainConfig, folder: Path, args: dict[str, Any], callbacks: Sequence[Any]
    ) -> Any:
        """Build TRL's trainer, ready to ``train()``. Every process calls it.

        Args:
            config: as before.
            folder: what `prepare` wrote; ``base/`` in it holds the model ``tiny``.
            args: arguments that all of TRL's configurations take; the method adds its own. The
                configuration has to be made before the model is loaded, for ZeRO-3.
            callbacks: of transformers.
        """
        ...


METHODS = Registry[TrainingMethod](
    "training method",
    "adp.training_methods",
    {
        "sft": "adp.trainers.sft:METHOD",
        "dpo": "adp.trainers.dpo:METHOD",
        "kto": "adp.trainers.kto:METHOD",
        "grpo": "adp.trainers.grpo:METHOD",
        "reward": "adp.trainers.reward_model:METHOD",
        "distill": "adp.trainers.distill:METHOD",
    },
)
"""The methods by name, each imported when it is asked for."""
