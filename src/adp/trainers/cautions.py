"""What a run is warned of before it starts: it may go well, and it may not.

What cannot go well is refused, by `adp.trainers.incompatible`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from adp.trainers.config import TrainConfig
from adp.trainers.machine import Machine

MASK_BYTES = 2 << 30
"""A mask of a packed batch that is larger than this is refused."""


def cautions(config: TrainConfig, machine: Machine) -> list[str]:
    """Warnings, one sentence each.

    Args:
        config: the run.
        machine: where it runs.
    """
    return [sentence for caution in CAUTIONS for sentence in caution(config, machine)]


def mask_bytes(config: TrainConfig, machine: Machine) -> int:
    """Bytes of the mask that keeps packed rows apart; 0 where the attention needs none.

    Without a kernel for rows of several lengths, transformers writes a mask of all pairs of places
    of a batch, whose rows TRL lays behind one another.
    """
    training = config.training
    on_gpu = machine.gpus > 0 and not training.use_cpu
    dense = config.model.attn_implementation in (None, "sdpa", "eager")
    if not (training.packing and on_gpu and dense):
        return 0
    places = training.per_device_train_batch_size * (config.render.max_length or 0)
    return 2 * places * places


def _packing(config: TrainConfig, machine: Machine) -> Iterator[str]:
    size = mask_bytes(config, machine)
    if size:
        yield (
            f"packed rows without flash attention need a mask of {size / 2**30:.1f} GiB a batch "
            "and slower kernels; install flash-attn and set model.attn_implementation: "
            "flash_attention_2, or leave out training.packing"
        )


def _all_weights(config: TrainConfig, machine: Machine) -> Iterator[str]:
    """Memory that training all weights takes before a token is read."""
    adapter = config.lora is not None or config.model.adapter_name_or_path is not None
    if adapter or config.is_tiny or config.launch.zero or config.launch.fsdp:
        return
    if machine.gpu_bytes == 0 or config.training.use_cpu:
        return
    count = parameters(config)
    if count is None:
        return
    size = 2 if config.model.dtype in ("bfloat16", "float16") else 4
    # Weights, their gradients, and the two averages of Adam.
    needed = 4 * size * count
    if needed > 0.8 * machine.gpu_bytes:
        yield (
            f"training all {count / 1e9:.1f} billion weights takes {needed / 1e9:.0f} GB on each "
            f"GPU before a token is read, and it has {machine.gpu_bytes / 1e9:.0f} GB; use an "
            "adapter, --fsdp or --zero 3"
        )


def parameters(config: TrainConfig) -> int | None:
    """Number of weights of a model, by its configuration; None when that is not at hand."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    model = config.model
    try:
        shape = AutoConfig.from_pretrained(
            model.model_name_or_path,
            revision=model.model_revision,
            trust_remote_code=model.trust_remote_code,
        )
        with torch.device("meta"):
            made = AutoModelForCausalLM.from_config(
                shape, trust_remote_code=model.trust_remote_code
            )
    except (OSError, ValueError, ImportError, RuntimeError):
        return None  # loading the model will say what is wrong
    return sum(int(parameter.numel()) for parameter in made.parameters())


def _untried(config: TrainConfig, machine: Machine) -> Iterator[str]:
    """What nobody has tried on a GPU yet with this program."""
    launch, model = config.launch, config.model
    ways = {
        "ZeRO": launch.zero,
        "FSDP2": launch.fsdp,
        "several machines": launch.num_machines > 1,
        "weights in 4 or 8 bits": model.load_in_4bit or model.load_in_8bit,
        "Liger kernels": config.training.other.get("use_liger_kernel"),
    }
    names = [name for name, chosen in ways.items() if chosen]
    if names and machine.gpus:
        yield f"not tested on GPUs: {', '.join(names)}; look at the first steps before you wait"


CAUTIONS: tuple[Callable[[TrainConfig, Machine], Iterator[str]], ...] = (
    _packing,
    _all_weights,
    _untried,
)
"""All of them, in the order in which they are told."""
