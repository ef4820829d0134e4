"""``trl-grpo``: prompts with what rewards need, for TRL's GRPOTrainer and RLOOTrainer.

The model answers by itself, so a row is a prompt: what stands before the first step of the agent.
Runs of one task give one row. TRL hands every other column to the reward functions; all of them are
text, and JSON stays JSON text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from adp.trainers.export.exporter import ExportItem, Form, RowExporter
from adp.trainers.export.messages import MessageOptions, tools_text, values
from adp.trainers.export.readme import Types, loading, page

_OF_TASK = (
    *("answers", "expected_calls", "gold_trajectory", "tests", "reward_spec", "turns"),
    *("difficulty",),
)
_TYPES: Types = {
    "prompt": "messages",
    "tools": "string",
    "task_id": "string",
    "dataset": "string",
    **dict.fromkeys(_OF_TASK, "string"),
    "task_environment": "string",
    "task_environment_config": "string",
}


class TrlGrpo(RowExporter):
    """The exporter."""

    name = "trl-grpo"
    title = "TRL GRPO: prompts, with reference answers and expected calls for rewards"
    takes = "prompts"
    mask = "last"
    file = "train.jsonl"
    options = MessageOptions

    def form(self, options: MessageOptions) -> Form:
        """Prompts, each once."""
        return Form("prompts", "last", self.file, unique=True)

    def row(
        self, item: ExportItem, options: MessageOptions, changed: Counter[str]
    ) -> dict[str, Any]:
        """One row a task."""
        chat, task = item.chat, item.trajectory.task
        assert chat is not None
        row: dict[str, Any] = {
            "prompt": values(chat.messages, options),
            "tools": tools_text(chat.tools),
            "task_id": item.trajectory.task_id,
            "dataset": item.dataset,
        }
        row |= {name: getattr(task, name, None) for name in _OF_TASK}
        row["task_environment"] = getattr(task, "environment", None)
        row["task_environment_config"] = getattr(task, "environment_config", None)
        return row

    def files(self, options: MessageOptions, facts: Mapping[str, Any]) -> Mapping[str, str]:
        """How to train on it."""
        body = loading(_TYPES, facts["file"], as_text=options.as_text) + _BODY
        return {"README.md": page("Prompts for TRL's GRPOTrainer", body, facts, _TYPES)}


_BODY = """
## Train on it

```python
import json

from trl import GRPOConfig, GRPOTrainer

def has_answer(completions, answers, **columns):
    scores = []
    for completion, text in zip(completions, answers):
        said = completion[-1]["content"] or ""
        wanted = json.loads(text) if text else []
        wanted = wanted if isinstance(wanted, list) else [wanted]
        scores.append(float(any(str(each) in said for each in wanted)) if wanted else None)
    return scores

args = GRPOConfig(output_dir="out", max_completion_length=1024)
trainer = GRPOTrainer("MODEL", reward_funcs=has_answer, args=args, train_dataset=dataset)
trainer.train()
```

- The columns come from the task: `answers` (reference answers), `expected_calls`,
  `gold_trajectory`, `tests`, `reward_spec`, `turns` and `task_environment_config` are JSON
  text, or null where the store has none; decode them in the reward. A reward of None leaves a
  row out.
- **TRL does not read the column `tools`.** The model sees tools only when you give Python
  functions or an environment to the trainer (`tools=`, `environment_factory=`), or when they
  stand in the prompt as text: `--set tools=text`.
- A conversation of several turns begins with its first one; the column `turns` holds the
  others.
"""

EXPORTER = TrlGrpo()
