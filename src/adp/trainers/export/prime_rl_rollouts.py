"""``prime-rl-rollouts``: finished rollouts as the training samples of prime-rl.

prime-rl's orchestrator sends its trainer a ``TrainingSample`` for each branch of a rollout. The
fields of that type change from release to release, so a row holds what all of them have, and
``adp_prime_rl_samples.py`` beside the rows fills the fields that the installed one asks for.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import Field

from adp.trainers.export.exporter import ExportCounts, ExportItem
from adp.trainers.export.rollout_rows import Rollout
from adp.trainers.export.rollouts import RolloutExporter, RolloutOptions
from adp.trainers.export.shapes import plain
from adp.trainers.rollouts.sequence import TokenSequence

_BODY = """\
## Load it

In this folder, where prime-rl is installed:

```python
from adp_prime_rl_samples import load_samples

samples = load_samples("samples.jsonl")
```

- A row is one branch: `token_ids`, `mask` (true for the tokens that the model wrote), `logprobs`
  and `temperatures`, all of one length; `env_name`, `reward`, `advantage`.
- Where a training kept no advantage, `load_samples` takes the reward less the mean reward of the
  attempts at the same task, as prime-rl's orchestrator does by default.
- prime-rl has no release on PyPI. The rows follow the types that its source documents; they were
  not run with prime-rl itself.
- prime-rl makes its own rollouts from verifiers environments: for those see `verifiers-traces`.
"""


class PrimeRlOptions(RolloutOptions):
    """Options of ``prime-rl-rollouts``."""

    temperature: float = Field(default=1.0, gt=0, allow_inf_nan=False)
    """Temperature with which the tokens were drawn; the trainer divides its logits by it."""


class PrimeRlRollouts(RolloutExporter):
    """The exporter."""

    name = "prime-rl-rollouts"
    title = "prime-rl: finished rollouts as training samples"
    file = "samples.jsonl"
    options = PrimeRlOptions
    heading = "Training samples for prime-rl"
    body = _BODY
    code = "adp_prime_rl_samples.py"
    needs_logprobs = True

    def rows(
        self, item: ExportItem, options: RolloutOptions, tally: ExportCounts
    ) -> Iterator[dict[str, Any]]:
        """The rows of a rollout, with the temperature for each token."""
        assert isinstance(options, PrimeRlOptions)
        for row in super().rows(item, options, tally):
            yield {**row, "temperatures": [options.temperature] * len(row["token_ids"])}

    def row(self, rollout: Rollout, number: int, row: TokenSequence) -> dict[str, Any]:
        """One sample."""
        assert row.logprobs is not None
        return {
            "token_ids": [*row.prompt_ids, *row.response_ids],
            "mask": [*[False] * len(row.prompt_ids), *row.response_mask],
            "logprobs": [*[0.0] * len(row.prompt_ids), *row.logprobs],
            "env_name": plain(rollout.dataset),
            "reward": rollout.reward,
            "advantage": rollout.advantage,
            "group": plain(rollout.group),
            "trajectory_id": plain(rollout.trajectory.trajectory_id),
            "prompt_length": len(row.prompt_ids),
            "metadata": plain({**rollout.facts(), "row": number, "rows": len(rollout.rows)}),
        }


EXPORTER = PrimeRlRollouts()
