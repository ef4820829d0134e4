"""Combinations that are known to go wrong, each refused in one sentence before anything is loaded.

Every rule is a function from the configuration (and the machine) to the sentence, or to nothing.
Sources: the code of TRL 1.16, PEFT 0.21, transformers 5.23, DeepSpeed 0.19, and tries of our own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from adp.trainers.config import TrainConfig
from adp.trainers.distill_rules import distill_faults
from adp.trainers.environment_rules import environment_faults
from adp.trainers.incompatible_run import RUN_RULES
from adp.trainers.machine import Machine, this_machine
from adp_schema.errors import UsageError


def refuse(config: TrainConfig, machine: Machine | None = None) -> None:
    """Refuse what cannot go well.

    Args:
        config: the run.
        machine: where it would run; None looks.

    Raises:
        UsageError: the first fault, with what to do about it.
    """
    for sentence in faults(config, machine or this_machine()):
        raise UsageError(sentence)


def faults(config: TrainConfig, machine: Machine) -> Iterator[str]:
    """All faults, one sentence each."""
    for rule in RULES:
        sentence = rule(config, machine)
        if sentence:
            yield sentence
    yield from environment_faults(config)
    yield from distill_faults(config)


def _no_data(config: TrainConfig, machine: Machine) -> str | None:
    acting = config.method == "grpo" and config.grpo.environment is not None
    if config.data.store is None and not acting:
        return "say what to train on: data.store, or adp train METHOD STORE"
    return None


def _two_lengths(config: TrainConfig, machine: Machine) -> str | None:
    if config.data.trained_tokens is None:
        return None
    if config.method != "sft":
        return "data.trained_tokens is for SFT; use training.max_steps"
    if config.training.num_train_epochs != 1 or config.training.max_steps > 0:
        return (
            "data.trained_tokens says how long the training is; leave out "
            "training.num_train_epochs and training.max_steps"
        )
    return None


def _no_length(config: TrainConfig, machine: Machine) -> str | None:
    # A model that acts stops at the end of its context; nothing is cut from its rows.
    acting = config.method == "grpo" and config.grpo.environment is not None
    if config.render.max_length is None and not config.is_tiny and not acting:
        return (
            "render.max_length is missing: say how many tokens a row may have, such as 16384; "
            "longer ones are then treated by render.window, and counted"
        )
    longest = config.model.tiny.max_position_embeddings
    if config.is_tiny and (config.render.max_length or 0) > longest:
        return (
            f"render.max_length {config.render.max_length} is more than the model tiny takes; "
            f"set model.tiny.max_position_embeddings higher than {longest}"
        )
    return None


def _loraplus(config: TrainConfig, machine: Machine) -> str | None:
    lora, training = config.lora, config.training
    if lora is None or lora.loraplus_lr_ratio is None:
        return None
    if config.launch.zero == 3:
        return (
            "LoRA+ does not go with ZeRO-3, where DeepSpeed has to split the weights before the "
            "optimiser is made; use --zero 2, or no lora.loraplus_lr_ratio"
        )
    if training.optim not in ("adamw_torch", "adamw_torch_fused"):
        return f"LoRA+ has its own AdamW; leave out training.optim, not {training.optim}"
    return None


def _lora_target(config: TrainConfig, machine: Machine) -> str | None:
    if config.lora is None:
        return None
    targets = config.lora.target_modules
    names = [targets] if isinstance(targets, str) else targets
    if any(name.rsplit(".", 1)[-1] in ("lm_head", "embed_out") for name in names):
        return (
            "an adapter on lm_head would never be trained, because TRL computes the loss from its "
            "weights directly; take it out of lora.target_modules, or put it into "
            "lora.modules_to_save"
        )
    return None


def _lora_init(config: TrainConfig, machine: Machine) -> str | None:
    lora, model = config.lora, config.model
    if lora is None or not lora.changes_base:
        return None
    name = lora.init_lora_weights
    named = {
        "dpo": config.dpo.ref_model_name_or_path,
        "kto": config.kto.ref_model_name_or_path,
    }
    if config.method in named and named[config.method] is None:
        return (
            f"{name} changes the base model, so the model without its adapter is no reference for "
            f"{config.method.upper()}; use lora.init_lora_weights: true, or name "
            f"{config.method}.ref_model_name_or_path"
        )
    if config.method == "grpo" and config.grpo.beta > 0:
        return (
            f"{name} changes the base model, so the model without its adapter is no reference; "
            "use lora.init_lora_weights: true, or grpo.beta: 0"
        )
    if config.launch.zero == 3:
        return f"{name} needs whole weights, which ZeRO-3 splits; use --zero 2"
    if lora.use_dora:
        return f"DoRA with {name} cannot be converted to fit the original base; use one of the two"
    if model.load_in_4bit or model.load_in_8bit:
        return f"{name} needs weights that are not quantised; leave out model.load_in_4bit and 8bit"
    return None


def _adapter_twice(config: TrainConfig, machine: Machine) -> str | None:
    if config.model.adapter_name_or_path is not None and config.lora is None:
        return (
            "lora: null trains all weights, and model.adapter_name_or_path goes on with an "
            "adapter; merge it first (adp merge-adapter), or leave out lora: null"
        )
    return None


def _kto_batch(config: TrainConfig, machine: Machine) -> str | None:
    if config.method != "kto" or config.kto.loss_type != "kto":
        return None
    if config.training.per_device_train_batch_size < 2:
        return (
            "KTO compares the rows of a batch with one another; set "
            "training.per_device_train_batch_size to 2 or more, or kto.loss_type: "
            "apo_zero_unpaired"
        )
    if config.training.train_sampling_strategy == "group_by_length":
        return "KTO takes the rows in their order; leave out training.train_sampling_strategy"
    return None


def _quantised(config: TrainConfig, machine: Machine) -> str | None:
    model = config.model
    if not (model.load_in_4bit or model.load_in_8bit):
        return None
    bits = "4 bits" if model.load_in_4bit else "8 bits"
    if model.load_in_4bit and model.load_in_8bit:
        return "give model.load_in_4bit or model.load_in_8bit, not both"
    if config.lora is None:
        return f"weights in {bits} cannot be trained; use lora, or leave out model.load_in_4bit"
    if config.launch.zero == 3:
        return f"weights in {bits} do not go with ZeRO-3, which cannot split them; use --zero 2"
    if config.is_tiny:
        return f"the model tiny is not loaded in {bits}; leave that out for trials"
    if machine.gpus == 0 or config.training.use_cpu:
        return f"weights in {bits} need a GPU of NVIDIA, and there is none; leave that out"
    if not machine.bitsandbytes:
        return (
            f"weights in {bits} need the package bitsandbytes; run: pip install 'adp[bitsandbytes]'"
        )
    return None


def _packing(config: TrainConfig, machine: Machine) -> str | None:
    training, model = config.training, config.model
    if not training.packing:
        return None
    if config.method != "sft":
        return f"only SFT packs rows; leave out training.packing for {config.method}"
    if training.packing_strategy == "wrapped":
        return "packing by wrapped lets rows see one another and cuts them; use bfd"
    if training.packing_strategy == "bfd_split":
        return "packing by bfd_split cuts rows in pieces without their context; use bfd"
    known = (None, "sdpa", "eager", "flex_attention")
    attention = model.attn_implementation
    if attention not in known and not str(attention).startswith(("flash", "kernels-")):
        return (
            f"it is not known that {attention} keeps packed rows apart; use sdpa, eager, "
            "flex_attention or flash_attention_2"
        )
    if training.train_sampling_strategy == "group_by_length":
        return "packed rows are of like length already; leave out train_sampling_strategy"
    return None


def _precision(config: TrainConfig, machine: Machine) -> str | None:
    training = config.training
    if training.bf16 is True and training.fp16:
        return "give training.bf16 or training.fp16, not both"
    full = config.lora is None and not config.launch.zero
    if training.fp16 and full and config.model.dtype == "float16":
        return (
            "training.fp16 scales gradients of float32 weights; use model.dtype: float32 with it, "
            "or training.bf16"
        )
    cpu = training.use_cpu or machine.gpus == 0
    if training.fp16 and cpu:
        return "float16 is not for training on a CPU; leave out training.fp16"
    if training.bf16 is True and not cpu and not machine.bf16:
        return "this GPU does not compute in bfloat16; use training.fp16: true and bf16: false"
    if training.tf32 and (cpu or not machine.tf32):
        return "only GPUs of NVIDIA from Ampere on compute in TF32; leave out training.tf32"
    return None


def _processes(config: TrainConfig, machine: Machine) -> str | None:
    launch = config.launch
    cpu = config.training.use_cpu or machine.gpus == 0
    split = launch.zero or launch.fsdp
    alone = launch.processes == 1 and not machine.launched and not split
    if alone and machine.gpus > 1 and not cpu and config.model.device_map is None:
        return (
            f"{machine.gpus} GPUs are visible and one process would split batches over them, which "
            f"TRL refuses; use --launch {machine.gpus}, or CUDA_VISIBLE_DEVICES=0"
        )
    here = launch.processes // launch.num_machines
    if launch.processes > 1 and not cpu and here > machine.gpus:
        many = "as many GPUs" if here == launch.processes else f"{here} GPUs on each machine"
        return (
            f"--launch {launch.processes} needs {many}, and {machine.gpus} are visible; use fewer"
        )
    if launch.processes > 1 and config.model.device_map is not None:
        return "model.device_map does not go with several processes; leave it out"
    if launch.zero and not machine.deepspeed:
        return "ZeRO needs the package deepspeed; run: pip install 'adp[deepspeed]'"
    if launch.offload and not (launch.zero or launch.fsdp):
        return "launch.offload is for ZeRO and FSDP; add --zero 2, --zero 3 or --fsdp"
    return None


def _reference(config: TrainConfig, machine: Machine) -> str | None:
    if config.method != "dpo":
        return None
    dpo = config.dpo
    adapter = config.lora is not None or config.model.adapter_name_or_path is not None
    if dpo.sync_ref_model and adapter:
        return "dpo.sync_ref_model moves a whole model, and there is only an adapter; leave it out"
    if dpo.sync_ref_model and dpo.precompute_ref_log_probs:
        return (
            "dpo.precompute_ref_log_probs computes the reference once, and sync_ref_model moves "
            "it; use one of the two"
        )
    return None


RULES: tuple[Callable[[TrainConfig, Machine], str | None], ...] = (
    _no_data,
    _no_length,
    _two_lengths,
    _precision,
    _quantised,
    _adapter_twice,
    _lora_target,
    _loraplus,
    _lora_init,
    _packing,
    _kto_batch,
    _reference,
    _processes,
    *RUN_RULES,
)
"""All rules, in the order in which they are told."""
