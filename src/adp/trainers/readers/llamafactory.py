"""M3's ``train_lora.json``, whose settings are those of LLaMA-Factory.

Names: LLaMA-Factory 0.9 (hparams), and M3's own ``preference_granularity``,
``mask_suboptimal_traces``, ``ld_alpha``, ``ref_model``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adp.trainers.readers.mapping import (
    NO_TRACKER,
    Convert,
    Foreign,
    Rule,
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


def _rank(value: Any, given: Mapping[str, Any]) -> Mapping[str, Any]:
    found = {"lora.r": value}
    if given.get("lora_alpha") is None:
        found["lora.lora_alpha"] = 2 * value
    return found


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
    found: dict[str, Any] = {"launch.zero": stage if stage in (2, 3) else 0}
    return {**found, "launch.offload": True} if offload else found


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


RULES: dict[str, Rule] = {
    "model": Rule("model.model_name_or_path"),
    "model_name_or_path": Rule("model.model_name_or_path"),
    "model_revision": Rule("", "", given_only("model.model_revision")),
    "adapter_name_or_path": Rule("", "", given_only("model.adapter_name_or_path")),
    "trust_remote_code": Rule("model.trust_remote_code"),
    "flash_attn": Rule("", "", _attention),
    "quantization_bit": Rule("", "", _bits),
    "quantization_type": Rule("model.bnb_4bit_quant_type"),
    "double_quantization": Rule("model.use_bnb_nested_quant"),
    "disable_gradient_checkpointing": Rule(
        "", "", lambda value, given: {"training.gradient_checkpointing": not value}
    ),
    "template": Rule(
        "", "the tokenizer's own chat template is used; render.chat_template takes another"
    ),
    "cutoff_len": Rule(
        "render.max_length",
        "longer rows are dropped or cut at steps (render.window), and never inside one",
    ),
    "stage": Rule("method"),
    "mask_history": Rule(
        "",
        "",
        lambda value, given: {"render.train": "all"},
    ),
    "packing": Rule("", "rows do not see one another here", _packing),
    "neat_packing": Rule("", "", _packing),
    "val_size": Rule("", "", _share, off="a number of rows; say a share as data.eval_share"),
    "max_samples": Rule("", "", given_only("data.max_rows")),
    "preprocessing_num_workers": Rule("", "", given_only("data.workers")),
    "finetuning_type": Rule("", "", _kind),
    "lora_rank": Rule("", "", _rank),
    "lora_alpha": Rule("", "", given_only("lora.lora_alpha")),
    "lora_dropout": Rule("lora.lora_dropout"),
    "lora_target": Rule("", "", names("lora.target_modules")),
    "additional_target": Rule("", "", names("lora.modules_to_save")),
    "loraplus_lr_ratio": Rule("", "", given_only("lora.loraplus_lr_ratio")),
    "loraplus_lr_embedding": Rule("lora.loraplus_lr_embedding"),
    "use_rslora": Rule("lora.use_rslora"),
    "use_dora": Rule("lora.use_dora"),
    "pissa_init": Rule("", "", _pissa),
    "pissa_iter": Rule("", "it is part of lora.init_lora_weights"),
    "pissa_convert": Rule("", "the adapter is always converted, so that it fits the base"),
    "ref_model": Rule("", "", given_only("dpo.ref_model_name_or_path")),
    "kto_chosen_weight": Rule("kto.desirable_weight"),
    "kto_rejected_weight": Rule("kto.undesirable_weight"),
    "deepspeed": Rule("", "the file that belongs to it is shipped", _deepspeed),
    "learning_rate": Rule("training.learning_rate"),
    "lr_scheduler": Rule("training.lr_scheduler_type"),
    "lr_scheduler_type": Rule("training.lr_scheduler_type"),
    "num_train_epochs": Rule("training.num_train_epochs"),
    "max_steps": Rule("training.max_steps"),
    "per_device_train_batch_size": Rule("training.per_device_train_batch_size"),
    "per_device_eval_batch_size": Rule("training.per_device_eval_batch_size"),
    "gradient_accumulation_steps": Rule("training.gradient_accumulation_steps"),
    "warmup_ratio": Rule("", "", _warmup),
    "warmup_steps": Rule("", "", _warmup_steps),
    "weight_decay": Rule("training.weight_decay"),
    "max_grad_norm": Rule("training.max_grad_norm"),
    "optim": Rule("training.optim"),
    "bf16": Rule("training.bf16"),
    "fp16": Rule("training.fp16"),
    "tf32": Rule("training.tf32"),
    "seed": Rule("training.seed"),
    "logging_steps": Rule("", "", _report_steps("training.logging_steps")),
    "save_steps": Rule("", "", _save_steps),
    "save_strategy": Rule("training.save_strategy"),
    "save_total_limit": Rule("training.save_total_limit"),
    "save_only_model": Rule("training.save_only_model", "such checkpoints cannot be resumed"),
    "eval_strategy": Rule("training.eval_strategy"),
    "evaluation_strategy": Rule("training.eval_strategy"),
    "eval_steps": Rule("", "", _report_steps("training.eval_steps")),
    "report_to": Rule("", "", trackers, off=NO_TRACKER),
    "run_name": Rule("report.run_name"),
    "output_dir": Rule("output_dir"),
    "logging_dir": Rule("output_dir", "M3 saves its models there"),
    "group_by_length": Rule(
        "",
        "",
        lambda v, given: {"training.train_sampling_strategy": "group_by_length"} if v else {},
    ),
    "disable_dropout": Rule("", "", when("dpo.disable_dropout")),
    **{name: Rule("", _DATA) for name in (
        "dataset", "eval_dataset", "dataset_dir", "media_dir", "tokenized_path", "streaming",
        "buffer_size", "mix_strategy", "interleave_probs", "data_shared_file_system")},
    **{name: Rule("", _PAIRS) for name in ("preference_granularity", "mask_suboptimal_traces")},
    **{name: Rule("", _GENERATION) for name in (
        "do_sample", "temperature", "top_p", "top_k", "num_beams", "max_length",
        "max_new_tokens", "repetition_penalty", "length_penalty", "predict_with_generate",
        "eval_num_beams")},
    **{name: Rule("", _OPTIMISER) for name in (
        "use_galore", "use_apollo", "use_badam", "use_adam_mini", "use_muon", "shift_attn",
        "rope_scaling", "use_unsloth", "use_swanlab", "mixture_of_depths")},
    "train_on_prompt": Rule("", "only the agent's own steps are trained"),
    "efficient_eos": Rule("", "the end of a turn is trained where the template writes it"),
    "tool_format": Rule("", "the chat template writes tools; render.tools: text is Hermes' way"),
    "default_system": Rule("", "the store says what the model saw"),
    "enable_thinking": Rule(
        "", "", lambda value, given: {"render.template_options": {"enable_thinking": value}}
        if value is False else {}
    ),
    "ignore_pad_token_for_loss": Rule("", "padding is never trained"),
    "overwrite_cache": Rule("", "rendered rows are cached by content"),
    "overwrite_output_dir": Rule("", "an output folder is never overwritten"),
    "preprocessing_batch_size": Rule("", "memory is bounded without it"),
    "eval_on_each_dataset": Rule("", "one loss over all that is measured"),
    "enable_liger_kernel": Rule("", "TRL's own head, which never holds all logits, replaces it"),
    "quantization_method": Rule("", "bitsandbytes is what there is"),
    "create_new_adapter": Rule("", "merge the old one first: adp merge-adapter"),
    "ref_model_adapters": Rule("", "the adapter that the training begins with is the reference"),
    "ref_model_quantization_bit": Rule("", "the reference is loaded as the model is"),
    "ddp_find_unused_parameters": Rule("", "it is set for you"),
    "ddp_timeout": Rule("", "set it by training.other"),
    "do_train": Rule("", "adp train trains"),
    "do_eval": Rule("", "there is an evaluation when there is data for it"),
    "do_predict": Rule("", _GENERATION),
    "resume_from_checkpoint": Rule("", "adp train ... --resume"),
    "plot_loss": Rule("", "loss.svg is always written"),
}  # fmt: skip

_PREFERENCE = ("pref_loss", "pref_beta", "pref_ftx", "dpo_label_smoothing", "simpo_gamma",
               "ld_alpha")  # fmt: skip

_KTO_RULES = {
    "pref_beta": Rule("kto.beta"),
    "ref_model": Rule("", "", given_only("kto.ref_model_name_or_path")),
    "disable_dropout": Rule("", "", when("kto.disable_dropout")),
}

_TRAINED = ("sft", "dpo", "kto")
_STAGES = {"pt": "pre-training", "rm": "a reward model", "ppo": "PPO"}


def is_llamafactory(given: Mapping[str, Any]) -> bool:
    """Whether a file is one of these."""
    return (
        bool({"finetuning_type", "cutoff_len", "lora_rank", "pref_loss"} & set(given))
        and "training" not in given
    )


def read_llamafactory(given: Mapping[str, Any], method: str | None = None) -> Foreign:
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
    if stage not in _TRAINED:
        what = f" is {_STAGES[stage]}" if stage in tuple(_STAGES) else " is not known"
        raise UsageError(
            f"stage: {stage}{what}; adp trains sft, dpo, kto and grpo: change it in the file"
        )
    if given.get("finetuning_type") not in (None, "lora", "full"):
        raise UsageError(
            f"finetuning_type: {given['finetuning_type']} has no counterpart; use lora or full"
        )
    method = method or stage
    rules = dict(RULES)
    rules |= {name: Rule("", not_for("DPO", method)) for name in _PREFERENCE}
    if method == "dpo":
        rules |= _dpo_rules(given)
    elif method == "kto":
        rules |= _KTO_RULES
    found = translate("M3 / LLaMA-Factory", given, rules)
    if given.get("finetuning_type") == "full":
        put(found.plain, "lora", None)
    return found


def _dpo_rules(given: Mapping[str, Any]) -> dict[str, Rule]:
    from adp.trainers.losses import from_m3

    dpo = from_m3(given)

    def named(*options: str) -> Convert:
        return lambda value, _: {f"dpo.{key}": dpo[key] for key in options if key in dpo}

    return {
        "pref_loss": Rule("", "docs/dpo-losses.md compares the losses", named("loss_type")),
        "pref_ftx": Rule("", "", named("loss_type", "loss_weights") if given.get("pref_ftx")
                         else named()),
        "pref_beta": Rule("", "", named("beta")),
        "dpo_label_smoothing": Rule("", "", named("label_smoothing"),
                                    off="the loss has no smoothing; M3 ignores it there, too"),
        "simpo_gamma": Rule("", "", named("simpo_gamma"), off="it is for the loss simpo"),
        "ld_alpha": Rule("", "", named("ld_alpha")),
    }  # fmt: skip
