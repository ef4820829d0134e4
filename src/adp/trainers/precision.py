"""The number format of a training: what the configuration asks for and the machine can do.

A processor without instructions for bfloat16 computes in it all the same, by widening and rounding
each number in software. Measured on the training step of ``examples/loop``, one thread, with
oneDNN held to the instructions of older processors: AVX2 takes 7.3 times as long as in float32,
AVX-512 without bf16 2.1 times; with bf16 instructions it takes 0.9 times.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from adp.trainers.config import TrainConfig

Compute = Literal["float32", "bfloat16", "float16"]


@dataclass(frozen=True)
class Precision:
    """Chosen once for a run; a resumed run keeps it, wherever it goes on.

    Attributes:
        compute: number format that the trainer computes in.
        bf16_native: whether the device has instructions for bfloat16.
        emulated: whether bfloat16 is computed in without them.
        device: cpu or cuda.
        chosen: whether the configuration left the choice to the machine.
        weights: number format that the weights are loaded in; None as the configuration says.
    """

    compute: Compute
    bf16_native: bool
    emulated: bool
    device: str
    chosen: bool
    weights: Literal["float32"] | None = None

    def applied(self, config: TrainConfig) -> TrainConfig:
        """The configuration with the choice written out."""
        training = config.training.model_copy(update={"bf16": self.compute == "bfloat16"})
        changed = config.model_copy(update={"training": training})
        if self.weights is None:
            return changed
        model = config.model.model_copy(update={"dtype": self.weights})
        return changed.model_copy(update={"model": model})

    def sentence(self) -> str:
        """What is said about it before the training starts."""
        where = "processor" if self.device == "cpu" else "GPU"
        if self.emulated:
            return (
                f"warning: bf16 is emulated on this {where}, which takes two to seven times as "
                "long as float32; training in bfloat16 as asked (training.bf16: auto, without "
                "model.dtype, lets the machine choose)"
            )
        if self.chosen and not self.bf16_native:
            return f"bf16 is emulated on this {where}: training in float32"
        return f"training in {self.compute}"

    def plain(self) -> dict[str, Any]:
        """As JSON has it."""
        return asdict(self)

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Precision:
        """The other way round."""
        return cls(**plain)


def choose(config: TrainConfig) -> Precision:
    """Choose the number format; imports torch.

    Args:
        config: checked.
    """
    import torch

    training = config.training
    cpu = training.use_cpu or not torch.cuda.is_available()
    device = "cpu" if cpu else "cuda"
    native = bf16_is_native(device)
    chosen = training.bf16 == "auto" and not training.fp16
    compute: Compute = "float32"
    if training.fp16:
        compute = "float16"
    elif training.bf16 is True or (chosen and native):
        compute = "bfloat16"
    # Products of weights in 16 bits are of 16 bits, whatever the arguments of the trainer say: the
    # weights of an adapter's base, which are as they are stored by default, have to be widened.
    widened = cpu and compute == "float32" and not native and config.model.dtype is None
    emulated = not native and "bfloat16" in (compute, config.model.dtype)
    weights: Literal["float32"] | None = "float32" if widened else None
    return Precision(compute, native, emulated, device, chosen, weights)


def bf16_is_native(device: str) -> bool:
    """Whether a device computes in bfloat16 by instructions of its own, not by emulating them.

    Args:
        device: cpu or cuda.
    """
    import torch

    if device != "cpu":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    # oneDNN calls bf16 supported on every processor with AVX-512, and emulates it on those without
    # AVX512-BF16 or AMX; on ARM it asks for the instructions themselves.
    if platform.machine().lower() in ("x86_64", "amd64"):
        return _probe(torch.cpu, "_is_avx512_bf16_supported") or _probe(
            torch.cpu, "_is_amx_tile_supported"
        )
    return _probe(torch.ops.mkldnn, "_is_mkldnn_bf16_supported")


def _probe(owner: Any, name: str) -> bool:
    """Ask torch; False where its build has no such question."""
    try:
        return bool(getattr(owner, name)())
    except (AttributeError, RuntimeError):
        return False
