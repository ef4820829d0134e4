"""``llamafactory-sharegpt``: rows for supervised fine-tuning with LLaMA-Factory.

Its default engine has no mark for single turns. It trains all turns of a row, or with
``mask_history`` only the last one. So either all steps of a chat are trained alike, or the chat is
written as one row for each trained step (``expand``) and ``train.yaml`` says ``mask_history``.
The engine v1 reads a weight for each message.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from adp.rendering.chat import Chat
from adp.trainers.export.exporter import (
    ExportCounts,
    ExporterOptions,
    ExportItem,
    Form,
    Mask,
    Takes,
)
from adp.trainers.export.llamafactory_files import (
    LlamaFactorySettings,
    dataset_info,
    train_yaml,
    v1_yaml,
)
from adp.trainers.export.llamafactory_turns import UnwritableTurns, tools_text, turns_of
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

    engine: Literal["v0", "v1"] = Field(
        default="v0",
        description="v0, which LLaMA-Factory uses by default; or v1 (USE_V1=1), which reads a "
        "weight for each message.",
    )

    @model_validator(mode="after")
    def _fit(self) -> Self:
        if self.engine == "v1" and self.template not in TEMPLATES:
            raise ValueError(f"template: the engine v1 knows {' and '.join(TEMPLATES)}")
        return self


class LlamaFactorySharegpt:
    """Turns of human, gpt, observation and function_call in strict alternation."""

    name = "llamafactory-sharegpt"
    title = "LLaMA-Factory: ShareGPT rows, dataset_info.json, train.yaml"
    takes: Takes = "chats"
    mask: Mask = "all"
    file = "train.jsonl"
    options: type[ExporterOptions] = SharegptOptions

    def form(self, options: ExporterOptions) -> Form:
        """The mask that the engine can carry."""
        assert isinstance(options, SharegptOptions)
        if options.engine == "v1":
            return Form("chats", "weights", self.file)
        return Form(
            "chats",
            "last" if options.expand else "all",
            self.file,
            instead="add --set expand=true for a row a step, or --set engine=v1",
        )

    def schema(self, options: ExporterOptions) -> Any:
        """None: rows are JSON."""

    def rows(
        self, item: ExportItem, options: ExporterOptions, tally: ExportCounts
    ) -> Iterator[dict[str, Any]]:
        """One row, or none."""
        assert item.chat is not None
        assert isinstance(options, SharegptOptions)
        chat = ended(item.chat)
        steps = len(chat.trained())
        if not steps:
            return
        changed: Counter[str] = Counter()
        try:
            if options.engine == "v1":
                row = v1_row(chat, options.template)
            else:
                row = _row(chat, options, changed)
        except UnwritableTurns as reason:
            tally.left_out[str(reason)] += steps
            return
        note_invalid(chat.messages, changed)
        tally.changed += changed
        yield row

    def files(self, options: ExporterOptions, facts: Mapping[str, Any]) -> Mapping[str, str]:
        """README and ``train.yaml``; for the default engine ``dataset_info.json`` too."""
        assert isinstance(options, SharegptOptions)
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


def _row(chat: Chat, options: SharegptOptions, changed: Counter[str]) -> dict[str, Any]:
    """A row of the default engine.

    Raises:
        Refused: the format has no place for it.
    """
    if not (last_only(chat) if options.expand else alike(chat)):
        raise UnwritableTurns(UNEQUAL)
    turns = turns_of(chat, options.template, changed)
    return {
        "conversations": turns.written(),
        "system": turns.system,
        "tools": tools_text(chat),
    }


EXPORTER = LlamaFactorySharegpt()
