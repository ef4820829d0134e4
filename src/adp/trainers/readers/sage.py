"""SAGE's ``AgentSFTConfig``, under the names of its code and of its documentation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adp.trainers.readers.mapping import (
    NO_TRACKER,
    Foreign,
    Rule,
    given_only,
    names,
    put,
    trackers,
    translate,
)

_CURATION = "data are chosen by a recipe of adp curate (ops coreset, mix, replay)"
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


RULES: dict[str, Rule] = {
    "base_model": Rule("model.model_name_or_path"),
    "train_data": Rule("", _DATA),
    "dev_data": Rule("", _DATA),
    "eval_data": Rule("", _DATA),
    "task_weights": Rule("", _CURATION),
    "max_length": Rule("render.max_length"),
    "max_seq_length": Rule("render.max_length"),
    "load_in_8bit": Rule("model.load_in_8bit"),
    "load_in_4bit": Rule("model.load_in_4bit"),
    "fp16": Rule("training.fp16"),
    "bf16": Rule("training.bf16"),
    "gradient_checkpointing": Rule("training.gradient_checkpointing"),
    "optim": Rule("training.optim"),
    "padding_strategy": Rule("", "rows are padded to the longest of a batch, or packed"),
    "padding_side": Rule("", "TRL pads on the side that the method needs"),
    "output_format": Rule("", "the tokenizer's own chat template is used"),
    "shuffle_train": Rule("", "", _shuffle, off="rows are shuffled, as is the default"),
    "shuffle_eval": Rule("", "the order does not change the loss"),
    "max_train_samples": Rule("", "", given_only("data.max_rows")),
    "max_eval_samples": Rule("", "all that is given is measured"),
    **{name: Rule("", _CURATION) for name in (
        "use_coreset_selection", "coreset_target_size", "coreset_strategy", "coreset_metric_key",
        "use_online_continual", "continual_buffer_size", "continual_replay_ratio")},
    "use_lora": Rule("", "", _lora_off, off="an adapter, as is the default"),
    "lora_r": Rule("lora.r"),
    "lora_alpha": Rule("lora.lora_alpha"),
    "lora_dropout": Rule("lora.lora_dropout"),
    "lora_target_modules": Rule("", "", names("lora.target_modules")),
    "target_modules": Rule("", "", names("lora.target_modules")),
    "use_dora": Rule("lora.use_dora"),
    "use_lora_plus": Rule("", "", _plus, off="its ratio says so"),
    "lora_plus_lr_ratio": Rule("", "", _ratio, off="use_lora_plus is off"),
    "num_epochs": Rule("training.num_train_epochs"),
    "batch_size": Rule("training.per_device_train_batch_size"),
    "gradient_accumulation": Rule("training.gradient_accumulation_steps"),
    "gradient_accumulation_steps": Rule("training.gradient_accumulation_steps"),
    "learning_rate": Rule("training.learning_rate"),
    "warmup_ratio": Rule("training.warmup_steps"),
    "lr_scheduler": Rule("training.lr_scheduler_type"),
    "lr_scheduler_type": Rule("training.lr_scheduler_type"),
    "weight_decay": Rule("training.weight_decay"),
    "output_dir": Rule("output_dir"),
    "logging_steps": Rule("training.logging_steps"),
    "save_steps": Rule("training.save_steps"),
    "eval_steps": Rule("training.eval_steps"),
    "eval_strategy": Rule("training.eval_strategy"),
    "save_total_limit": Rule("training.save_total_limit"),
    "report_to": Rule("", "", trackers, off=NO_TRACKER),
    "load_best_model_at_end": Rule("", "", _best),
    "load_best_model": Rule("", "", _best),
    "metric_for_best_model": Rule("", "it goes with load_best_model_at_end"),
    "seed": Rule("training.seed"),
}  # fmt: skip


def is_sage(given: Mapping[str, Any]) -> bool:
    """Whether a file is one of these."""
    return "base_model" in given and not isinstance(given.get("training"), dict)


def read_sage(given: Mapping[str, Any]) -> Foreign:
    """Read the settings."""
    found = translate("SAGE", given, RULES)
    if given.get("use_lora") is False:
        put(found.plain, "lora", None)
    return found
