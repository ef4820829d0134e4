"""SAGE's ``AgentSFTConfig``, under the names of its code and of its documentation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adp.trainers.readers.mapping import (
    NO_TRACKER,
    MappedConfig,
    Target,
    given_only,
    names,
    put,
    trackers,
    translate,
)

SELECTION = (
    *("task_weights", "max_train_samples", "use_coreset_selection", "coreset_target_size"),
    *("coreset_strategy", "coreset_metric_key", "use_online_continual"),
    *("continual_buffer_size", "continual_replay_ratio"),
)
"""Settings that select, mix and replay data: ops of a recipe (`adp.workflows.loop.sage`)."""

_CURATION = "adp loop with this file selects, mixes and replays, and then trains"
_DATA = "data sets are stores here: data.store and data.eval_store name them"


def _best(value: Any, given: Mapping[str, Any]) -> Mapping[str, Any]:
    if not value:
        return {}
    metric = given.get("metric_for_best_model", "eval_loss")
    return {"training.other": {"load_best_model_at_end": True, "metric_for_best_model": metric}}


def _lora_off(value: Any, given: Mapping[str, Any]) -> Mapping[str, Any]:
    return {} if value else {"lora": None}


def _ratio(value: Any, given: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"lora.loraplus_lr_ratio": value} if given.get("use_lora_plus") else {}


def _plus(value: Any, given: Mapping[str, Any]) -> Mapping[str, Any]:
    if not value or "lora_plus_lr_ratio" in given:
        return {}
    return {"lora.loraplus_lr_ratio": 16.0}


def _shuffle(value: Any, given: Mapping[str, Any]) -> Mapping[str, Any]:
    return {} if value else {"training.train_sampling_strategy": "sequential"}


RULES: dict[str, Target] = {
    "base_model": Target("model.model_name_or_path"),
    "train_data": Target("", _DATA),
    "dev_data": Target("", _DATA),
    "eval_data": Target("", _DATA),
    "task_weights": Target("", _CURATION),
    "max_length": Target("render.max_length"),
    "max_seq_length": Target("render.max_length"),
    "load_in_8bit": Target("model.load_in_8bit"),
    "load_in_4bit": Target("model.load_in_4bit"),
    "fp16": Target("training.fp16"),
    "bf16": Target("training.bf16"),
    "gradient_checkpointing": Target("training.gradient_checkpointing"),
    "optim": Target("training.optim"),
    "padding_strategy": Target("", "rows are padded to the longest of a batch, or packed"),
    "padding_side": Target("", "TRL pads on the side that the method needs"),
    "output_format": Target("", "the tokenizer's own chat template is used"),
    "shuffle_train": Target("", "", _shuffle, off="rows are shuffled, as is the default"),
    "shuffle_eval": Target("", "the order does not change the loss"),
    "max_train_samples": Target("", "", given_only("data.max_rows")),
    "max_eval_samples": Target("", "all that is given is measured"),
    **{name: Target("", _CURATION) for name in (
        "use_coreset_selection", "coreset_target_size", "coreset_strategy", "coreset_metric_key",
        "use_online_continual", "continual_buffer_size", "continual_replay_ratio")},
    "use_lora": Target("", "", _lora_off, off="an adapter, as is the default"),
    "lora_r": Target("lora.r"),
    "lora_alpha": Target("lora.lora_alpha"),
    "lora_dropout": Target("lora.lora_dropout"),
    "lora_target_modules": Target("", "", names("lora.target_modules")),
    "target_modules": Target("", "", names("lora.target_modules")),
    "use_dora": Target("lora.use_dora"),
    "use_lora_plus": Target("", "", _plus, off="its ratio says so"),
    "lora_plus_lr_ratio": Target("", "", _ratio, off="use_lora_plus is off"),
    "num_epochs": Target("training.num_train_epochs"),
    "batch_size": Target("training.per_device_train_batch_size"),
    "gradient_accumulation": Target("training.gradient_accumulation_steps"),
    "gradient_accumulation_steps": Target("training.gradient_accumulation_steps"),
    "learning_rate": Target("training.learning_rate"),
    "warmup_ratio": Target("training.warmup_steps"),
    "lr_scheduler": Target("training.lr_scheduler_type"),
    "lr_scheduler_type": Target("training.lr_scheduler_type"),
    "weight_decay": Target("training.weight_decay"),
    "output_dir": Target("output_dir"),
    "logging_steps": Target("training.logging_steps"),
    "save_steps": Target("training.save_steps"),
    "eval_steps": Target("training.eval_steps"),
    "eval_strategy": Target("training.eval_strategy"),
    "save_total_limit": Target("training.save_total_limit"),
    "report_to": Target("", "", trackers, off=NO_TRACKER),
    "load_best_model_at_end": Target("", "", _best),
    "load_best_model": Target("", "", _best),
    "metric_for_best_model": Target("", "it goes with load_best_model_at_end"),
    "seed": Target("training.seed"),
}  # fmt: skip


def is_sage(given: Mapping[str, Any]) -> bool:
    """Whether a file is one of these."""
    return "base_model" in given and not isinstance(given.get("training"), dict)


def read_sage(given: Mapping[str, Any]) -> MappedConfig:
    """Read the settings."""
    sage = translate("SAGE", given, RULES)
    if given.get("use_lora") is False:
        put(sage.plain, "lora", None)
    return sage
