"""How many tokens under the loss trainings have seen."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from adp.trainers.record import RECORD
from adp.workflows.compare.comparison import PlannedRun


def trained_tokens(root: Path, run: PlannedRun) -> int | None:
    """Tokens under the loss that a run has seen, in all passes over its rows.

    Exact for whole passes; of a part of a pass it is the share of the rows.

    Args:
        root: folder of the comparison.
        run: a run.

    Returns:
        The tokens; None when a training is not done, or its method does not count them.
    """
    total = 0
    for key in run.trains:
        record = train_record(root, key)
        tokens = None if record is None else _tokens(record)
        if tokens is None:
            return None
        total += tokens
    return total


def train_record(root: Path, key: str) -> dict[str, Any] | None:
    """The record of a training; None when it is not done.

    Args:
        root: folder of the comparison.
        key: key of its stage.
    """
    path = root / key.replace(".", "/", 1) / RECORD
    if not path.exists():
        return None
    record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return record


def _tokens(record: Mapping[str, Any]) -> int | None:
    plan, training = record["plan"], record["config"]["training"]
    trained: int | None = plan.get("trained")
    if not trained or not plan.get("sequences"):
        return None
    passes: float = training["num_train_epochs"]
    if training["max_steps"] > 0:
        rows = training["per_device_train_batch_size"] * training["gradient_accumulation_steps"]
        seen = record["result"]["steps"] * rows * record["config"]["launch"]["processes"]
        passes = seen / plan["sequences"]
    return round(trained * passes)
