"""``trl-dpo``: preference pairs for TRL's DPOTrainer, one step a side.

TRL trains everything after the prompt. A side of several steps would train on the results of
tools between them, so each side is one message; longer ones are refused, cut or left out
(``multi_turn``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from adp.trainers.export.exporter import ExportItem, PairOptions, RowExporter
from adp.trainers.export.messages import MessageOptions, tools_text, values
from adp.trainers.export.readme import Types, loading, page

_TYPES: Types = {
    "prompt": "messages",
    "chosen": "messages",
    "rejected": "messages",
    "tools": "string",
    "pair_id": "string",
}


class DpoOptions(PairOptions, MessageOptions):
    """Options of ``trl-dpo``."""


class TrlDpo(RowExporter):
    """The exporter."""

    name = "trl-dpo"
    title = "TRL DPO: prompt, chosen and rejected, one step a side"
    takes = "pairs"
    mask = "last"
    file = "train.jsonl"
    options = DpoOptions

    def row(self, item: ExportItem, options: DpoOptions, changed: Counter[str]) -> dict[str, Any]:
        """One row a pair."""
        pair = item.pair
        assert pair is not None
        return {
            "prompt": values(pair.chosen.messages[: pair.shared], options),
            "chosen": values(pair.chosen.messages[pair.shared :], options),
            "rejected": values(pair.rejected.messages[pair.shared :], options),
            "tools": tools_text(pair.chosen.tools),
            "pair_id": pair.pair.pair_id,
        }

    def files(self, options: DpoOptions, facts: Mapping[str, Any]) -> Mapping[str, str]:
        """How to train on it."""
        body = loading(_TYPES, facts["file"], as_text=options.as_text) + _BODY
        return {"README.md": page("Preference pairs for TRL's DPOTrainer", body, facts, _TYPES)}


_BODY = """
## Train on it

```python
from trl import DPOConfig, DPOTrainer

args = DPOConfig(output_dir="out", max_length=8192)
trainer = DPOTrainer("MODEL", args=args, train_dataset=dataset)
trainer.train()
```

or, in this folder:

```sh
trl dpo --model_name_or_path MODEL --dataset_name "$PWD" --output_dir out \\
  --max_length 8192 --use_peft
```

- The loss is over everything after the prompt; each side here is one message of the assistant.
- `max_length` is 1024 unless given: pairs whose prompt is longer are dropped, longer sides are
  cut.
- With `use_peft` the reference is the model without the adapter.
"""

EXPORTER = TrlDpo()
