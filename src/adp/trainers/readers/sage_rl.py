"""SAGE's ``RLTrainingConfig``: DPO and GRPO. Its own code has no trainer for any of the three."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adp.trainers.config import ABSENT
from adp.trainers.readers.mapping import MappedConfig, Target, given_only, translate
from adp_schema.errors import UsageError

_ALGORITHMS = ("dpo", "ppo", "grpo")

_REFERENCE = "DPO compares with a reference; losses without one are dpo.loss_type simpo"
_COLLECT = "attempts are made by adp collect --n, or by the loop sage"
_PPO = "it is for PPO, which there is not here"


def _algorithm(value: Any, given: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"method": value}


def _reference(value: Any, given: Mapping[str, Any]) -> Mapping[str, Any]:
    if value:
        raise UsageError(f"dpo.reference_free: {_REFERENCE}")
    return {}


def _losses(value: Any, given: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"dpo.loss_type": [value] if isinstance(value, str) else value}


RULES: dict[str, Target] = {
    "algorithm": Target("", "", _algorithm),
    "base_model": Target("model.model_name_or_path"),
    "dpo.beta": Target("dpo.beta"),
    "dpo.reference_free": Target("", "", _reference, off="a reference is the default"),
    "dpo.label_smoothing": Target("dpo.label_smoothing"),
    "dpo.loss_type": Target("", "", _losses),
    "grpo.group_size": Target("grpo.num_generations"),
    "grpo.beta": Target("grpo.beta"),
    "grpo.use_advantage": Target("", "GRPO always learns from advantages"),
    "ppo": Target("", _PPO),
    "kl_coef": Target("", _PPO),
    "gamma": Target("", _PPO),
    "reward_model": Target("", "name rewards as grpo.rewards; adp train reward makes a model"),
    "num_samples_per_prompt": Target("", _COLLECT),
    "num_epochs": Target("training.num_train_epochs"),
    "batch_size": Target("training.per_device_train_batch_size"),
    "gradient_accumulation": Target("training.gradient_accumulation_steps"),
    "gradient_accumulation_steps": Target("training.gradient_accumulation_steps"),
    "learning_rate": Target("training.learning_rate"),
    "warmup_ratio": Target("training.warmup_steps"),
    "max_length": Target("render.max_length"),
    "seed": Target("", "", given_only("training.seed")),
    "output_dir": Target("output_dir"),
}


def is_sage_rl(given: Mapping[str, Any]) -> bool:
    """Whether a file is one of these."""
    ours = "method" in given or isinstance(given.get("training"), dict)
    return given.get("algorithm") in _ALGORITHMS and not ours


def read_sage_rl(given: Mapping[str, Any]) -> MappedConfig:
    """Read the settings.

    Raises:
        UsageError: it asks for PPO, or for a DPO without a reference.
    """
    algorithm = given["algorithm"]
    if algorithm in ABSENT:
        raise UsageError(f"algorithm: there is no {algorithm} here: {ABSENT[algorithm]}")
    return translate("SAGE", _flat(given), RULES)


def _flat(given: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of one algorithm under its name; its section may be called dpo or dpo_config."""
    results: dict[str, Any] = {}
    for name, value in given.items():
        section = name.removesuffix("_config")
        if section in ("dpo", "grpo") and isinstance(value, Mapping):
            results.update({f"{section}.{key}": item for key, item in value.items()})
        else:
            results["ppo" if section == "ppo" else name] = value
    return results
