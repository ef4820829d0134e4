"""``openai-ft-sft``: rows for supervised fine-tuning at OpenAI, and elsewhere in its format."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from adp.rendering.chat import Chat, Message
from adp.trainers.export.exporter import (
    ExportCounts,
    ExporterOptions,
    ExportItem,
    RowExporter,
    UnwritableChatError,
)
from adp.trainers.export.openai_messages import (
    OpenAIMessages,
    limits,
    note_length,
)
from adp.trainers.export.readme import page
from adp.trainers.export.shapes import NEITHER, ended

BODY = """\
## Train

```python
from openai import OpenAI

client = OpenAI()
with open("train.jsonl", "rb") as rows:
    file = client.files.create(file=rows, purpose="fine-tune")
client.fine_tuning.jobs.create(model="gpt-4.1-mini-2025-04-14", training_file=file.id)
```

- Each message of the assistant has a `weight`: 1 is trained, 0 is context. The last one is trained.
- Reasoning has no place in the format.
"""


class WeightOptions(ExporterOptions):
    """Options of ``openai-ft-sft``."""

    parallel_tool_calls: bool = True
    """What the rows say about several calls in one message. false: rows in which a message makes
    several calls are left out."""


class OpenAIFtSft(RowExporter):
    """Messages with weights, tools, and arguments as JSON text."""

    name = "openai-ft-sft"
    title = "OpenAI fine-tuning: messages with weight 0 or 1"
    takes = "chats"
    mask = "binary"
    file = "train.jsonl"
    options = WeightOptions

    def rows(
        self, item: ExportItem, options: WeightOptions, tally: ExportCounts
    ) -> Iterator[dict[str, Any]]:
        """One row, or none."""
        assert item.chat is not None
        chat = ended(_trainable(item.chat, tally))
        steps = len(chat.trained())
        if not steps:
            return
        changed: Counter[str] = Counter()
        try:
            writer = OpenAIMessages(chat, changed)
            row = {"messages": writer.messages(), **writer.offer(options.parallel_tool_calls)}
        except UnwritableChatError as reason:
            tally.left_out[str(reason)] += steps
            return
        note_length(row["messages"], changed)
        tally.changed += changed
        yield row

    def files(self, options: WeightOptions, facts: Mapping[str, Any]) -> Mapping[str, str]:
        """The README."""
        return {"README.md": page("Fine-tuning in OpenAI's format", BODY + limits(facts), facts)}


def _trainable(chat: Chat, tally: ExportCounts) -> Chat:
    """The chat in which only what the format can train keeps its weight."""

    def weigh(message: Message) -> Message:
        if message.weight <= 0:
            return message
        if message.weight != 1:
            tally.left_out[NEITHER] += 1
        elif not message.text and not message.calls:
            tally.left_out["a step of reasoning alone"] += 1
        else:
            return message
        return replace(message, weight=0.0)

    return replace(chat, messages=tuple(weigh(message) for message in chat.messages))


EXPORTER = OpenAIFtSft()
