"""``verl-sft``: tokens with their weights, and the dataset class that gives them to verl.

verl's own dataset trains every message of the assistant and has no mark for single ones. So the
rows are tokens, as `adp.render` makes them, and ``data.custom_cls`` names the class that lies
beside them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from adp.trainers.export.exporter import ExportCounts, ExporterOptions, ExportItem, Form
from adp.trainers.export.readme import page
from adp.trainers.export.verl_rl import shipped

BODY = """\
## Train

With verl 0.9.1, in this folder:

```sh
torchrun --standalone --nproc_per_node=1 -m verl.trainer.sft_trainer \\
    data.train_files=$PWD/train.parquet \\
    data.custom_cls.path=$PWD/adp_verl_dataset.py data.custom_cls.name=MaskedRows \\
    data.pad_mode=no_padding data.max_length=32768 data.train_batch_size=64 \\
    data.micro_batch_size_per_gpu=1 data.use_dynamic_bsz=False \\
    model.path={model} optim.lr=1e-5 \\
    trainer.total_epochs=1 trainer.default_local_dir=out "trainer.logger=['console']"
```

- The rows are tokens of one model: train the model whose tokenizer made them.
- `loss_mask` is the weight of each token. With the FSDP engines of verl a weight may be any
  number; Megatron's takes what is not 0 as 1.
- Without `data.custom_cls` verl cannot read the rows.
- A row of more than `data.max_length` tokens is refused. Export with `--set max_length=...` and
  `--set window=...` to cut at steps.
"""


class VerlSftOptions(ExporterOptions):
    """Options of ``verl-sft``."""

    model_name_or_path: str = "Qwen/Qwen3-8B"
    """Model that the README names."""


class VerlSft:
    """Tokens and a weight for each."""

    name = "verl-sft"
    title = "verl: tokens with weights, and the dataset class that reads them"
    takes = "chats"
    mask = "tokens"
    file = "train.parquet"
    options = VerlSftOptions

    def form(self, options: VerlSftOptions) -> Form:
        """Tokens of a model."""
        return Form("chats", "tokens", self.file, model=True)

    def schema(self, options: VerlSftOptions) -> Any:
        """Columns as the shipped class reads them."""
        import pyarrow as pa

        return pa.schema(
            [
                ("trajectory_id", pa.string()),
                ("segment", pa.int32()),
                ("window", pa.int32()),
                ("input_ids", pa.list_(pa.int32())),
                ("loss_mask", pa.list_(pa.float32())),
            ]
        )

    def rows(
        self, item: ExportItem, options: VerlSftOptions, tally: ExportCounts
    ) -> Iterator[dict[str, Any]]:
        """A row for each row of tokens."""
        tally.left_out += item.rendered.lost
        tally.changed += item.rendered.notes
        for row in item.rendered.rows:
            yield {
                "trajectory_id": row.trajectory_id,
                "segment": row.segment,
                "window": row.window,
                "input_ids": row.input_ids,
                "loss_mask": row.loss_weights,
            }

    def files(self, options: VerlSftOptions, facts: Mapping[str, Any]) -> Mapping[str, str]:
        """README and the dataset class."""
        body = BODY.format(model=options.model_name_or_path)
        return {
            "README.md": page("verl, supervised", body, facts),
            "adp_verl_dataset.py": shipped("adp_verl_dataset.py"),
        }


EXPORTER = VerlSft()
