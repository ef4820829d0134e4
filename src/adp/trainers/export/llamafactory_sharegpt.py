"""``llamafactory-sharegpt``: rows for supervised fine-tuning with LLaMA-Factory.

Its default engine has no mark for single turns. It trains all turns of a row, or with
``mask_history`` only the last one. So either all steps of a chat are trained alike, or the chat is
written as one row for each trained step (``expand``) and ``train.yaml`` says ``mask_history``.
The engine v1 reads a weight for each message.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import model_validator

from adp.trainers.export.exporter import (
    ExporterOptions,
    ExportItem,
    Form,
    RowExporter,
    UnwritableChatError,
)
from adp.trainers.export.llamafactory_files import (
    LlamaFactorySettings,
    dataset_info,
    train_yaml,
    v1_yaml,
)
from adp.trainers.export.llamafactory_turns import tools_text, turns_of
from adp.trainers.export.llamafactory_v1 import TEMPLATES, v1_row
from adp.trainers.export.readme import page
from adp.trainers.export.shapes import alike, ended, last_only, note_invalid

UNEQUAL = "a chat whose steps are not all trained alike"

BODY = """\
## Train

With LLaMA-Factory 0.9.5, in this folder:

```sh
{command}
```

{notes}
"""

TEMPLATE = (
    "- `template: {template}` says how the turns are written. Another template may mark reasoning "
    "and calls in another way: export again with `--set template=...`.\n"
    "- A row of more than `cutoff_len` tokens is cut inside a turn.\n"
)

ALL = "- Every turn of the assistant is trained.\n"
LAST = (
    "- One row for each trained step: only the last turn of a row is trained. `train.yaml` says "
    "`mask_history: true`; without it the context would be trained too.\n"
)
PACKING = "- Do not use `packing`: rows would see each other. `neat_packing: true` is safe.\n"
V1 = (
    "- Each message has its `loss_weight`: 0 is context, 0.5 counts half.\n"
    "- The engine v1 trains the words that open a trained message too, such as "
    "`<|im_start|>assistant`.\n"
)


class SharegptOptions(ExporterOptions, LlamaFactorySettings):
    """Options of ``llamafactory-sharegpt``."""

    engine: Literal["v0", "v1"] = "v0"
    """v0, which LLaMA-Factory uses by default; or v1 (USE_V1=1), which reads a weight for each
    message."""

    @model_validator(mode="after")
    def _fit(self) -> Self:
        if self.engine == "v1" and self.template not in TEMPLATES:
            raise ValueError(f"template: the engine v1 knows {' and '.join(TEMPLATES)}")
        return self


class LlamaFactorySharegpt(RowExporter):
    """Turns of human, gpt, observation and function_call in strict alternation."""

    name = "llamafactory-sharegpt"
    title = "LLaMA-Factory: ShareGPT rows, dataset_info.json, train.yaml"
    takes = "chats"
    mask = "all"
    file = "train.jsonl"
    options = SharegptOptions

    def form(self, options: SharegptOptions) -> Form:
        """The mask that the engine can carry."""
        if options.engine == "v1":
            return Form("chats", "weights", self.file)
        return Form(
            "chats",
            "last" if options.expand else "all",
            self.file,
            instead="add --set expand=true for a row a step, or --set engine=v1",
        )

    def row(
        self, item: ExportItem, options: SharegptOptions, changed: Counter[str]
    ) -> dict[str, Any] | None:
        """The row of a chat up to its last trained step; None when nothing is trained."""
        assert item.chat is not None
        chat = ended(item.chat)
        if not chat.messages:
            return None
        note_invalid(chat.messages, changed)
        if options.engine == "v1":
            return v1_row(chat, options.template)
        if not (last_only(chat) if options.expand else alike(chat)):
            raise UnwritableChatError(UNEQUAL)
        turns = turns_of(chat, options.template, changed)
        return {
            "conversations": turns.written(),
            "system": turns.system,
            "tools": tools_text(chat),
        }

    def files(self, options: SharegptOptions, facts: Mapping[str, Any]) -> Mapping[str, str]:
        """README and ``train.yaml``; for the default engine ``dataset_info.json`` too."""
        notes = TEMPLATE.format(template=options.template)
        if options.engine == "v1":
            command = "USE_V1=1 llamafactory-cli sft train.yaml"
            body = BODY.format(command=command, notes=V1 + notes)
            return {
                "README.md": page("LLaMA-Factory, engine v1", body, facts),
                "train.yaml": v1_yaml(options),
            }
        notes = (LAST if options.expand else ALL) + PACKING + notes
        body = BODY.format(command="llamafactory-cli train train.yaml", notes=notes)
        masked = f"mask_history: {str(options.expand).lower()}\n"
        return {
            "README.md": page("LLaMA-Factory, supervised", body, facts),
            "dataset_info.json": dataset_info(ranking=False),
            "train.yaml": train_yaml(options, further=masked, ranking=False),
        }


EXPORTER = LlamaFactorySharegpt()
