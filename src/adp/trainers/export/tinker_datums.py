"""``tinker-datums``: finished rollouts as datums of tinker, for its ``importance_sampling`` loss.

A datum predicts each token from the ones before it, so its rows are one token shorter than the
rollout. ``adp_tinker_datums.py`` beside them makes the objects, and the advantages where none were
kept: the reward less the mean of its group, as in the tinker cookbook.
"""

from __future__ import annotations

from typing import Any

from adp.trainers.export.rollout_rows import Rollout
from adp.trainers.export.rollouts import RolloutExporter
from adp.trainers.export.shapes import plain
from adp.trainers.rollouts.sequence import TokenSequence

_BODY = """\
## Train on it

```python
from adp_tinker_datums import load_datums

datums = load_datums("datums.jsonl")
training_client.forward_backward(datums, loss_fn="importance_sampling").result()
```

- `model_input` is the rollout without its last token, `target_tokens` without its first one;
  `logprobs`, `mask` and `advantages` belong to the targets, 0 where the model did not write.
- A row has the `advantage` that a training kept with the rollout, or null. `load_datums` then takes
  the reward less the mean reward of its group. `load_datums(path, advantages="group")` does so for
  all. Each rollout counts once in the mean, however many rows it has.
- `mask` is for your own use: the service refuses keys that its loss does not know, so `load_datums`
  leaves it out unless `mask=True`.
"""


class TinkerDatums(RolloutExporter):
    """The exporter."""

    name = "tinker-datums"
    title = "tinker: finished rollouts as datums with log probabilities and advantages"
    file = "datums.jsonl"
    heading = "Datums for tinker"
    body = _BODY
    code = "adp_tinker_datums.py"
    needs_logprobs = True

    def row(self, rollout: Rollout, number: int, row: TokenSequence) -> dict[str, Any]:
        """One datum."""
        assert row.logprobs is not None
        before = [0.0] * (len(row.prompt_ids) - 1)
        ids = [*row.prompt_ids, *row.response_ids]
        return {
            "model_input": ids[:-1],
            "target_tokens": ids[1:],
            "logprobs": [*before, *row.logprobs],
            "mask": [*before, *(float(value) for value in row.response_mask)],
            "advantage": rollout.advantage,
            "reward": rollout.reward,
            "group": plain(rollout.group),
            "trajectory_id": plain(rollout.trajectory.trajectory_id),
            "metadata": plain({**rollout.facts(), "row": number, "rows": len(rollout.rows)}),
        }


EXPORTER = TinkerDatums()
