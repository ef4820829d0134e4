"""What DPO and KTO share: the policy, and what it is compared with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from adp.trainers.config import TrainConfig
from adp.trainers.config_methods import DpoSection, KtoSection
from adp_schema.ids import digest


def is_held_out(task: str, share: float) -> bool:
    """Whether a task is among those that the loss is measured on.

    The hash of the task decides, so all trajectories of a task are on the same side.

    Args:
        task: id of the task, or of the trajectory.
        share: share of the tasks to hold out.
    """
    return int(digest(task.encode("utf-8", "surrogatepass"))[:8], 16) < share * 2**32


def policy_and_reference(
    config: TrainConfig, section: DpoSection | KtoSection, folder: Path, *, free: bool = False
) -> tuple[Any, Any, bool]:
    """Load the policy, and what it is compared with.

    Args:
        config: the run. TRL's configuration has to be made before, for ZeRO-3.
        section: of its method.
        folder: of the run.
        free: the loss compares with no reference.

    Returns:
        The policy; a model as the reference, or None where TRL takes the policy itself, without
        its adapter or with the copy that it makes of it; and whether it is to be without.
    """
    from transformers import set_seed

    from adp.trainers.lora import add_adapter
    from adp.trainers.model import load_model

    # New adapters are random, and TRL sets the seed later.
    set_seed(config.training.seed)
    policy = add_adapter(load_model(config, folder), config, folder)
    has_adapter = hasattr(policy, "peft_config")
    continues = config.model.adapter_name_or_path is not None
    # A new adapter changes nothing at first, so the model without it is the model as it was.
    base = has_adapter and (section.reference == "base" or not continues)
    name = section.ref_model_name_or_path
    if free:
        return policy, None, base
    if name is not None:
        named = config.model.model_copy(
            update={"model_name_or_path": name, "adapter_name_or_path": None}
        )
        return policy, load_model(config.model_copy(update={"model": named}), folder), False
    if has_adapter or section.precompute_ref_log_probs:
        return policy, None, base
    return policy, load_model(config, folder), False
