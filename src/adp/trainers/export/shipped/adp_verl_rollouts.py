"""Rollouts of a Parquet file as a ``DataProto`` of verl, padded as its agent loop pads them."""

from typing import Any

import numpy as np
import pyarrow.parquet as pq
import torch
from verl import DataProto


def load_rollouts(
    path: str,
    pad_token_id: int,
    prompt_length: int | None = None,
    response_length: int | None = None,
) -> DataProto:
    """Read the rollouts.

    Args:
        path: the Parquet file.
        pad_token_id: id to pad with.
        prompt_length: width of the prompts; None takes the longest one.
        response_length: width of the responses; None takes the longest one.

    Raises:
        ValueError: a prompt or a response is longer than the width.
    """
    rows = pq.read_table(path).to_pylist()
    before = _width([row["prompts"] for row in rows], prompt_length, "prompt")
    after = _width([row["responses"] for row in rows], response_length, "response")
    prompts = _padded([row["prompts"] for row in rows], before, pad_token_id, left=True)
    responses = _padded([row["responses"] for row in rows], after, pad_token_id)
    there = [
        _padded([[1] * len(row["prompts"]) for row in rows], before, 0, left=True),
        _padded([[1] * len(row["responses"]) for row in rows], after, 0),
    ]
    attention = torch.cat(there, dim=1)
    tensors = {
        "prompts": prompts,
        "responses": responses,
        "response_mask": _padded([row["response_mask"] for row in rows], after, 0),
        "input_ids": torch.cat([prompts, responses], dim=1),
        "attention_mask": attention,
        "position_ids": (attention.cumsum(dim=1) - 1).clamp(min=0),
    }
    if all(row["rollout_log_probs"] is not None for row in rows):
        values = [row["rollout_log_probs"] for row in rows]
        tensors["rollout_log_probs"] = _padded(values, after, 0.0)
    if all(row["reward"] is not None for row in rows):
        values = [[0.0] * (len(row["responses"]) - 1) + [row["reward"]] for row in rows]
        tensors["rm_scores"] = _padded(values, after, 0.0)
    if all(row["advantage"] is not None for row in rows):
        kept = torch.tensor([row["advantage"] for row in rows], dtype=torch.float32)
        tensors["adp_advantages"] = kept[:, None] * tensors["response_mask"]
    names = ("uid", "data_source", "reward_model", "extra_info")
    arrays = {name: _objects([row[name] for row in rows]) for name in names}
    arrays["__num_turns__"] = np.array([row["num_turns"] for row in rows], dtype=np.int32)
    return DataProto.from_dict(tensors=tensors, non_tensors=arrays)


def _width(rows: list[list[int]], asked: int | None, what: str) -> int:
    longest = max(map(len, rows), default=0)
    if asked is not None and longest > asked:
        raise ValueError(f"a {what} has {longest} tokens; set {what}_length to that at least")
    return longest if asked is None else asked


def _padded(
    rows: list[list[Any]], width: int, value: int | float, left: bool = False
) -> torch.Tensor:
    kind = torch.float32 if type(value) is float else torch.long
    result = torch.full((len(rows), width), value, dtype=kind)
    for number, row in enumerate(rows):
        place = slice(width - len(row), width) if left else slice(0, len(row))
        result[number, place] = torch.tensor(row, dtype=kind)
    return result


def _objects(values: list[Any]) -> Any:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array
