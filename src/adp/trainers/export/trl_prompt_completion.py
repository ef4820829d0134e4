"""``trl-prompt-completion``: prompt and completion, of which TRL trains only the completion.

A row is one trained step: what the model saw before it is the prompt. TRL renders the prompt with
the model's own template, as at inference, so this carries any mask of 0 and 1 for any model, at the
price of repeating the prompt in each row.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from adp.trainers.export.exporter import ExportItem, RowExporter, UnwritableChatError
from adp.trainers.export.messages import MessageOptions, tools_text, values
from adp.trainers.export.readme import Types, loading, page

_TYPES: Types = {
    "prompt": "messages",
    "completion": "messages",
    "tools": "string",
    "trajectory_id": "string",
}

NO_PROMPT = "nothing stands before the step"


class TrlPromptCompletion(RowExporter):
    """The exporter."""

    name = "trl-prompt-completion"
    title = "TRL SFT: prompt and completion, a row for each trained step"
    takes = "chats"
    mask = "last"
    file = "train.jsonl"
    options = MessageOptions

    def row(
        self, item: ExportItem, options: MessageOptions, changed: Counter[str]
    ) -> dict[str, Any]:
        """One row: the last message is the completion."""
        assert item.chat is not None
        *before, last = item.chat.messages
        if not before:
            raise UnwritableChatError(NO_PROMPT)
        return {
            "prompt": values(before, options),
            "completion": values([last], options),
            "tools": tools_text(item.chat.tools),
            "trajectory_id": item.chat.trajectory_id,
        }

    def files(self, options: MessageOptions, facts: Mapping[str, Any]) -> Mapping[str, str]:
        """How to train on it."""
        body = loading(_TYPES, facts["file"], as_text=options.as_text) + _BODY
        return {
            "README.md": page("Prompts and completions for TRL's SFTTrainer", body, facts, _TYPES)
        }


_BODY = """
## Train on it

```python
from trl import SFTConfig, SFTTrainer

args = SFTConfig(output_dir="out", max_length=8192)
trainer = SFTTrainer("MODEL", args=args, train_dataset=dataset)
trainer.train()
```

or, in this folder:

```sh
trl sft --model_name_or_path MODEL --dataset_name "$PWD" --output_dir out \\
  --max_length 8192 --use_peft
```

- TRL trains only the completion by default; do not give `completion_only_loss=False`.
- The completion begins where the tokens of the prompt with the generation prompt end, and goes
  to the end of the render. What a template writes after the end of the turn is trained too (of
  ChatML templates a line end).
- `max_length` is 1024 unless given. TRL keeps the beginning, so of a long prompt nothing is
  trained; it drops such rows.
- A model given by name is loaded in float32 unless `model_init_kwargs={"dtype": "bfloat16"}`.
"""

EXPORTER = TrlPromptCompletion()
