"""What a running training tells: a line of ``metrics.jsonl`` for each log, and its progress."""

from __future__ import annotations

import json
import math
import time
from pathlib import Path
from typing import Any

from transformers import TrainerCallback  # noqa: TID253 - only imported by a run that has loaded it

from adp.core.progress import Progress
from adp_schema.errors import TrainingError

FILE = "metrics.jsonl"

_CLOCK = ("runtime", "per_second", "step_time", "total_flos", "num_tokens")
"""Endings of what depends on the clock, or is counted from the last start."""


def kept(entry: dict[str, Any]) -> dict[str, Any]:
    """A line of the log without what is different each time."""
    return {name: value for name, value in entry.items() if not name.endswith(_CLOCK)}


def _pace(state: Any, first: int, began: float) -> str:
    """Where a training is: step, loss, reward, and how fast it goes."""
    words = [f"step {state.global_step:,} of {state.max_steps:,}"]
    for name in ("loss", "reward"):
        known = [entry[name] for entry in state.log_history if entry.get(name) is not None]
        words += [f"{name} {known[-1]:.4f}"] if known else []
    seconds = (time.monotonic() - began) / max(state.global_step - first, 1)
    words.append(f"{seconds:.1f} s/step" if seconds > 1 else f"{1 / seconds:.1f} steps/s")
    return ", ".join(words)


def _line(entry: dict[str, Any]) -> str:
    """A line of the file; sorted, for a checkpoint gives its entries back in another order."""
    return json.dumps(kept(entry), sort_keys=True) + "\n"


class Metrics(TrainerCallback):  # type: ignore[misc]
    """Writes the log. A resumed run writes what an uninterrupted one would have written.

    Args:
        out: folder of the run.
        progress: told about each step.
    """

    def __init__(self, out: Path, progress: Progress) -> None:
        self._path = out / FILE
        self._progress = progress
        self._first, self._began = 0, 0.0

    def on_train_begin(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        """Begin the file, with what a checkpoint knows of it."""
        if state.is_world_process_zero:
            lines = [_line(entry) for entry in state.log_history]
            self._path.write_text("".join(lines), encoding="utf-8")
            self._progress.total(state.max_steps)
            self._progress.advance(state.global_step)
            self._first, self._began = state.global_step, time.monotonic()
            self._progress.status("the first step")

    def on_step_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        """Tell the progress."""
        if state.is_world_process_zero:
            self._progress.status(_pace(state, self._first, self._began))
            self._progress.advance(1)

    def on_log(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        """Write a line.

        Raises:
            TrainingError: the loss is no number any more.
        """
        entry = state.log_history[-1]
        for name in ("loss", "eval_loss", "grad_norm"):
            value = entry.get(name)  # null: nothing in the batch could be measured
            if value is not None and not math.isfinite(value):
                raise TrainingError(
                    f"{name} is {entry[name]} at step {state.global_step}, so the training was "
                    "stopped; use a lower training.learning_rate, or bf16 in place of fp16"
                )
        if state.is_world_process_zero and "train_runtime" not in entry:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(_line(entry))
