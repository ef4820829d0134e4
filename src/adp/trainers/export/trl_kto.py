"""``trl-kto``: single answers with a label, for TRL's KTOTrainer.

A row is one step after its prompt, with true (desirable) or false. The label comes from the outcome
of the whole run, or from the two sides of pairs. KTO estimates a KL term from answers at other
prompts, which TRL takes from the same batch. So neighbours must be strangers: rows are written in a
mixed order, with both labels spread evenly.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from pydantic import Field, model_validator

from adp.rendering.chat import Chat
from adp.trainers.export.exporter import (
    ExportCounts,
    ExportItem,
    Form,
    PairOptions,
    RowExporter,
    UnwritableChatError,
)
from adp.trainers.export.messages import MessageOptions, tools_text, values
from adp.trainers.export.readme import Types, loading, page
from adp.trainers.export.trl_prompt_completion import NO_PROMPT
from adp_schema.model import Trajectory

_TYPES: Types = {
    "prompt": "messages",
    "completion": "messages",
    "label": "bool",
    "tools": "string",
    "trajectory_id": "string",
}


class KtoOptions(PairOptions, MessageOptions):
    """Options of ``trl-kto``."""

    label: Literal["success", "reward", "pairs"] = "success"
    """Where the label comes from: the success of the run, its reward (see threshold), or the
    sides of pairs (chosen is true, rejected false)."""
    threshold: float | None = Field(allow_inf_nan=False, default=None)
    """reward: the smallest reward whose steps are desirable."""

    @model_validator(mode="after")
    def _fit(self) -> KtoOptions:
        if (self.label == "reward") != (self.threshold is not None):
            raise ValueError("label=reward and threshold=NUMBER go together")
        return self


class TrlKto(RowExporter):
    """The exporter."""

    name = "trl-kto"
    title = "TRL KTO: prompt, completion and a label, a row for each step"
    takes = "chats"
    mask = "last"
    file = "train.jsonl"
    options = KtoOptions

    def form(self, options: KtoOptions) -> Form:
        """Steps of runs, or sides of pairs."""
        takes: Literal["pairs", "chats"] = "pairs" if options.label == "pairs" else "chats"
        return Form(takes, "last", self.file, mix="label")

    def rows(
        self, item: ExportItem, options: KtoOptions, tally: ExportCounts
    ) -> Iterator[dict[str, Any]]:
        """One row a step, or two a pair."""
        try:
            if item.pair is not None:
                sides = ((item.pair.chosen, True), (item.pair.rejected, False))
                yield from [self.labelled(chat, options, label=good) for chat, good in sides]
                return
            assert item.chat is not None
            label = _label(item.trajectory, options)
            if label is None:
                tally.left_out[f"the run has no {options.label}"] += 1
            elif len(item.chat.messages) < 2:
                tally.left_out[NO_PROMPT] += 1
            else:
                yield self.labelled(item.chat, options, label=label)
        except UnwritableChatError as reason:
            tally.left_out[str(reason)] += 1

    def labelled(self, chat: Chat, options: KtoOptions, *, label: bool) -> dict[str, Any]:
        """The row of a chat that ends with the answer.

        Args:
            chat: the chat.
            options: as given.
            label: whether the answer is desirable.

        Raises:
            UnwritableChatError: the format has no place for something in it.
        """
        *before, last = chat.messages
        return {
            "prompt": values(before, options),
            "completion": values([last], options),
            "label": label,
            "tools": tools_text(chat.tools),
            "trajectory_id": chat.trajectory_id,
        }

    def files(self, options: KtoOptions, facts: Mapping[str, Any]) -> Mapping[str, str]:
        """How to train on it."""
        body = loading(_TYPES, facts["file"], as_text=options.as_text) + _BODY
        return {"README.md": page("Labelled answers for TRL's KTOTrainer", body, facts, _TYPES)}


def _label(trajectory: Trajectory, options: KtoOptions) -> bool | None:
    if options.label == "success":
        return trajectory.success
    reward = trajectory.reward
    if reward is None or reward != reward or options.threshold is None:
        return None
    return reward >= options.threshold


_BODY = """
## Train on it

```python
from trl import KTOConfig, KTOTrainer

args = KTOConfig(output_dir="out", max_length=8192, per_device_train_batch_size=8)
trainer = KTOTrainer("MODEL", args=args, train_dataset=dataset)
trainer.train()
```

or, in this folder:

```sh
trl kto --model_name_or_path MODEL --dataset_name "$PWD" --output_dir out --max_length 8192 \\
  --per_device_train_batch_size 8 --use_peft
```

- The KL term compares each prompt with the answer of the row before it in the batch. So a batch
  needs at least two rows, the sampling stays sequential (the default), and rows are in a mixed
  order: two neighbours are from different runs wherever there are enough runs, and each batch
  has both labels in the share that the file has. Do not sort the file.
- When one label is rarer, TRL prints the range for `desirable_weight` or `undesirable_weight`.
- `max_length` is 1024 unless given: rows whose prompt is longer are dropped.
"""

EXPORTER = TrlKto()
