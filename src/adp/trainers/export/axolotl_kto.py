"""``axolotl-kto``: single answers with a label, as ChatML text, for Axolotl's KTO.

Axolotl's KTO knows no chat template: it takes a prompt and a completion as text. So they are
written in ChatML, with tools, calls and results as words in the Hermes manner.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from adp.rendering.chat import Chat
from adp.trainers.export.chatml import turn_text
from adp.trainers.export.fit import tools_as_text
from adp.trainers.export.readme import page
from adp.trainers.export.shapes import plain
from adp.trainers.export.trl_kto import KtoOptions, TrlKto

_BODY = """
## Train on it

```yaml
rl: kto
remove_unused_columns: false
datasets:
  - path: train.jsonl
    ds_type: json
    split: train
    type:
      field_prompt: prompt
      field_completion: completion
      field_label: label
      prompt_format: "{prompt}"
      completion_format: "{completion}"
```

- `prompt` and `completion` are ChatML (`<|im_start|>`, `<|im_end|>`), so this is right only for
  models that know it, such as those of Qwen. Axolotl 0.19 uses no chat template for KTO.
- The rows are in a mixed order, both labels spread evenly: KTO compares each prompt with the answer
  of another row of the batch. Do not sort the file, and take batches of two rows or more.
"""


class AxolotlKto(TrlKto):
    """The exporter."""

    name = "axolotl-kto"
    title = "Axolotl KTO: prompt and completion as ChatML text, and a label"
    options = KtoOptions

    def labelled(self, chat: Chat, options: KtoOptions, *, label: bool) -> dict[str, Any]:
        """A row."""
        *before, last = tools_as_text(chat, Counter()).messages
        prompt = "".join(
            f"<|im_start|>{message.role}\n{turn_text(message)}<|im_end|>\n" for message in before
        )
        return {
            "prompt": plain(f"{prompt}<|im_start|>assistant\n"),
            "completion": plain(f"{turn_text(last)}<|im_end|>"),
            "label": label,
            "trajectory_id": chat.trajectory_id,
        }

    def files(self, options: KtoOptions, facts: Mapping[str, Any]) -> Mapping[str, str]:
        """How to train on it."""
        return {"README.md": page("Labelled answers for Axolotl", _BODY, facts)}


EXPORTER = AxolotlKto()
