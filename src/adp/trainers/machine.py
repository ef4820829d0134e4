"""What the machine has that a training would run on."""

from __future__ import annotations

import importlib.util
import os
from dataclasses import dataclass


@dataclass(frozen=True)
class Machine:
    """What the rules ask about the machine.

    Attributes:
        gpus: GPUs that a process sees.
        launched: whether this process was started by a launcher, one for each GPU.
        bitsandbytes: whether the package is installed.
        deepspeed: whether the package is installed.
        bf16: whether the GPU computes in bfloat16, if only by emulating it; on a CPU True.
        tf32: whether there is a GPU that computes in TF32.
        gpu_bytes: memory of the first GPU.
        liger: whether the package liger-kernel is installed.
    """

    gpus: int = 0
    launched: bool = False
    bitsandbytes: bool = False
    deepspeed: bool = True
    bf16: bool = True
    tf32: bool = False
    gpu_bytes: int = 0
    liger: bool = False


def this_machine() -> Machine:
    """Look at the machine; imports torch."""
    import torch

    gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    return Machine(
        gpus=gpus,
        launched="LOCAL_RANK" in os.environ,
        bitsandbytes=importlib.util.find_spec("bitsandbytes") is not None,
        deepspeed=importlib.util.find_spec("deepspeed") is not None,
        bf16=not gpus or bool(torch.cuda.is_bf16_supported()),
        gpu_bytes=torch.cuda.get_device_properties(0).total_memory if gpus else 0,
        liger=importlib.util.find_spec("liger_kernel") is not None,
        tf32=bool(gpus) and torch.cuda.get_device_properties(0).major >= 8,
    )
