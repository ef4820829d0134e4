"""What every configuration of TRL gets from ours."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from adp.trainers.config import TrainConfig
from adp.trainers.lora import loraplus_optimizer
from adp.trainers.precision import choose
from adp.trainers.rows import EVAL, TRAIN, read_arrow
from adp_schema.errors import UsageError, unknown_name

if TYPE_CHECKING:
    from transformers import TrainingArguments

_AS_THEY_ARE = (
    "num_train_epochs", "max_steps", "per_device_train_batch_size", "per_device_eval_batch_size",
    "gradient_accumulation_steps", "lr_scheduler_type", "warmup_steps", "weight_decay",
    "max_grad_norm", "optim", "adam_beta1", "adam_beta2", "adam_epsilon", "fp16", "tf32",
    "train_sampling_strategy", "seed", "logging_steps", "save_strategy", "save_steps",
    "save_total_limit", "save_only_model", "eval_steps", "full_determinism",
    "dataloader_num_workers",
)  # fmt: skip

OURS = frozenset(
    {*_AS_THEY_ARE, "output_dir", "learning_rate", "bf16", "gradient_checkpointing",
     "activation_checkpointing", "eval_strategy", "use_cpu", "report_to", "run_name", "deepspeed",
     "max_length", "packing", "packing_strategy", "padding_free", "dataset_kwargs",
     "model_init_kwargs", "assistant_only_loss", "completion_only_loss", "loss_type",
     "truncation_mode", "remove_unused_columns", "logging_dir", "resume_from_checkpoint",
     "push_to_hub", "hub_token"}
)  # fmt: skip
"""Fields that ``training.other`` does not set."""


def trainer_arguments(
    config: TrainConfig, model: Any, tokenizer: Any, folder: Path, callbacks: Sequence[Any]
) -> dict[str, Any]:
    """Arguments that all of TRL's trainers take.

    Args:
        config: the run.
        model: what is trained.
        tokenizer: its tokenizer.
        folder: with the prepared rows.
        callbacks: callbacks of the trainer.
    """
    return {
        "model": model,
        "train_dataset": read_arrow(folder / TRAIN),
        "eval_dataset": read_arrow(folder / EVAL),
        "processing_class": tokenizer,
        "callbacks": list(callbacks),
        "optimizers": (loraplus_optimizer(model, config), None),
    }


def common_arguments(config: TrainConfig, out: Path) -> dict[str, Any]:
    """Arguments that all of TRL's configurations take.

    Args:
        config: the run.
        out: folder of the run; checkpoints lie in ``checkpoints`` in it.
    """
    import torch

    training = config.training
    results: dict[str, Any] = {name: getattr(training, name) for name in _AS_THEY_ARE}
    cpu = training.use_cpu or not torch.cuda.is_available()
    strategy = training.eval_strategy or "epoch"
    reports = list(config.report.report_to)
    if config.report.tensorboard and "tensorboard" not in reports:
        reports.append("tensorboard")
    results |= {
        "output_dir": str(out / "checkpoints"),
        "learning_rate": config.learning_rate,
        "bf16": choose(config).compute == "bfloat16",
        "eval_strategy": strategy if config.evaluates else "no",
        "use_cpu": cpu,
        "dataloader_pin_memory": not cpu,
        "report_to": reports or "none",
        "run_name": config.report.run_name,
        "disable_tqdm": True,
        "prediction_loss_only": True,
        "logging_nan_inf_filter": False,
        "ddp_find_unused_parameters": False,
        checkpointing_name(): training.gradient_checkpointing,
    }
    if config.evaluate is not None and config.launch.processes > 1:
        # The others wait while the first process tries the model.
        results["ddp_timeout"] = 24 * 60 * 60
    if training.gradient_checkpointing:
        results[f"{checkpointing_name()}_kwargs"] = {"use_reentrant": config.launch.zero == 3}
    return {**results, **training.other}


def checkpointing_name() -> str:
    """What transformers calls gradient checkpointing: it has another name since 5.23."""
    from transformers import TrainingArguments

    names = {field.name for field in dataclasses.fields(TrainingArguments)}
    new = "activation_checkpointing"
    return new if new in names else "gradient_checkpointing"


def check_other(config: TrainConfig, kind: type[TrainingArguments]) -> None:
    """Check that each field of ``training.other`` is one of TRL's, and none that is set elsewhere.

    Args:
        config: the run.
        kind: TRL's configuration of the method.

    Raises:
        UsageError: one is not.
    """
    names = {field.name for field in dataclasses.fields(kind)}
    for name in config.training.other:
        if name in OURS:
            raise UsageError(
                f"training.other does not take {name}: it has its own place in the configuration"
            )
        if name not in names:
            raise UsageError(f"training.other: {unknown_name('field', name, names - OURS)}")
