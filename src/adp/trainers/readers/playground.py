"""The JSON of Tiny Tool Use (the tool-use playground): sections model, training, data, ..."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adp.trainers.config_make import TOOLBENCH_FILE
from adp.trainers.readers.mapping import (
    Convert,
    MappedConfig,
    Target,
    flat,
    given_only,
    put,
    translate,
)
from adp_schema.errors import UsageError

_CASES = 10
"""Cases of the example file of Tiny Tool Use."""
_METHODS = {"sft": "sft", "dpo": "dpo", "teacher_mode": "sft"}


def _method(value: Any, given: Mapping[str, Any]) -> Mapping[str, Any]:
    if value not in _METHODS:
        raise UsageError(
            f"training.method: {value} has no counterpart; adp trains {', '.join(_METHODS)}"
        )
    return {"method": _METHODS[value]}


def _lora(value: Any, given: Mapping[str, Any]) -> Mapping[str, Any]:
    return {} if value else {"lora": None}


def _device_map(value: Any, given: Mapping[str, Any]) -> Mapping[str, Any]:
    return {} if value in (None, "auto") else {"model.device_map": value}


def _share(value: Any, given: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"data.eval_share": round(1 - value, 6)} if value is not None and value < 1 else {}


def _strategy(value: Any, given: Mapping[str, Any]) -> Mapping[str, Any]:
    made = {} if value is None else {"data.make.strategy": value}
    if value == "toolbench" and given.get("data.generation_type") == "real":
        made["data.make.file"] = TOOLBENCH_FILE
    return made


def _of_made(path: str) -> Convert:
    """A setting of the data that are made; nothing where no data are."""

    def convert(value: Any, given: Mapping[str, Any]) -> Mapping[str, Any]:
        asked = given.get("data.strategy") is not None and value not in (None, {}, [])
        return {path: value} if asked else {}

    return convert


def _samples(value: Any, given: Mapping[str, Any]) -> Mapping[str, Any]:
    if value is None:
        return {}
    return {"data.max_rows": value, **_of_made("data.make.count")(value, given)}


def _evaluation(value: Any, given: Mapping[str, Any]) -> Mapping[str, Any]:
    return _of_made("data.make.test_count")(_CASES if value else None, given)


def _tokenizer(value: Any, given: Mapping[str, Any]) -> Mapping[str, Any]:
    return {} if value == given.get("model.name") else {"model.tokenizer_name_or_path": value}


_PLAIN = (
    "learning_rate", "gradient_accumulation_steps", "warmup_steps", "max_grad_norm", "fp16",
    "bf16", "adam_beta1", "adam_beta2", "adam_epsilon", "weight_decay", "optim", "logging_steps",
    "save_steps", "gradient_checkpointing",
)  # fmt: skip

RULES: dict[str, Target] = {
    "model.name": Target("model.model_name_or_path"),
    "model.trust_remote_code": Target("model.trust_remote_code"),
    "model.torch_dtype": Target("model.dtype"),
    "model.device_map": Target(
        "", "", _device_map, off="the trainer places the model: one process a GPU"
    ),
    "model.load_in_4bit": Target("model.load_in_4bit"),
    "model.load_in_8bit": Target("model.load_in_8bit"),
    "tokenizer.name": Target("", "", _tokenizer, off="the model's own tokenizer"),
    "tokenizer.trust_remote_code": Target("", "model.trust_remote_code stands for both"),
    "tokenizer.padding_side": Target("", "TRL pads on the side that the method needs"),
    "training.tokenizer_padding_side": Target("", "TRL pads on the side that the method needs"),
    "training.method": Target("", "", _method),
    "training.num_epochs": Target("training.num_train_epochs"),
    "training.batch_size": Target("training.per_device_train_batch_size"),
    "training.max_length": Target(
        "render.max_length", "rows are dropped or cut at steps, and never inside one"
    ),
    "training.use_lora": Target("", "", _lora, off="an adapter, as is the default"),
    "training.lora_r": Target("lora.r"),
    "training.lora_alpha": Target("lora.lora_alpha"),
    "training.lora_dropout": Target("lora.lora_dropout"),
    "training.lora_target_modules": Target("lora.target_modules"),
    "training.beta": Target("dpo.beta"),
    "training.seed": Target("", "", given_only("training.seed")),
    **{f"training.{name}": Target(f"training.{name}") for name in _PLAIN},
    "data.max_samples": Target("", "", _samples),
    "data.train_split": Target("", "", _share, off="all of it is trained on"),
    "data.strategy": Target("", "when no store is named", _strategy, off="a store is named"),
    "data.generation_type": Target(
        "", "", _of_made("data.make.generation_type"), off="data.strategy alone needs it"
    ),
    "tools": Target(
        "",
        "a store that is named has its own",
        _of_made("data.make.tools"),
        off="tools are in the store, as the model saw them",
    ),
    "evaluation": Target(
        "",
        "the figures of evaluation_results.json, all of them, after the training",
        _evaluation,
        off="scores of calls are no part of the training",
    ),
    "tensorboard.enabled": Target("report.tensorboard"),
    "tensorboard.log_dir": Target("", "events lie in the output"),
    "seed": Target("training.seed"),
    "output_dir": Target("output_dir"),
}


def is_playground(given: Mapping[str, Any]) -> bool:
    """Whether a file is one of these."""
    training = given.get("training")
    return isinstance(training, dict) and "method" in training


def read_playground(given: Mapping[str, Any]) -> MappedConfig:
    """Read the settings.

    Raises:
        UsageError: it is about a training that there is not here.
    """
    plain = flat(given, deep=("tools", "evaluation"))
    translated = translate("Tiny Tool Use", plain, RULES)
    if given["training"].get("use_lora") is False:
        put(translated.plain, "lora", None)
    # What it trains with LoRA: the projections of attention.
    elif "target_modules" not in translated.plain.get("lora", {}):
        put(translated.plain, "lora.target_modules", ["q_proj", "k_proj", "v_proj", "o_proj"])
    return translated
