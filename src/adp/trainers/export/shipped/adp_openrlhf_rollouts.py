"""Finished rollouts as experiences of OpenRLHF."""

import json
from pathlib import Path
from typing import Any

import torch
from openrlhf.trainer.ppo_utils.experience import Experience


def load_experiences(path: str) -> list[Experience]:
    """One experience a row, as OpenRLHF's own generator of samples makes it.

    Args:
        path: the file.
    """
    groups: dict[str, int] = {}
    with Path(path).open(encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    return [_experience(row, groups.setdefault(row["group"], len(groups))) for row in rows]


def _experience(row: dict[str, Any], group: int) -> Experience:
    sequences = torch.tensor(row["observation_tokens"], dtype=torch.long)
    attention = torch.ones_like(sequences)
    action = torch.zeros_like(sequences)
    for start, end in row["action_ranges"]:
        action[start:end] = 1
    action = action[1:]
    written = torch.where(action)[0]
    length = int(written[-1] - written[0]) + 1 if len(written) else 0
    logprobs = row["rollout_log_probs"]
    info = {name: torch.tensor([value]) for name, value in row["extra_logs"].items()}
    if row["reward"] is not None:
        info["reward"] = torch.tensor([row["reward"]])
    return Experience(
        index=[group],
        sequences=sequences[None],
        attention_mask=attention[None],
        action_mask=action[None],
        rollout_log_probs=None if logprobs is None else torch.tensor(logprobs[1:])[None],
        prompts=[row["prompt"]],
        labels=[row["label"]],
        images=[None],
        mm_train_inputs=[None],
        rewards=None if row["reward"] is None else torch.tensor([row["reward"]]),
        scores=None if row["scores"] is None else torch.tensor([row["scores"]]),
        response_length=torch.tensor([length]),
        truncated=torch.tensor([row["truncated"]]),
        total_length=attention.float().sum()[None],
        info=info,
    )
