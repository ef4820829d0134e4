"""The files beside the rows for LLaMA-Factory: dataset_info.json and train.yaml."""

from __future__ import annotations

import json
from typing import Any

from pydantic import Field

from adp.core.options import OptionsModel

DATASET = "adp"


class LlamaFactorySettings(OptionsModel):
    """Options about the training run."""

    model_name_or_path: str = "Qwen/Qwen3-8B"
    """Model that train.yaml names."""
    template: str = Field(default="qwen3_nothink", pattern=r"^\w+$")
    """LLaMA-Factory's template. qwen3_nothink and qwen write every step as it is; qwen3 and
    other reasoning templates put empty thoughts before steps without reasoning."""
    cutoff_len: int = Field(default=32768, ge=8)
    """Tokens of a row in train.yaml; longer rows are cut inside a turn."""


_V0 = """\
# llamafactory-cli train train.yaml   (in this folder)
model_name_or_path: {model}
template: {template}
stage: {stage}
do_train: true
finetuning_type: lora
lora_rank: 16
lora_target: all
{further}dataset: adp
dataset_dir: .
cutoff_len: {cutoff_len}
enable_thinking: true
preserve_thinking: true
output_dir: out
per_device_train_batch_size: 1
gradient_accumulation_steps: 8
learning_rate: {learning_rate}
num_train_epochs: 1.0
lr_scheduler_type: cosine
bf16: true
gradient_checkpointing: true
logging_steps: 10
save_steps: 500
report_to: none
"""

_V1 = """\
# USE_V1=1 llamafactory-cli sft train.yaml   (in this folder)
model: {model}
template: {template}
train_dataset: ./train.jsonl
output_dir: out
cutoff_len: {cutoff_len}
micro_batch_size: 1
global_batch_size: 8
learning_rate: 1.0e-4
num_train_epochs: 1
bf16: true
peft_config:
  name: lora
  r: 16
  lora_alpha: 32
  target_modules: all
"""


def dataset_info(*, ranking: bool) -> str:
    """``dataset_info.json``, in which LLaMA-Factory looks up the data set ``adp``."""
    columns = {"messages": "conversations", "system": "system", "tools": "tools"}
    entry: dict[str, Any] = {"file_name": "train.jsonl", "formatting": "sharegpt"}
    if ranking:
        entry["ranking"] = True
        columns |= {"chosen": "chosen", "rejected": "rejected"}
    return json.dumps({DATASET: {**entry, "columns": columns}}, indent=2) + "\n"


def train_yaml(settings: LlamaFactorySettings, *, further: str, ranking: bool) -> str:
    """``train.yaml`` for the engine that LLaMA-Factory uses by default.

    Args:
        settings: of the run.
        further: more lines.
        ranking: whether the rows are pairs.
    """
    return _V0.format(
        model=json.dumps(settings.model_name_or_path),
        template=settings.template,
        cutoff_len=settings.cutoff_len,
        further=further,
        stage="dpo" if ranking else "sft",
        learning_rate="5.0e-6" if ranking else "1.0e-4",
    )


def v1_yaml(settings: LlamaFactorySettings) -> str:
    """``train.yaml`` for the engine v1."""
    return _V1.format(
        model=json.dumps(settings.model_name_or_path),
        template=settings.template,
        cutoff_len=settings.cutoff_len,
    )
