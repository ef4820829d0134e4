"""``trl-sft``: supervised fine-tuning with TRL, as messages or as tokens.

TRL has no mark for a single message, so messages carry only "every message of the assistant is
trained". Tokens carry any mask: labels of -100 are not trained. Fractional weights need a column
that TRL's own trainer does not read, so they are written only when asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from pydantic import model_validator

from adp.trainers.export.exporter import ExportCounts, ExportItem, Form
from adp.trainers.export.messages import MessageOptions, tools_text, values
from adp.trainers.export.readme import Types, loading, page

_TYPES: Types = {"messages": "messages", "tools": "string", "trajectory_id": "string"}

_INSTEAD = "use --set form=tokens --model MODEL, or --to trl-prompt-completion --set expand=true"


class SftOptions(MessageOptions):
    """Options of ``trl-sft``."""

    form: Literal["messages", "tokens"] = "messages"
    """messages: for any model, every message of the assistant is trained; tokens: for one model
    (--model), with exactly the trained steps under the loss."""
    weights: bool = False
    """tokens: write a column loss_weights, for weights other than 0 and 1. TRL's own trainer
    does not read it; adp train does."""

    @model_validator(mode="after")
    def _fit(self) -> SftOptions:
        if self.weights and self.form != "tokens":
            raise ValueError("weights needs form=tokens")
        return self


class TrlSft:
    """The exporter."""

    name = "trl-sft"
    title = "TRL SFT: messages and tools, or the tokens of a model with labels"
    takes = "chats"
    mask = "all"
    file = "train.jsonl"
    options = SftOptions

    def form(self, options: SftOptions) -> Form:
        """Messages or tokens."""
        if options.form == "messages":
            return Form("chats", "all", self.file, instead=_INSTEAD)
        mask: Literal["tokens", "binary"] = "tokens" if options.weights else "binary"
        return Form("chats", mask, "train.parquet", model=True)

    def schema(self, options: SftOptions) -> Any:
        """Columns of the tokens; one list an entry a token."""
        if options.form == "messages":
            return None
        import pyarrow as pa

        fields = [
            ("input_ids", pa.list_(pa.int32())),
            ("labels", pa.list_(pa.int32())),
            ("step_index", pa.list_(pa.int32())),
            ("trajectory_id", pa.string()),
            ("context_cut", pa.bool_()),
        ]
        if options.weights:
            fields.insert(2, ("loss_weights", pa.list_(pa.float32())))
        return pa.schema(fields)

    def rows(
        self, item: ExportItem, options: SftOptions, tally: ExportCounts
    ) -> Iterator[dict[str, Any]]:
        """One row a chat; of tokens, as many as the window makes."""
        if options.form == "tokens":
            tally.left_out += item.rendered.lost
            tally.changed += item.rendered.notes
            for row in item.rendered.rows:
                yield {
                    "input_ids": row.input_ids,
                    "labels": row.labels,
                    "loss_weights": row.loss_weights,
                    "step_index": row.step_index,
                    "trajectory_id": row.trajectory_id,
                    "context_cut": row.context_cut,
                }
            return
        assert item.chat is not None
        yield {
            "messages": values(item.chat.messages, options),
            "tools": tools_text(item.chat.tools),
            "trajectory_id": item.chat.trajectory_id,
        }

    def files(self, options: SftOptions, facts: Mapping[str, Any]) -> Mapping[str, str]:
        """How to train on it."""
        if options.form == "tokens":
            body = _TOKENS + (_WEIGHTS if options.weights else "")
            return {"README.md": page("Tokens for TRL's SFTTrainer", body, facts)}
        body = loading(_TYPES, facts["file"], as_text=options.as_text) + _MESSAGES
        return {"README.md": page("Messages for TRL's SFTTrainer", body, facts, _TYPES)}


_MESSAGES = """
## Train on it

```python
from trl import SFTConfig, SFTTrainer

args = SFTConfig(output_dir="out", assistant_only_loss=True, max_length=8192)
trainer = SFTTrainer("MODEL", args=args, train_dataset=dataset)
trainer.train()
```

or, in this folder:

```sh
trl sft --model_name_or_path MODEL --dataset_name "$PWD" --output_dir out \\
  --assistant_only_loss true --max_length 8192 --use_peft
```

- `assistant_only_loss` is needed: without it TRL trains on users, tools and system prompts too.
  It needs a chat template with `{% generation %}`; TRL has one for some families and refuses
  others. For any other model, and for masked steps, export tokens: `--set form=tokens --model
  MODEL`.
- `max_length` is 1024 unless given: longer rows lose their end, which may be the answer. Rows
  are never cut at steps here; tokens are (`--set form=tokens --set max_length=8192 --set
  window=sliding`).
- Of Qwen3, TRL's training template writes reasoning of all turns, and an empty `<think>` where
  there is none; at inference the model sees another text.
- A model given by name is loaded in float32 unless `model_init_kwargs={"dtype": "bfloat16"}`.
"""

_TOKENS = """
Columns: `input_ids`; `labels`, -100 where nothing is trained; `step_index`, the step that a token
trains, else -1; `trajectory_id`; `context_cut`, whether messages were left out to fit the window.

## Load it

```python
from datasets import load_dataset

dataset = load_dataset("parquet", data_files="train.parquet", split="train")
```

## Train on it

```python
from trl import SFTConfig, SFTTrainer

args = SFTConfig(output_dir="out", max_length=None)
trainer = SFTTrainer("MODEL", args=args, train_dataset=dataset)
trainer.train()
```

- Use the very model, or one with the same tokenizer and chat template, that the export names
  below.
- `max_length=None` keeps the rows whole: 1024 is TRL's default, and it would cut the end of
  longer ones. Choose the length in the export: `--set max_length=8192 --set window=sliding`.
- To pack rows, give `packing=True, max_length=N` with N at least the longest row.
- Do not give `assistant_only_loss` or `completion_only_loss`: the labels say it all.
"""

_WEIGHTS = """- The column `loss_weights` holds the weight of each token. TRL's own trainer does
  not read it and gives every trained token the weight 1; `adp train sft` reads
  it.
"""

EXPORTER = TrlSft()
