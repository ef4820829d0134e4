"""M3's ``train_lora.json``, whose settings are those of LLaMA-Factory.

Names: LLaMA-Factory 0.9 (hparams), and M3's own ``preference_granularity``,
``mask_suboptimal_traces``, ``ld_alpha``, ``ref_model``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adp.rendering.m3_forms import OF_M3
from adp.trainers.config import ABSENT
from adp.trainers.readers.mapping import (
    NO_TRACKER,
    Convert,
    MappedConfig,
    Target,
    given_only,
    names,
    not_for,
    put,
    trackers,
    translate,
    when,
)
from adp_schema.errors import UsageError

_ATTENTION = {"fa2": "flash_attention_2", "fa3": "flash_attention_3", "disabled": "eager"}
_OPTIMISER = "another optimiser or layout of LLaMA-Factory; training.optim names transformers' own"
_GENERATION = "it is about generating, not training"
_DATA = "data sets are stores here: adp convert the folder with --from m3, then data.store names it"
_PAIRS = "pairs of a store carry it themselves: the op pairs of adp curate makes them"


def _attention(value: Any, given: Mapping[str, Any]) -> Mapping[str, Any]:
    if value in (None, "auto"):
        return {}
    return {"model.attn_implementation": _ATTENTION.get(value, value)}


def _template(value: Any, given: Mapping[str, Any]) -> Mapping[str, Any]:
    form = OF_M3.get(str(value))
    return {} if form is None else {"render.wire_form": form}


def _rank(value: Any, given: Mapping[str, Any]) -> Mapping[str, Any]:
    rank = {"lora.r": value}
    if given.get("lora_alpha") is None:
        rank["lora.lora_alpha"] = 2 * value
    return rank


def _pissa(value: Any, given: Mapping[str, Any]) -> Mapping[str, Any]:
    steps = given.get("pissa_iter", 16)
    if not value:
        return {}
    return {"lora.init_lora_weights": "pissa" if steps in (-1, None) else f"pissa_niter_{steps}"}


def _bits(value: Any, given: Mapping[str, Any]) -> Mapping[str, Any]:
    return {f"model.load_in_{value}bit": True} if value in (4, 8) else {}


def _deepspeed(value: Any, given: Mapping[str, Any]) -> Mapping[str, Any]:
    if not value:
        return {}
    if isinstance(value, dict):
        zero = value.get("zero_optimization", {})
        stage = zero.get("stage", 0)
        offload = any(
            zero.get(f"offload_{what}", {}).get("device", "none") != "none"
            for what in ("optimizer", "param")
        )
    else:
        text = str(value).lower()
        stage = 3 if "stage3" in text or "z3" in text else 2
        offload = "offload" in text
    results: dict[str, Any] = {"launch.zero": stage if stage in (2, 3) else 0}
    return {**results, "launch.offload": True} if offload else results


def _stage(value: Any, given: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"method": _TRAINED.get(value or "sft", value)}


def _kind(value: Any, given: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"lora": None} if value == "full" else {}


def _packing(value: Any, given: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"training.packing": True} if value else {}


def _warmup(value: Any, given: Mapping[str, Any]) -> Mapping[str, Any]:
    return {} if given.get("warmup_steps") else {"training.warmup_steps": value}


def _warmup_steps(value: Any, given: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"training.warmup_steps": value} if value else {}


def _save_steps(value: Any, given: Mapping[str, Any]) -> Mapping[str, Any]:
    if value is None or value <= 0:
        return {"training.save_strategy": "no"}
    return {"training.save_steps": int(value)}


def _share(value: Any, given: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"data.eval_share": value} if value and 0 < value < 1 else {}


def _report_steps(path: str) -> Convert:
    return lambda value, given: {path: int(value)} if value and value >= 1 else {}


RULES: dict[str, Target] = {
    "model": Target("model.model_name_or_path"),
    "model_name_or_path": Target("model.model_name_or_path"),
    "model_revision": Target("", "", given_only("model.model_revision")),
    "adapter_name_or_path": Target("", "", given_only("model.adapter_name_or_path")),
    "trust_remote_code": Target("model.trust_remote_code"),
    "flash_attn": Target("", "", _attention),
    "quantization_bit": Target("", "", _bits),
    "quantization_type": Target("model.bnb_4bit_quant_type"),
    "double_quantization": Target("model.use_bnb_nested_quant"),
    "disable_gradient_checkpointing": Target(
        "", "", lambda value, given: {"training.gradient_checkpointing": not value}
    ),
    "template": Target(
        "", "render.system_text takes the words of M3", _template,
        off="the tokenizer's own chat template is used; render.chat_template takes another",
    ),
    "cutoff_len": Target(
        "render.max_length",
        "longer rows are dropped or cut at steps (render.window), and never inside one",
    ),
    "stage": Target("method", "rm, a reward model, is method reward", _stage),
    "mask_history": Target(
        "",
        "",
        lambda value, given: {"render.train": "all"},
    ),
    "packing": Target("", "rows do not see one another here", _packing),
    "neat_packing": Target("", "", _packing),
    "val_size": Target("", "", _share, off="a number of rows; say a share as data.eval_share"),
    "max_samples": Target("", "", given_only("data.max_rows")),
    "preprocessing_num_workers": Target("", "", given_only("data.workers")),
    "finetuning_type": Target("", "", _kind),
    "lora_rank": Target("", "", _rank),
    "lora_alpha": Target("", "", given_only("lora.lora_alpha")),
    "lora_dropout": Target("lora.lora_dropout"),
    "lora_target": Target("", "", names("lora.target_modules")),
    "additional_target": Target("", "", names("lora.modules_to_save")),
    "loraplus_lr_ratio": Target("", "", given_only("lora.loraplus_lr_ratio")),
    "loraplus_lr_embedding": Target("lora.loraplus_lr_embedding"),
    "use_rslora": Target("lora.use_rslora"),
    "use_dora": Target("lora.use_dora"),
    "pissa_init": Target("", "", _pissa),
    "pissa_iter": Target("", "it is part of lora.init_lora_weights"),
    "pissa_convert": Target("", "the adapter is always converted, so that it fits the base"),
    "ref_model": Target("", "", given_only("dpo.ref_model_name_or_path")),
    "kto_chosen_weight": Target("kto.desirable_weight"),
    "kto_rejected_weight": Target("kto.undesirable_weight"),
    "deepspeed": Target("", "the file that belongs to it is shipped", _deepspeed),
    "learning_rate": Target("training.learning_rate"),
    "lr_scheduler": Target("training.lr_scheduler_type"),
    "lr_scheduler_type": Target("training.lr_scheduler_type"),
    "num_train_epochs": Target("training.num_train_epochs"),
    "max_steps": Target("training.max_steps"),
    "per_device_train_batch_size": Target("training.per_device_train_batch_size"),
    "per_device_eval_batch_size": Target("training.per_device_eval_batch_size"),
    "gradient_accumulation_steps": Target("training.gradient_accumulation_steps"),
    "warmup_ratio": Target("", "", _warmup),
    "warmup_steps": Target("", "", _warmup_steps),
    "weight_decay": Target("training.weight_decay"),
    "max_grad_norm": Target("training.max_grad_norm"),
    "optim": Target("training.optim"),
    "bf16": Target("training.bf16"),
    "fp16": Target("training.fp16"),
    "tf32": Target("training.tf32"),
    "seed": Target("training.seed"),
    "logging_steps": Target("", "", _report_steps("training.logging_steps")),
    "save_steps": Target("", "", _save_steps),
    "save_strategy": Target("training.save_strategy"),
    "save_total_limit": Target("training.save_total_limit"),
    "save_only_model": Target("training.save_only_model", "such checkpoints cannot be resumed"),
    "eval_strategy": Target("training.eval_strategy"),
    "evaluation_strategy": Target("training.eval_strategy"),
    "eval_steps": Target("", "", _report_steps("training.eval_steps")),
    "report_to": Target("", "", trackers, off=NO_TRACKER),
    "run_name": Target("report.run_name"),
    "output_dir": Target("output_dir"),
    "logging_dir": Target("output_dir", "M3 saves its models there"),
    "group_by_length": Target(
        "",
        "",
        lambda v, given: {"training.train_sampling_strategy": "group_by_length"} if v else {},
    ),
    "disable_dropout": Target("", "", when("dpo.disable_dropout")),
    **{name: Target("", _DATA) for name in (
        "dataset", "eval_dataset", "dataset_dir", "media_dir", "tokenized_path", "streaming",
        "buffer_size", "mix_strategy", "interleave_probs", "data_shared_file_system")},
    **{name: Target("", _PAIRS) for name in ("preference_granularity", "mask_suboptimal_traces")},
    **{name: Target("", _GENERATION) for name in (
        "do_sample", "temperature", "top_p", "top_k", "num_beams", "max_length",
        "max_new_tokens", "repetition_penalty", "length_penalty", "predict_with_generate",
        "eval_num_beams")},
    **{name: Target("", _OPTIMISER) for name in (
        "use_galore", "use_apollo", "use_badam", "use_adam_mini", "use_muon", "shift_attn",
        "rope_scaling", "use_unsloth", "use_swanlab", "mixture_of_depths")},
    "train_on_prompt": Target("", "only the agent's own steps are trained"),
    "efficient_eos": Target("", "the end of a turn is trained where the template writes it"),
    "tool_format": Target("", "the chat template writes tools; render.tools: text is Hermes' way"),
    "default_system": Target("", "the store says what the model saw"),
    "enable_thinking": Target(
        "", "", lambda value, given: {"render.template_options": {"enable_thinking": value}}
        if value is False else {}
    ),
    "ignore_pad_token_for_loss": Target("", "padding is never trained"),
    "overwrite_cache": Target("", "rendered rows are cached by content"),
    "overwrite_output_dir": Target("", "an output folder is never overwritten"),
    "preprocessing_batch_size": Target("", "memory is bounded without it"),
    "eval_on_each_dataset": Target("", "one loss over all that is measured"),
    "enable_liger_kernel": Target("", "TRL's own head, which never holds all logits, replaces it"),
    "quantization_method": Target("", "bitsandbytes is what there is"),
    "create_new_adapter": Target("", "merge the old one first: adp merge-adapter"),
    "ref_model_adapters": Target("", "the adapter that the training begins with is the reference"),
    "ref_model_quantization_bit": Target("", "the reference is loaded as the model is"),
    "ddp_find_unused_parameters": Target("", "it is set for you"),
    "ddp_timeout": Target("", "set it by training.other"),
    "do_train": Target("", "adp train trains"),
    "do_eval": Target("", "there is an evaluation when there is data for it"),
    "do_predict": Target("", _GENERATION),
    "resume_from_checkpoint": Target("", "adp train ... --resume"),
    "plot_loss": Target("", "loss.svg is always written"),
}  # fmt: skip

_PREFERENCE = ("pref_loss", "pref_beta", "pref_ftx", "dpo_label_smoothing", "simpo_gamma",
               "ld_alpha")  # fmt: skip

_KTO_RULES = {
    "pref_beta": Target("kto.beta"),
    "ref_model": Target("", "", given_only("kto.ref_model_name_or_path")),
    "disable_dropout": Target("", "", when("kto.disable_dropout")),
}

_REWARD_RULES = {"disable_dropout": Target("", "", when("reward.disable_dropout"))}

_TRAINED = {"sft": "sft", "dpo": "dpo", "kto": "kto", "rm": "reward"}
"""Stages that are trained here -> method."""

_STAGES = {
    "pt": "pre-training on plain texts, and rows here are trajectories of agents",
    "ppo": f"PPO, and {ABSENT['ppo']}",
}
"""Stages that are not -> what they are, and what there is."""


def is_llamafactory(given: Mapping[str, Any]) -> bool:
    """Whether a file is one of these."""
    return (
        bool({"finetuning_type", "cutoff_len", "lora_rank", "pref_loss"} & set(given))
        and "training" not in given
    )


def read_llamafactory(given: Mapping[str, Any], method: str | None = None) -> MappedConfig:
    """Read the settings.

    M3's files say ``stage: sft`` and hold settings for DPO beside it: M3 takes both trainings
    from one file. So the method of the call, and not the stage, says which of them hold.

    Args:
        given: the settings.
        method: what the call trains; None takes the stage of the file, which is sft by default.

    Raises:
        UsageError: it is about a training that there is not here.
    """
    stage = given.get("stage") or "sft"
    if stage not in tuple(_TRAINED):
        what = f" is {_STAGES[stage]}" if stage in tuple(_STAGES) else " is not known"
        raise UsageError(
            f"stage: {stage}{what}; stages that are trained here are {', '.join(_TRAINED)}: change "
            "it in the file"
        )
    if given.get("finetuning_type") not in (None, "lora", "full"):
        raise UsageError(
            f"finetuning_type: {given['finetuning_type']} has no counterpart; use lora or full"
        )
    method = method or _TRAINED[stage]
    rules = dict(RULES)
    rules |= {name: Target("", not_for("DPO", method)) for name in _PREFERENCE}
    if method == "dpo":
        rules |= _dpo_rules(given)
    elif method == "kto":
        rules |= _KTO_RULES
    elif method == "reward":
        rules |= _REWARD_RULES
    llamafactory = translate("M3 / LLaMA-Factory", given, rules)
    if given.get("finetuning_type") == "full":
        put(llamafactory.plain, "lora", None)
    return llamafactory


def _dpo_rules(given: Mapping[str, Any]) -> dict[str, Target]:
    from adp.trainers.losses import from_m3

    dpo = from_m3(given)

    def named(*options: str) -> Convert:
        return lambda value, _: {f"dpo.{key}": dpo[key] for key in options if key in dpo}

    return {
        "pref_loss": Target("", "docs/dpo-losses.md compares the losses", named("loss_type")),
        "pref_ftx": Target("", "", named("loss_type", "loss_weights") if given.get("pref_ftx")
                         else named()),
        "pref_beta": Target("", "", named("beta")),
        "dpo_label_smoothing": Target("", "", named("label_smoothing"),
                                    off="the loss has no smoothing; M3 ignores it there, too"),
        "simpo_gamma": Target("", "", named("simpo_gamma"), off="it is for the loss simpo"),
        "ld_alpha": Target("", "", named("ld_alpha")),
    }  # fmt: skip
