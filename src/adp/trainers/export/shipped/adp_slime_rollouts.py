"""A rollout function for slime that gives finished rollouts: ``--rollout-function-path``."""

import json
import os
from pathlib import Path
from typing import Any

from slime.utils.types import Sample


def load_groups(path: str) -> list[list[Sample]]:
    """The samples of a file, attempts at one task together, in the order of the file."""
    groups: dict[int, list[Sample]] = {}
    with Path(path).open(encoding="utf-8") as file:
        for line in file:
            sample = Sample.from_dict(json.loads(line))
            groups.setdefault(sample.group_index, []).append(sample)
    return list(groups.values())


def generate_rollout(args: Any, rollout_id: int, data_source: Any, evaluation: bool = False) -> Any:
    """The groups of one rollout, of ``args.n_samples_per_prompt`` samples each.

    Args:
        args: of slime: ``rollout_batch_size`` groups are given.
        rollout_id: which rollout; it decides where in the file its groups begin.
        data_source: not used.
        evaluation: not possible: finished rollouts do not depend on the model.
    """
    if evaluation:
        raise ValueError("finished rollouts cannot evaluate a model; leave --eval-interval out")
    size = args.n_samples_per_prompt
    full = [group[:size] for group in load_groups(os.environ["ADP_ROLLOUTS"]) if len(group) >= size]
    if not full:
        raise ValueError(f"no group has {size} samples; lower --n-samples-per-prompt")
    first = rollout_id * args.rollout_batch_size
    return [full[(first + number) % len(full)] for number in range(args.rollout_batch_size)]
