"""``verl-rollouts``: finished rollouts for verl, as its ``DataProto`` holds them.

verl has no file format for rollouts: its agent loops fill a ``DataProto`` in memory. So the rows
are what goes into one, without padding, and ``adp_verl_rollouts.py`` beside them pads as verl's
agent loop does (prompts on the left, responses on the right) and makes the ``DataProto``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from adp.trainers.export.rollout_rows import Rollout
from adp.trainers.export.rollouts import RolloutExporter, RolloutOptions
from adp.trainers.export.shapes import json_text, plain
from adp.trainers.export.verl_rl import ground_truth
from adp.trainers.rollouts.sequence import TokenSequence
from adp_schema.ids import digest

_BODY = """\
## Load it

With verl 0.9.1, in this folder:

```python
from adp_verl_rollouts import load_rollouts

batch = load_rollouts("rollouts.parquet", pad_token_id=tokenizer.pad_token_id)
```

`batch` is a `verl.DataProto` as verl's agent loop makes it: `prompts` (padded on the left),
`responses` (on the right), `response_mask`, `input_ids`, `attention_mask`, `position_ids`,
`rollout_log_probs` and `rm_scores` (the reward, on the last token of the response); `uid`,
`data_source`, `reward_model`, `extra_info` and `__num_turns__` are no tensors. Rows of one `uid`
are attempts at one task, for GRPO:

```python
from verl.trainer.ppo.core_algos import compute_grpo_outcome_advantage

advantages, returns = compute_grpo_outcome_advantage(
    batch.batch["rm_scores"], batch.batch["response_mask"], batch.non_tensor_batch["uid"]
)
```

- `response_mask` is 1 for the tokens that the model wrote; results of tools between them are 0.
- `rollout_log_probs` is there when every row has log probabilities, `rm_scores` when every row has
  a reward, `adp_advantages` when a training kept an advantage with every row.
- `prompt_length` and `response_length` set the widths; a longer row is an error, never cut.
- A row whose `extra_info.rows` is more than 1 is a part of a rollout whose history was rewritten:
  each part has the reward of the whole.
"""


class VerlRollouts(RolloutExporter):
    """The exporter."""

    name = "verl-rollouts"
    title = "verl: finished rollouts (ids, mask, log probabilities, reward) for a DataProto"
    file = "rollouts.parquet"
    heading = "Rollouts for verl"
    body = _BODY
    code = "adp_verl_rollouts.py"

    def schema(self, options: RolloutOptions) -> Any:
        """Lists without padding; every struct has the same fields in all rows."""
        import pyarrow as pa

        text, integer, number = pa.string(), pa.int64(), pa.float64()
        info = [("split", text), ("index", integer), ("task_id", text), ("trajectory_id", text)]
        info += [("attempt", integer), ("row", integer), ("rows", integer), ("tool_calls", integer)]
        info += [("truncated", pa.bool_()), ("recorded", pa.bool_()), ("rewards", text)]
        return pa.schema(
            [
                ("uid", text),
                ("data_source", text),
                ("reward_model", pa.struct([("style", text), ("ground_truth", text)])),
                ("prompts", pa.list_(pa.int32())),
                ("responses", pa.list_(pa.int32())),
                ("response_mask", pa.list_(pa.int8())),
                ("rollout_log_probs", pa.list_(number)),
                ("reward", number),
                ("advantage", number),
                ("num_turns", integer),
                ("extra_info", pa.struct(info)),
            ]
        )

    def row(self, rollout: Rollout, number: int, row: TokenSequence) -> dict[str, Any]:
        """One row of tokens."""
        run, facts = rollout.trajectory, rollout.facts()
        truth = ground_truth(run.task, run, "auto")
        return {
            "uid": plain(rollout.group),
            "data_source": plain(rollout.dataset),
            "reward_model": {"style": "rule", "ground_truth": truth or ""},
            "prompts": np.asarray(row.prompt_ids, np.int32),
            "responses": np.asarray(row.response_ids, np.int32),
            "response_mask": np.asarray(row.response_mask, np.int8),
            "rollout_log_probs": None if row.logprobs is None else np.asarray(row.logprobs),
            "reward": rollout.reward,
            "advantage": rollout.advantage,
            "num_turns": len(row.steps),
            "extra_info": {
                "split": run.split or "train",
                "index": int(digest(rollout.group.encode())[:15], 16),
                "task_id": plain(run.task_id),
                "trajectory_id": plain(run.trajectory_id),
                "attempt": run.attempt,
                "row": number,
                "rows": len(rollout.rows),
                "tool_calls": facts["calls"],
                "truncated": rollout.truncated,
                "recorded": rollout.recorded,
                "rewards": json_text(facts["rewards"]),
            },
        }


EXPORTER = VerlRollouts()
