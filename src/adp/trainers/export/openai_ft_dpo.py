"""``openai-ft-dpo``: preference pairs for OpenAI, one message of the assistant a side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from adp.trainers.export.exporter import (
    ExportItem,
    PairOptions,
    RowExporter,
    UnwritableChatError,
)
from adp.trainers.export.openai_messages import (
    OpenAIMessages,
    limits,
    note_length,
)
from adp.trainers.export.readme import page
from adp.trainers.export.shapes import calls_of, sides

BODY = """\
## Train

```python
from openai import OpenAI

client = OpenAI()
with open("train.jsonl", "rb") as rows:
    file = client.files.create(file=rows, purpose="fine-tune")
client.fine_tuning.jobs.create(
    model="gpt-4.1-mini-2025-04-14",
    training_file=file.id,
    method={"type": "dpo", "dpo": {"hyperparameters": {"beta": 0.1}}},
)
```

- `input` is what came before, `preferred_output` the better next message of the assistant,
  `non_preferred_output` the worse one. Only these two are trained.
- Reasoning has no place in the format.
"""


class PreferenceOptions(PairOptions):
    """Options of ``openai-ft-dpo``."""

    parallel_tool_calls: bool = True
    """What the rows say about several calls in one message. false: rows in which a message makes
    several calls are left out."""


class OpenAIFtDpo(RowExporter):
    """One message of the assistant for each side."""

    name = "openai-ft-dpo"
    title = "OpenAI preference fine-tuning: input, preferred_output, non_preferred_output"
    takes = "pairs"
    mask = "last"
    file = "train.jsonl"
    options = PreferenceOptions

    def row(
        self, item: ExportItem, options: PreferenceOptions, changed: Counter[str]
    ) -> dict[str, Any]:
        """The row of a pair."""
        assert item.pair is not None
        chosen, rejected = answers = sides(item.pair)
        if chosen.text == rejected.text and calls_of(chosen) == calls_of(rejected):
            raise UnwritableChatError("sides that differ in their reasoning alone")
        if not all(message.text or message.calls for message in answers):
            raise UnwritableChatError("a step of reasoning alone")
        prompt = item.pair.chosen.messages[: item.pair.shared]
        if prompt[-1].role == "assistant":
            raise UnwritableChatError("a prompt that ends with a message of the assistant")
        chat = replace(item.pair.chosen, messages=(*prompt, *answers))
        writer = OpenAIMessages(chat, changed)
        messages = writer.messages(len(prompt))
        for message in messages:
            message.pop("weight", None)
        better, worse = writer.assistant(chosen), writer.assistant(rejected)
        note_length([*messages, better], changed)
        return {
            "input": {"messages": messages, **writer.offer(options.parallel_tool_calls)},
            "preferred_output": [better],
            "non_preferred_output": [worse],
        }

    def files(self, options: PreferenceOptions, facts: Mapping[str, Any]) -> Mapping[str, str]:
        """The README."""
        return {"README.md": page("Preference pairs for OpenAI", BODY + limits(facts), facts)}


EXPORTER = OpenAIFtDpo()
