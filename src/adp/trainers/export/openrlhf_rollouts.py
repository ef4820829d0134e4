"""``openrlhf-rollouts``: finished rollouts as OpenRLHF's agent executors return them.

OpenRLHF makes an ``Experience`` of what its agent gives back: ``observation_tokens`` (all tokens),
``action_ranges`` (those that the model wrote), ``rollout_log_probs`` and ``reward``. The rows have
these keys, and ``adp_openrlhf_rollouts.py`` beside them makes the ``Experience``.
"""

from __future__ import annotations

from typing import Any

from adp.trainers.export.rollout_messages import RolloutMessages
from adp.trainers.export.rollout_rows import Rollout
from adp.trainers.export.rollouts import RolloutExporter
from adp.trainers.export.shapes import json_text, plain
from adp.trainers.export.verl_rl import ground_truth
from adp.trainers.rollouts.sequence import TokenSequence

_BODY = """\
## Load it

With OpenRLHF 0.11.2, in this folder:

```python
from adp_openrlhf_rollouts import load_experiences

experiences = load_experiences("rollouts.jsonl")
```

- A row is what OpenRLHF's agent executor returns: `observation_tokens`, `action_ranges` (the
  first token, and the token after the last one, of each run that the model wrote),
  `rollout_log_probs` for all tokens (0.0 where the model did not write), `reward`,
  `scores`, `truncated`.
- An `Experience` predicts each token from the ones before it: `action_mask` and
  `rollout_log_probs` are one shorter than `sequences`, as in OpenRLHF's own generator.
- `extra_logs` has turns and tool calls; they reach the metrics through `Experience.info`.
- `group` is the same for all attempts at one task, and `Experience.index` counts the groups.
"""


class OpenrlhfRollouts(RolloutExporter):
    """The exporter."""

    name = "openrlhf-rollouts"
    title = "OpenRLHF: finished rollouts as its agent executors return them"
    file = "rollouts.jsonl"
    heading = "Rollouts for OpenRLHF"
    body = _BODY
    code = "adp_openrlhf_rollouts.py"

    def row(self, rollout: Rollout, number: int, row: TokenSequence) -> dict[str, Any]:
        """What an agent executor returns."""
        run = rollout.trajectory
        before = [0.0] * len(row.prompt_ids)
        return {
            "prompt": json_text(RolloutMessages(run).before(row)),
            "label": ground_truth(run.task, run, "auto"),
            "reward": rollout.reward,
            "scores": rollout.reward if run.success is None else float(run.success),
            "observation_tokens": [*row.prompt_ids, *row.response_ids],
            "action_ranges": _runs(row),
            "rollout_log_probs": None if row.logprobs is None else [*before, *row.logprobs],
            "truncated": rollout.truncated,
            "extra_logs": {"turns": rollout.turns, "tool_calls": rollout.calls},
            "group": plain(rollout.group),
            "metadata": plain({**rollout.facts(), "row": number, "rows": len(rollout.rows)}),
        }


def _runs(row: TokenSequence) -> list[list[int]]:
    """The runs of tokens under the mask; a turn begins a new one."""
    first = len(row.prompt_ids)
    begins = {begin for begin, _ in row.spans}
    runs: list[list[int]] = []
    before = False
    for place, written in enumerate(row.response_mask):
        if written and (not before or place in begins):
            runs.append([first + place, first + place])
        if written:
            runs[-1][1] += 1
        before = written
    return runs


EXPORTER = OpenrlhfRollouts()
