"""Finished rollouts as datums of tinker."""

import json
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import tinker


def load_datums(path: str, advantages: str = "kept", mask: bool = False) -> list[tinker.Datum]:
    """The datums of a file, in its order.

    Args:
        path: the file.
        advantages: ``kept`` takes those that were stored, where there are any; ``group`` takes the
            reward less the mean reward of the attempts at the same task.
        mask: whether the datums have a mask besides.

    Raises:
        ValueError: a rollout has neither an advantage nor a reward.
    """
    with Path(path).open(encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    rewards: dict[str, dict[str, float]] = {}
    for row in rows:
        if row["reward"] is not None:
            rewards.setdefault(row["group"], {})[row["trajectory_id"]] = row["reward"]
    means = {group: fmean(values.values()) for group, values in rewards.items()}
    return [_datum(row, _advantage(row, means, advantages), mask) for row in rows]


def _advantage(row: dict[str, Any], means: dict[str, float], which: str) -> float:
    if which == "kept" and row["advantage"] is not None:
        return float(row["advantage"])
    if row["reward"] is None:
        raise ValueError(f"{row['trajectory_id']} has neither an advantage nor a reward")
    return float(row["reward"]) - means[row["group"]]


def _datum(row: dict[str, Any], advantage: float, with_mask: bool) -> tinker.Datum:
    mask = np.asarray(row["mask"], np.float32)
    inputs = {
        "target_tokens": np.asarray(row["target_tokens"], np.int64),
        "logprobs": np.asarray(row["logprobs"], np.float32),
        "advantages": mask * np.float32(advantage),
    }
    if with_mask:
        inputs["mask"] = mask
    return tinker.Datum(
        model_input=tinker.ModelInput.from_ints(row["model_input"]), loss_fn_inputs=inputs
    )
