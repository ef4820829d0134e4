"""``axolotl-dpo``: preference pairs for Axolotl's ``chat_template.default``.

Axolotl writes the prompt by the tokenizer's template, and each side by the template after a made-up
message of the user, of which it cuts off all before the first place where the side's text stands.
So a side is text alone, and its text must not stand in what comes before it. Calls are dropped
there: they have to be text (``tools=text``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from adp.rendering.chat import Message
from adp.trainers.export.exporter import ExportItem, PairOptions, RowExporter, UnwritableChatError
from adp.trainers.export.readme import page
from adp.trainers.export.shapes import SAME, plain, sides

CALLS = "calls, which Axolotl drops; --set tools=text writes them as words"
REASONING = "reasoning, for which Axolotl's DPO has no place"
EMPTY = "a side without words"
HEADER = "a side whose words stand in what a template writes before it"
SPACE = "white space around a side, which templates take away"

_BEFORE = {
    "chatml": "<|im_start|>system\nYou are Qwen, created by Alibaba Cloud. You are a helpful "
    "assistant.<|im_end|>\n<|im_start|>user\n[[dummy_message]]<|im_end|>\n<|im_start|>assistant\n"
    "<think>\n\n</think>\n\n",
    "llama3": "<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\nCutting Knowledge "
    "Date: December 2023\nToday Date: 26 Jul 2024\n\n<|eot_id|><|start_header_id|>user"
    "<|end_header_id|>\n\n[[dummy_message]]<|eot_id|><|start_header_id|>assistant<|end_header_id|>"
    "\n\n",
    "gemma": "<bos><start_of_turn>user\n[[dummy_message]]<end_of_turn>\n<start_of_turn>model\n",
}
"""What well-known templates write before a side."""

_BODY = """
## Train on it

```yaml
rl: dpo
datasets:
  - path: train.jsonl
    ds_type: json
    split: train
    type: chat_template.default
    field_messages: messages
    field_chosen: chosen
    field_rejected: rejected
```

- Axolotl 0.19 reads the role and the text of a message and nothing else. So there are no calls here
  (`--set tools=text` writes tools, calls and results as words, in the Hermes manner), and reasoning
  is left out.
- It finds where a side begins by its text. Sides whose words stand in what a template writes before
  them ("user", "no" in Llama's "Knowledge") are left out, counted; `--set template=chatml`
  checks only the family of your model.
"""


class AxolotlDpoOptions(PairOptions):
    """Options of ``axolotl-dpo``."""

    template: Literal["any", "chatml", "llama3", "gemma"] = "any"
    """Family of the chat template of the model that is trained: sides whose words stand in what it
    writes before them are left out. any: those of all three families."""


class AxolotlDpo(RowExporter):
    """The exporter."""

    name = "axolotl-dpo"
    title = "Axolotl DPO: messages, chosen and rejected, for chat_template.default"
    takes = "pairs"
    mask = "last"
    file = "train.jsonl"
    options = AxolotlDpoOptions

    def row(
        self, item: ExportItem, options: AxolotlDpoOptions, changed: Counter[str]
    ) -> dict[str, Any]:
        """One row a pair."""
        assert item.pair is not None
        answers = sides(item.pair)
        prompt = item.pair.chosen.messages[: item.pair.shared]
        if any(message.calls or message.role == "tool" for message in (*prompt, *answers)):
            raise UnwritableChatError(CALLS)
        changed[REASONING] += sum(bool(message.reasoning) for message in (*prompt, *answers))
        chosen, rejected = (_side(message, options, changed) for message in answers)
        if chosen == rejected:
            raise UnwritableChatError(SAME)
        return {
            "messages": _messages(prompt),
            "chosen": [{"role": "assistant", "content": chosen}],
            "rejected": [{"role": "assistant", "content": rejected}],
            "pair_id": item.pair.pair.pair_id,
        }

    def files(self, options: AxolotlDpoOptions, facts: Mapping[str, Any]) -> Mapping[str, str]:
        """How to train on it."""
        return {"README.md": page("Preference pairs for Axolotl", _BODY, facts)}


def _messages(messages: Sequence[Message]) -> list[dict[str, Any]]:
    return [{"role": message.role, "content": plain(message.text)} for message in messages]


def _side(message: Message, options: AxolotlDpoOptions, changed: Counter[str]) -> str:
    text = str(plain(message.text)).strip()
    if not text:
        raise UnwritableChatError(EMPTY)
    families = list(_BEFORE) if options.template == "any" else [options.template]
    if any(text in _BEFORE[family] for family in families):
        raise UnwritableChatError(HEADER)
    changed[SPACE] += text != message.text
    return text


EXPORTER = AxolotlDpo()
