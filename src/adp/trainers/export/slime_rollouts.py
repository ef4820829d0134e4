"""``slime-rollouts``: finished rollouts as the dicts of slime's ``Sample``.

slime trains what its rollout function returns: groups of ``Sample``. Each row is what
``Sample.from_dict`` takes, and ``adp_slime_rollouts.py`` beside them is such a function.
"""

from __future__ import annotations

from typing import Any

from adp.trainers.export.rollout_messages import RolloutMessages
from adp.trainers.export.rollout_rows import Rollout
from adp.trainers.export.rollouts import RolloutExporter
from adp.trainers.export.shapes import plain
from adp.trainers.export.verl_rl import ground_truth
from adp.trainers.rollouts.sequence import TokenSequence
from adp_schema.ids import digest

_BODY = """\
## Train on it

slime takes samples from the function that `--rollout-function-path` names. In this folder, on the
PYTHONPATH of slime:

```sh
ADP_ROLLOUTS=$PWD/rollouts.jsonl python train.py \\
    --rollout-function-path adp_slime_rollouts.generate_rollout \\
    --rollout-batch-size 8 --n-samples-per-prompt 4 ...
```

- A row is a `Sample`: `tokens` (prompt and response), `response_length`, `loss_mask` and
  `rollout_log_probs` of the response, `reward`, `status`, `metadata`.
- `generate_rollout` gives the groups in the order of the file, `rollout_batch_size` at a time, with
  `n_samples_per_prompt` samples each; a group with fewer is passed over.
- `metadata` holds the group, the attempt, turns and tool calls, and the stored advantage.
"""


class SlimeRollouts(RolloutExporter):
    """The exporter."""

    name = "slime-rollouts"
    title = "slime: finished rollouts as samples, and the rollout function that gives them"
    file = "rollouts.jsonl"
    heading = "Rollouts for slime"
    body = _BODY
    code = "adp_slime_rollouts.py"

    def row(self, rollout: Rollout, number: int, row: TokenSequence) -> dict[str, Any]:
        """One sample."""
        run = rollout.trajectory
        return {
            "group_index": _index(rollout.group),
            "index": _index(f"{run.trajectory_id}/{number}"),
            "prompt": plain(RolloutMessages(run).before(row)),
            "tokens": [*row.prompt_ids, *row.response_ids],
            "response": plain(run.final_answer or ""),
            "response_length": len(row.response_ids),
            "label": ground_truth(run.task, run, "auto"),
            "reward": rollout.reward,
            "loss_mask": [int(value) for value in row.response_mask],
            "rollout_log_probs": None if row.logprobs is None else list(row.logprobs),
            "status": "truncated" if rollout.truncated else "completed",
            "metadata": plain({**rollout.facts(), "row": number, "rows": len(rollout.rows)}),
        }


def _index(name: str) -> int:
    return int(digest(name.encode("utf-8", "replace"))[:13], 16)


EXPORTER = SlimeRollouts()
