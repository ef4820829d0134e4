"""Finished rollouts as the training samples of prime-rl, whatever fields its type has."""

import json
from importlib import import_module
from pathlib import Path
from statistics import fmean
from typing import Any


def load_samples(path: str, types: Any = None) -> list[Any]:
    """The samples of a file.

    Args:
        path: the file.
        types: module with ``TrainingSample``; None imports prime-rl's own.
    """
    if types is None:
        types = import_module("prime_rl.transport.types")
    with Path(path).open(encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    rewards: dict[str, dict[str, float]] = {}
    for row in rows:
        if row["reward"] is not None:
            rewards.setdefault(row["group"], {})[row["trajectory_id"]] = row["reward"]
    means = {group: fmean(values.values()) for group, values in rewards.items()}
    return [_sample(row, means.get(row["group"]), types) for row in rows]


def _sample(row: dict[str, Any], mean: float | None, types: Any) -> Any:
    advantage = row["advantage"]
    if advantage is None and row["reward"] is not None and mean is not None:
        advantage = row["reward"] - mean
    first = row["prompt_length"]
    per_token = [(advantage or 0.0) * written for written in row["mask"]]
    known = {
        "token_ids": row["token_ids"],
        "mask": row["mask"],
        "logprobs": row["logprobs"],
        "temperatures": row["temperatures"],
        "env_name": row["env_name"],
        "reward": row["reward"],
        "advantage": advantage,
        "prompt_ids": row["token_ids"][:first],
        "prompt_mask": row["mask"][:first],
        "completion_ids": row["token_ids"][first:],
        "completion_mask": row["mask"][first:],
        "completion_logprobs": row["logprobs"][first:],
        "completion_temperatures": row["temperatures"][first:],
    }
    fields = types.TrainingSample.__struct_fields__
    if "advantages" in fields:
        channel = getattr(types, "TrainingAdvantage", None)
        known["advantages"] = (
            per_token if channel is None else [channel("rl", per_token, row["mask"])]
        )
    return types.TrainingSample(**{name: known[name] for name in fields if name in known})
