"""LoRA and its relatives, by PEFT: LoRA, DoRA, rsLoRA, PiSSA, OLoRA; the optimiser of LoRA+."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from adp.trainers.config import LoraSection, TrainConfig

if TYPE_CHECKING:
    from peft import LoraConfig, PeftModel


def peft_config(section: LoraSection, *, scores: bool = False) -> LoraConfig:
    """PEFT's configuration of an adapter.

    Args:
        section: the section ``lora``.
        scores: the model gives a number; its head is trained and saved with the adapter.
    """
    from peft import LoraConfig

    targets = section.target_modules
    return LoraConfig(
        task_type="SEQ_CLS" if scores else "CAUSAL_LM",
        r=section.r,
        lora_alpha=section.lora_alpha,
        lora_dropout=section.lora_dropout,
        target_modules=targets if isinstance(targets, str) else list(targets),
        exclude_modules=list(section.exclude_modules) if section.exclude_modules else None,
        modules_to_save=list(section.modules_to_save) if section.modules_to_save else None,
        bias=section.bias,
        use_dora=section.use_dora,
        use_rslora=section.use_rslora,
        init_lora_weights=section.init_lora_weights,
    )


def add_adapter(model: Any, config: TrainConfig, folder: Path | None = None) -> Any:
    """Put the adapter on a model: the one to go on with, or a new one.

    Args:
        model: a causal language model of transformers.
        config: with or without the section ``lora``.
        folder: where PiSSA and OLoRA keep how the adapter began, for `save_adapter`.

    Returns:
        A `PeftModel`; without an adapter the model itself.
    """
    from peft import PeftModel, get_peft_model

    old = config.model.adapter_name_or_path
    # With ZeRO-3 all weights have one type: its buffers take the type of the first of them.
    more = {"autocast_adapter_dtype": False} if config.launch.zero == 3 else {}
    if old is not None:
        return PeftModel.from_pretrained(model, old, is_trainable=True, **more)
    if config.lora is None:
        return model
    made = get_peft_model(model, peft_config(config.lora, scores=config.method == "reward"), **more)
    if config.lora.changes_base and folder is not None and int(os.environ.get("RANK", "0")) == 0:
        default = made.peft_config["default"]
        default.init_lora_weights, name = True, default.init_lora_weights
        made.save_pretrained(str(folder / BEGIN))
        default.init_lora_weights = name
    return made


BEGIN = "adapter_at_begin"


def save_adapter(model: PeftModel, out: Path, folder: Path) -> None:
    """Save the adapter of PiSSA or OLoRA as a plain one that fits the original base model.

    These change the base; the difference between the adapter at the end and at the beginning is
    a LoRA of twice the rank.

    Args:
        model: after the training.
        out: where to.
        folder: what was given to `add_adapter`.
    """
    with warnings.catch_warnings():
        # It is loaded beside the other one for a moment, only to be subtracted.
        warnings.filterwarnings("ignore", ".* changes the base weights of the model")
        model.save_pretrained(
            str(out), path_initial_model_for_weight_conversion=str(folder / BEGIN)
        )


def loraplus_optimizer(model: PeftModel, config: TrainConfig) -> Any:
    """AdamW in which the matrices B learn faster than the matrices A; None when not asked for.

    LoRA+: Hayou, Ghosh, Yu 2024, arXiv 2402.12354, by PEFT's own function.

    Args:
        model: with its adapter.
        config: the run.
    """
    lora, training = config.lora, config.training
    if lora is None or lora.loraplus_lr_ratio is None:
        return None
    import torch
    from peft.optimizers import create_loraplus_optimizer

    return create_loraplus_optimizer(
        model=model,
        optimizer_cls=torch.optim.AdamW,
        lr=config.learning_rate,
        loraplus_lr_ratio=lora.loraplus_lr_ratio,
        loraplus_lr_embedding=lora.loraplus_lr_embedding,
        loraplus_weight_decay=training.weight_decay,
        betas=(training.adam_beta1, training.adam_beta2),
        eps=training.adam_epsilon,
    )
