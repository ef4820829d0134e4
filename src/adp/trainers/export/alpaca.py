"""``alpaca``: instruction, input, output, system and history, as LLaMA-Factory reads them.

The format knows a user and an assistant who take turns in plain text. What else a chat holds has no
place: calls and results only as text (``tools=text``), reasoning between ``<think>`` tags. Answers
in the history ARE trained by LLaMA-Factory, unless ``mask_history`` is set, which expanded rows
need.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from adp.rendering.chat import Message
from adp.trainers.export.exporter import (
    ExportCounts,
    ExporterOptions,
    ExportItem,
    Form,
    RowExporter,
)
from adp.trainers.export.readme import page
from adp_schema.parts import JOINT


class Alpaca(RowExporter):
    """The exporter."""

    name = "alpaca"
    title = "LLaMA-Factory (alpaca): instruction, output, history; plain text in turns"
    takes = "chats"
    mask = "all"
    file = "train.json"
    options = ExporterOptions

    def form(self, options: ExporterOptions) -> Form:
        """Expanded rows train the last answer, when the trainer is told so."""
        instead = "use --set expand=true, and mask_history in the trainer"
        return Form("chats", "last" if options.expand else "all", self.file, instead=instead)

    def rows(
        self, item: ExportItem, options: ExporterOptions, tally: ExportCounts
    ) -> Iterator[dict[str, Any]]:
        """One row a chat."""
        chat = item.chat
        assert chat is not None
        trained = len(chat.trained())
        result = _turns(chat.messages, tally)
        if isinstance(result, str):
            tally.left_out[result] += trained
            return
        system, turns = result
        if chat.tools:
            tally.changed["tools on offer, which have no place; --set tools=text writes them"] += 1
        (instruction, output), history = turns[-1], turns[:-1]
        yield {
            "instruction": instruction,
            "input": "",
            "output": output,
            "system": system,
            "history": [list(turn) for turn in history],
        }

    def files(self, options: ExporterOptions, facts: Mapping[str, Any]) -> Mapping[str, str]:
        """How to train on it, and LLaMA-Factory's entry for the data set."""
        columns = {
            "prompt": "instruction",
            "query": "input",
            "response": "output",
            "system": "system",
            "history": "history",
        }
        entry = {"adp_alpaca": {"file_name": facts["file"], "columns": columns}}
        masked = "mask_history: true\n" if options.expand else ""
        body = _BODY.replace("MASKED\n", masked) + (_EXPANDED if options.expand else _WHOLE)
        return {
            "README.md": page("Alpaca rows for LLaMA-Factory", body, facts),
            "dataset_info.json": json.dumps(entry, indent=2) + "\n",
        }


def _turns(
    messages: tuple[Message, ...], tally: ExportCounts
) -> tuple[str, list[tuple[str, str]]] | str:
    """System prompt and turns of user and assistant; or why a chat has no such form."""
    system: list[str] = []
    asked: list[str] = []
    turns: list[tuple[str, str]] = []
    for message in messages:
        if message.role == "tool" or message.calls:
            return "calls and results of tools, which have no place; --set tools=text writes them"
        if message.role == "system":
            if asked or turns:
                return "a message of the system after the beginning"
            system.append(message.text)
        elif message.role == "user":
            asked.append(message.text)
        elif not asked:
            return "an answer that follows no message of the user"
        else:
            if len(asked) > 1:
                tally.changed["messages of the user joined with the one before"] += len(asked) - 1
            turns.append((JOINT.join(asked), _words(message, tally)))
            asked = []
    return JOINT.join(system), turns


def _words(message: Message, tally: ExportCounts) -> str:
    if not message.reasoning:
        return message.text
    tally.changed["reasoning between <think> tags"] += 1
    return f"<think>\n{message.reasoning}\n</think>\n\n{message.text}"


_BODY = """
## Train on it with LLaMA-Factory

`dataset_info.json` describes the file. In this folder:

```yaml
# train.yaml
model_name_or_path: MODEL
stage: sft
do_train: true
finetuning_type: lora
dataset_dir: .
dataset: adp_alpaca
template: qwen
cutoff_len: 8192
MASKED
output_dir: out
```

```sh
llamafactory-cli train train.yaml
```

- `cutoff_len` is 2048 unless given; LLaMA-Factory then cuts inside of turns.
"""

_WHOLE = """- The answers in `history` are trained too, as `output` is. The export made sure
  that all of them are to be.
"""

_EXPANDED = """- Keep `mask_history: true`: every answer is the `output` of a row of its own,
  and without it the answers in `history` would be trained again in each row.
"""

EXPORTER = Alpaca()
