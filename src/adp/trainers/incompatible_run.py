"""More combinations that go wrong: trials during the training, FSDP, several machines, kernels.

As those of `adp.trainers.incompatible`: each rule is one sentence, or nothing.
"""

from __future__ import annotations

from collections.abc import Callable

from adp.trainers.cautions import MASK_BYTES, mask_bytes
from adp.trainers.config import TrainConfig
from adp.trainers.evaluation.history import stopping_metric
from adp.trainers.machine import Machine
from adp.trainers.replay import new_rows, step_rows


def _reward(config: TrainConfig, machine: Machine) -> str | None:
    lora = config.lora
    if config.method != "reward" or lora is None:
        return None
    if lora.changes_base:
        return (
            f"{lora.init_lora_weights} changes the base under a head that is trained as a whole; "
            "use lora.init_lora_weights: true for a reward model"
        )
    return None


def _replay(config: TrainConfig, machine: Machine) -> str | None:
    section = config.data.replay
    if section is None:
        return None
    if config.method != "sft":
        return (
            f"data.replay mixes rows into the steps of SFT, and {config.method} takes other rows; "
            "replay between its rounds, with the op replay of a recipe"
        )
    strategy = config.training.train_sampling_strategy
    if strategy == "group_by_length":
        return "data.replay says the order of the rows; leave out training.train_sampling_strategy"
    if config.training.other.get("dataloader_drop_last"):
        return "data.replay counts on whole epochs; leave out training.other.dataloader_drop_last"
    total = step_rows(config)
    if not new_rows(total, section.ratio):
        return (
            f"data.replay.ratio {section.ratio:g} leaves no room for a new row in steps of "
            f"{total} rows; use a smaller ratio, or more training.gradient_accumulation_steps"
        )
    if section.reservoir and config.training.packing:
        return "a reservoir takes up rows, and packs hold several; leave out training.packing"
    if section.size is not None and not section.reservoir:
        return "data.replay.size is that of a reservoir; add data.replay.reservoir: true"
    return None


def _evaluate(config: TrainConfig, machine: Machine) -> str | None:
    section, launch = config.evaluate, config.launch
    if section is None:
        return None
    if launch.zero or launch.fsdp:
        return (
            "evaluate tries the model in one process, and ZeRO and FSDP split it over all; leave "
            "out evaluate, or train with --launch alone"
        )
    if section.keep_best and config.lora is not None and config.lora.changes_base:
        return (
            f"{config.lora.init_lora_weights} converts its adapter at the end of a run, so no "
            "other one can be kept; set evaluate.keep_best: false"
        )
    if config.method == "reward":
        return "a reward model gives numbers and no turns; leave out evaluate"
    if section.suite is None and section.env is None:
        return "evaluate says nothing to try the model on; give evaluate.env or evaluate.suite"
    return None


def _early_stopping(config: TrainConfig, machine: Machine) -> str | None:
    if config.early_stopping is None:
        return None
    metric = stopping_metric(config)
    if metric != "loss" and config.evaluate is None:
        return (
            f"early_stopping watches {metric}, which nothing measures; give the section evaluate, "
            "or watch the loss of held-out rows: early_stopping.metric: loss"
        )
    if metric == "loss" and (not config.evaluates or config.training.eval_strategy == "no"):
        return (
            "early_stopping watches the loss of held-out rows, and there are none to measure; give "
            "data.eval_store or data.eval_share"
        )
    return None


def _fsdp(config: TrainConfig, machine: Machine) -> str | None:
    launch, lora, model = config.launch, config.lora, config.model
    if not launch.fsdp:
        return None
    if launch.zero:
        return "give launch.fsdp or launch.zero, not both: both split the model"
    if config.method not in ("sft", "dpo", "kto"):
        return (
            f"{config.method} was not tried with FSDP, which splits the model that has to write; "
            "use --launch alone, or --zero 2"
        )
    if model.load_in_4bit or model.load_in_8bit:
        return (
            "FSDP cannot split weights in 4 or 8 bits; leave out model.load_in_4bit and 8bit, or "
            "use --launch alone"
        )
    if lora is not None and lora.loraplus_lr_ratio is not None:
        return (
            "LoRA+ does not go with FSDP, which splits the weights before the optimiser is made; "
            "use --launch alone, or no lora.loraplus_lr_ratio"
        )
    if lora is not None and lora.changes_base:
        return (
            f"{lora.init_lora_weights} needs whole weights at the beginning and the end, which "
            "FSDP splits; use lora.init_lora_weights: true"
        )
    if config.training.use_cpu or machine.gpus == 0:
        return (
            "FSDP needs GPUs: accelerate would train every process on the whole model on a CPU, "
            "and say nothing; use --launch alone"
        )
    return None


def _packed_mask(config: TrainConfig, machine: Machine) -> str | None:
    size = mask_bytes(config, machine)
    if size <= MASK_BYTES:
        return None
    return (
        f"packed rows without flash attention would need a mask of {size / 2**30:.1f} GiB a batch; "
        "install flash-attn and set model.attn_implementation: flash_attention_2, or lower "
        "render.max_length or training.per_device_train_batch_size"
    )


def _flash(config: TrainConfig, machine: Machine) -> str | None:
    attention = config.model.attn_implementation or ""
    if not attention.startswith(("flash", "kernels-")):
        return None
    if config.training.use_cpu or machine.gpus == 0:
        return f"{attention} needs a GPU, and there is none; use sdpa"
    if config.training.bf16 is False and not config.training.fp16:
        return (
            f"{attention} computes in 16 bits, so the loss would not be that of float32; use sdpa, "
            "or leave out training.bf16: false"
        )
    return None


def _liger(config: TrainConfig, machine: Machine) -> str | None:
    other = config.training.other
    if not other.get("use_liger_kernel"):
        return None
    kernels = other.get("liger_kernel_config") or {}
    if isinstance(kernels, dict) and kernels.get("fused_linear_cross_entropy"):
        return (
            "Liger's fused_linear_cross_entropy takes the place of the head from which TRL takes "
            "the log-probabilities of trained tokens; leave it out"
        )
    if config.method in ("dpo", "kto", "reward", "distill"):
        return (
            f"the exact masks of {config.method.upper()} are laid on what TRL's own forward pass "
            "gives, which Liger replaces; leave out training.other.use_liger_kernel"
        )
    if config.evaluates:
        return (
            "with Liger, transformers measures the loss of held-out rows by a call that TRL's head "
            "does not know; leave out training.other.use_liger_kernel, or the rows to measure"
        )
    if config.training.use_cpu or machine.gpus == 0:
        return "Liger's kernels need a GPU; leave out training.other.use_liger_kernel"
    if not machine.liger:
        return "training.other.use_liger_kernel needs a package; run: pip install liger-kernel"
    return None


RUN_RULES: tuple[Callable[[TrainConfig, Machine], str | None], ...] = (
    _reward,
    _replay,
    _evaluate,
    _early_stopping,
    _fsdp,
    _packed_mask,
    _flash,
    _liger,
)
"""These rules, in the order in which they are told."""
