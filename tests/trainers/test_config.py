"""The configuration of training: reading, changing, refusing; other systems' files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from adp.trainers.config import TrainConfig, json_schema
from adp.trainers.config_file import read_config
from adp.trainers.incompatible import faults
from adp.trainers.machine import Machine
from adp_schema.errors import UsageError

PLAYGROUND = Path(__file__).parents[2].parent / "shared" / "data" / "playground"

M3 = {
    "template": "student_mistral", "cutoff_len": 32768, "dataset_dir": "sample/sft_expert",
    "dataset": ["api_before_rag"], "mask_history": True, "flash_attn": "fa2",
    "model_name_or_path": "Mistral-7B-Instruct-v0.3", "disable_gradient_checkpointing": False,
    "enable_liger_kernel": True, "stage": "sft", "adapter_name_or_path": None,
    "create_new_adapter": False, "preference_granularity": "step", "pref_loss": "sigmoid",
    "mask_suboptimal_traces": True, "pref_beta": 0.1, "finetuning_type": "lora", "lora_rank": 64,
    "lora_alpha": 32, "lora_dropout": 0.1, "deepspeed": "zero_stage3_offload_config.json",
    "ddp_find_unused_parameters": None, "do_eval": False, "do_train": True,
    "learning_rate": 1e-5, "lr_scheduler": "cosine", "logging_dir": "./logging",
    "num_train_epochs": 1, "per_device_train_batch_size": 1, "report_to": [],
    "save_only_model": True, "save_steps": -1, "warmup_ratio": 0.1, "do_sample": False,
    "max_new_tokens": 4096,
}  # fmt: skip


def test_defaults_and_short_forms() -> None:
    config = TrainConfig.model_validate({"model": "m", "data": "s"})
    assert (config.model.model_name_or_path, config.data.store) == ("m", "s")
    assert config.lora is not None
    assert config.learning_rate == 2e-4
    assert config.model_copy(update={"lora": None}).learning_rate == 2e-5
    assert config.model_copy(update={"method": "dpo"}).learning_rate == 5e-6


def test_the_schema_takes_what_the_configuration_takes() -> None:
    schema = json_schema()
    check = jsonschema.Draft202012Validator(schema)
    check.check_schema(schema)
    for given in ({}, {"model": "m", "lora": None}, TrainConfig().model_dump(mode="json")):
        check.validate(given)
        TrainConfig.model_validate(given)
    assert not check.is_valid({"lora": {"rank": 3}})


def test_every_field_says_what_it_is() -> None:
    pending: list[Any] = [TrainConfig.model_json_schema()]
    while pending:
        node = pending.pop()
        if isinstance(node, dict):
            for name, field in node.get("properties", {}).items():
                assert field.get("description"), name
            pending += node.values()
        elif isinstance(node, list):
            pending += node


def test_reading_and_setting(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    file = tmp_path / "train.yaml"
    file.write_text(
        "model: model\ndata: runs\nlora: {r: 8}\ntraining: {learning_rate: 1e-4, save_strategy: no}"
    )
    settings = ["lora.r=32", "training.seed=7", "model.dtype=float32", "training.other.x=1e-3"]
    config, other = read_config(file, settings, {"method": "kto"})
    assert other is None
    assert config.method == "kto"
    assert config.model.model_name_or_path == str(tmp_path / "model")
    assert config.data.store == str(tmp_path / "runs")
    assert config.lora is not None
    assert (config.lora.r, config.training.seed, config.model.dtype) == (32, 7, "float32")
    assert (config.training.learning_rate, config.training.save_strategy) == (1e-4, "no")
    assert config.training.other == {"x": 1e-3}
    assert read_config(file, ["lora=null"])[0].lora is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("lora: {rank: 8}", "lora.rank is not known; did you mean"),
        ("- 1", "is no configuration"),
        ("lora: {r: 8, r: 9}", "given twice"),
        ("lora: {r: 0}", "lora.r"),
        ("lora: {init_lora_weights: loftq}", "pissa_niter_N"),
        ("data: {eval_share: 0.1, eval_store: x}", "not both"),
        ("[", "not valid YAML"),
    ],
)
def test_faults_are_one_sentence(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "train.yaml").write_text(text)
    with pytest.raises(UsageError) as error:
        read_config(tmp_path / "train.yaml")
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_the_hash_is_of_what_decides_the_result() -> None:
    base = TrainConfig.model_validate({"data": "a"})
    for given, same in (
        ({"data": "b"}, True),
        ({"data": "a", "output_dir": "x"}, True),
        ({"data": "a", "report": {"tensorboard": True}}, True),
        ({"data": "a", "training": {"seed": 1}}, False),
        ({"data": {"store": "a", "max_rows": 3}}, False),
        ({"data": "a", "dpo": {"beta": 3}}, True),
    ):
        assert (TrainConfig.model_validate(given).hash() == base.hash()) is same, given


FOUR_BITS = {"model_name_or_path": "m", "load_in_4bit": True}

REFUSED: list[tuple[dict[str, Any], str]] = [
    ({}, "data.store"),
    ({"data": "s", "model": "m"}, "render.max_length is missing"),
    ({"lora": {"loraplus_lr_ratio": 16}, "launch": {"zero": 3}}, "LoRA+ does not go with ZeRO-3"),
    ({"lora": {"loraplus_lr_ratio": 16}, "training": {"optim": "lion_32bit"}}, "own AdamW"),
    ({"method": "dpo", "lora": {"init_lora_weights": "pissa"}}, "no reference for DPO"),
    ({"method": "kto", "lora": {"init_lora_weights": "olora"},
      "training": {"per_device_train_batch_size": 4}}, "no reference for KTO"),
    ({"lora": {"init_lora_weights": "pissa"}, "launch": {"zero": 3}}, "whole weights"),
    ({"lora": {"target_modules": ["q_proj", "lm_head"]}}, "lm_head"),
    ({"method": "kto"}, "per_device_train_batch_size to 2"),
    ({"model": FOUR_BITS, "lora": None}, "cannot be trained"),
    ({"model": FOUR_BITS, "launch": {"zero": 3}}, "ZeRO-3"),
    ({"model": FOUR_BITS}, "need a GPU"),
    ({"training": {"packing": True, "packing_strategy": "wrapped"}}, "see one another"),
    ({"training": {"packing": True, "packing_strategy": "bfd_split"}}, "cuts rows"),
    ({"training": {"packing": True}, "model": {"attn_implementation": "paged"}}, "keeps packed"),
    ({"method": "dpo", "training": {"packing": True}}, "only SFT"),
    ({"training": {"bf16": True, "fp16": True}}, "not both"),
    ({"training": {"fp16": True}}, "CPU"),
    ({"method": "dpo", "dpo": {"sync_ref_model": True}}, "sync_ref_model"),
    ({"launch": {"offload": True}}, "for ZeRO"),
    ({"lora": None, "model": {"adapter_name_or_path": "a"}}, "merge"),
    ({"model": "tiny", "render": {"max_length": 1 << 20}}, "more than the model tiny takes"),
    ({"method": "grpo", "grpo": {"beta": 0.1}, "lora": {"init_lora_weights": "pissa"}},
      "grpo.beta: 0"),
    ({"lora": {"init_lora_weights": "pissa", "use_dora": True}}, "one of the two"),
    ({"lora": {"init_lora_weights": "olora"}, "model": FOUR_BITS}, "not quantised"),
    ({"method": "kto", "training": {"per_device_train_batch_size": 2,
      "train_sampling_strategy": "group_by_length"}}, "in their order"),
    ({"model": {**FOUR_BITS, "load_in_8bit": True}}, "not both"),
    ({"model": {"model_name_or_path": "tiny", "load_in_8bit": True}}, "not loaded in 8 bits"),
    ({"training": {"packing": True, "train_sampling_strategy": "group_by_length"}}, "like length"),
    ({"lora": None, "model": {"model_name_or_path": "m", "dtype": "float16"},
      "training": {"fp16": True}}, "scales gradients of float32"),
    ({"launch": {"processes": 2}, "model": {"model_name_or_path": "m", "device_map": "auto"}},
      "device_map"),
    ({"method": "dpo", "lora": None,
      "dpo": {"sync_ref_model": True, "precompute_ref_log_probs": True}}, "sync_ref_model moves"),
]  # fmt: skip


@pytest.mark.parametrize(("given", "message"), REFUSED)
def test_what_goes_wrong_is_refused(given: dict[str, Any], message: str) -> None:
    whole = {"data": "s", "render": {"max_length": 512}, **given}
    if not given or message.startswith("render"):
        whole = given
    result = list(faults(TrainConfig.model_validate(whole), Machine()))
    assert any(message in sentence for sentence in result), result
    assert all("\n" not in sentence for sentence in result)


@pytest.mark.parametrize(
    ("given", "machine", "message"),
    [
        ({}, Machine(gpus=4), "4 GPUs are visible"),
        ({}, Machine(gpus=4, launched=True), None),
        ({"launch": {"processes": 4}}, Machine(gpus=4), None),
        ({"launch": {"processes": 4}}, Machine(gpus=2), "needs as many GPUs"),
        ({"launch": {"zero": 2}}, Machine(deepspeed=False), "adp[deepspeed]"),
        ({"training": {"bf16": True}}, Machine(gpus=1, bf16=False), "bfloat16"),
        ({"model": FOUR_BITS}, Machine(gpus=1), "bitsandbytes"),
        (
            {"model": FOUR_BITS},
            Machine(gpus=1, bitsandbytes=True),
            None,
        ),
        ({}, Machine(), None),
    ],
)  # fmt: skip
def test_what_depends_on_the_machine(
    given: dict[str, Any], machine: Machine, message: str | None
) -> None:
    whole = {"data": "s", "render": {"max_length": 512}, **given}
    result = list(faults(TrainConfig.model_validate(whole), machine))
    assert (result == []) if message is None else any(message in item for item in result), result


def test_m3s_configuration_is_read_as_it_is() -> None:
    config, other = read_config(M3)
    assert other is not None
    names = [item.name for item in other.mapped] + [item.name for item in other.left]
    assert sorted(names) == sorted(M3)
    assert config.method == "sft"
    assert config.lora is not None
    assert (config.lora.r, config.lora.lora_alpha, config.lora.lora_dropout) == (64, 32, 0.1)
    assert (config.launch.zero, config.launch.offload) == (3, True)
    assert config.render.max_length == 32768
    assert config.model.attn_implementation == "flash_attention_2"
    assert (config.training.warmup_steps, config.training.save_strategy) == (0.1, "no")
    assert {item.name for item in other.left if item.why == "it is not known"} == set()
    lines = "\n".join(other.lines())
    assert config.render.wire_form == "m3_mistral"
    assert 'template = "student_mistral" -> render.wire_form = "m3_mistral"' in lines
    other = read_config({**M3, "template": "llama3"})[1]
    assert 'template = "llama3" -> nothing: the tokenizer\'s own' in "\n".join(other.lines())


def test_m3s_preference_settings() -> None:
    given = {**M3, "stage": "dpo", "pref_loss": "aot_pair", "pref_ftx": 0.5, "ld_alpha": 0.3}
    config, other = read_config(given)
    assert other is not None
    assert config.method == "dpo"
    assert config.dpo.loss_type == ("aot_unpaired", "sft")
    assert config.dpo.loss_weights == (1.0, 0.5)
    assert (config.dpo.beta, config.dpo.ld_alpha) == (0.1, 0.3)
    with pytest.raises(UsageError, match="PPO"):
        read_config({**M3, "stage": "ppo"})
    assert read_config({**M3, "finetuning_type": "full"})[0].lora is None
    plus = {
        "lora_alpha": None,
        "pissa_init": True,
        "pissa_iter": -1,
        "lora_target": "q_proj,v_proj",
    }
    lora = read_config({**M3, **plus})[0].lora
    assert lora is not None
    assert (lora.lora_alpha, lora.init_lora_weights) == (128, "pissa")
    assert lora.target_modules == ("q_proj", "v_proj")


def test_the_call_says_which_settings_of_m3s_file_hold() -> None:
    """M3's file says stage: sft and holds the settings of DPO beside it."""
    given = {**M3, "pref_loss": "ipo", "pref_beta": 0.3, "ref_model": "base"}
    config, other = read_config(given, (), {"method": "dpo"})
    assert other is not None
    assert (config.method, config.dpo.loss_type, config.dpo.beta) == ("dpo", ("ipo",), 0.3)
    assert config.dpo.ref_model_name_or_path == "base"
    lines = other.lines()
    assert 'stage = "sft" -> nothing: this call trains dpo' in lines
    assert not [line for line in lines if line.startswith("pref_") and "nothing" in line]

    config, other = read_config(given, ("method=kto",), {"method": "sft"})
    assert other is not None
    assert (config.method, config.kto.beta) == ("kto", 0.3)
    assert config.kto.ref_model_name_or_path == "base"
    assert 'pref_loss = "ipo" -> nothing: it is for DPO, and this call trains kto' in (
        other.lines()
    )


@pytest.mark.parametrize("method", ["sft", "dpo", "kto", "grpo", "reward"])
@pytest.mark.parametrize("stage", [None, "sft", "dpo", "kto", "rm"])
def test_every_setting_of_a_foreign_file_holds_or_is_named(stage: str | None, method: str) -> None:
    preference = {
        "pref_loss": "ipo", "pref_beta": 0.3, "pref_ftx": 0.5, "dpo_label_smoothing": 0.1,
        "simpo_gamma": 0.4, "ld_alpha": 0.2, "kto_chosen_weight": 2.0, "kto_rejected_weight": 3.0,
        "ref_model": "base", "disable_dropout": True,
    }  # fmt: skip
    given = {**M3, "stage": stage, **preference}
    assert read_config(given)[0].method == {None: "sft", "rm": "reward"}.get(stage, stage)
    config, other = read_config(given, (), {"method": method})
    assert other is not None
    assert config.method == method
    messages = [item.name for item in other.mapped] + [item.name for item in other.left]
    assert sorted(messages) == sorted(given)
    plain = config.plain()
    for setting in other.mapped:
        for path, value in setting.to.items():
            place: Any = plain
            for name in path.split("."):
                place = place[name]  # a section of another method is no longer there
            assert place == value, path
    assert all(left.why for left in other.left)


def test_a_stage_that_is_not_trained_here_is_refused_whatever_the_call_says() -> None:
    cases: list[tuple[Any, str]] = [
        ("ppo", "PPO, and TRL 1.16 has no PPO"), ("pt", "pre-training"),
        ("foo", "not known"), (["dpo"], "not known"),
    ]  # fmt: skip
    for stage, output in cases:
        with pytest.raises(UsageError, match=output):
            read_config({**M3, "stage": stage}, (), {"method": "dpo"})


def test_the_stage_rm_is_a_reward_model() -> None:
    given = {**M3, "stage": "rm", "pref_beta": 0.3, "disable_dropout": True}
    config, other = read_config(given)
    assert other is not None
    assert (config.method, config.reward.disable_dropout) == ("reward", True)
    assert config.learning_rate == M3["learning_rate"]
    lines = other.lines()
    assert 'stage = "rm" -> method = "reward" (rm, a reward model, is method reward)' in lines
    assert "pref_beta = 0.3 -> nothing: it is for DPO, and this call trains reward" in lines
    # As ever, the call wins, and then the stage is named.
    config, other = read_config(given, (), {"method": "dpo"})
    assert other is not None
    assert (config.method, config.dpo.beta) == ("dpo", 0.3)
    assert 'stage = "rm" -> nothing: this call trains dpo' in other.lines()


def test_the_method_of_the_playgrounds_file_gives_way_to_the_calls() -> None:
    given = {"training": {"method": "dpo", "beta": 0.2, "learning_rate": 1e-5}}
    config, other = read_config(given, (), {"method": "sft"})
    assert other is not None
    assert config.method == "sft"
    assert other.lines()[-2:] == [
        'training.method = "dpo" -> nothing: this call trains sft',
        "training.beta = 0.2 -> nothing: it is for DPO, and this call trains sft",
    ]
    assert read_config(given, (), {"method": "dpo"})[0].dpo.beta == 0.2


@pytest.mark.skipif(not PLAYGROUND.is_dir(), reason="the real samples are not here")
@pytest.mark.parametrize("name", ["dpo_config", "sft_toolbench_config", "teacher_mode_config"])
def test_real_files_of_the_playground(name: str) -> None:
    path = PLAYGROUND / f"{name}.json"
    given = json.loads(path.read_text())
    config, other = read_config(path)
    assert other is not None
    messages = {item.name for item in other.mapped} | {item.name for item in other.left}
    for section, values in given.items():
        inside = isinstance(values, dict) and values and section not in ("tools", "evaluation")
        wanted = {f"{section}.{key}" for key in values} if inside else {section}
        assert wanted <= messages
    assert not [item for item in other.left if item.why == "it is not known"]
    training = given["training"]
    assert config.method == {"dpo": "dpo"}.get(training["method"], "sft")
    assert config.training.learning_rate == float(training["learning_rate"])
    assert config.render.max_length == training["max_length"]
    assert config.lora is not None
    assert config.lora.r == training["lora_r"]
    assert config.data.eval_share == pytest.approx(1 - given["data"]["train_split"])
    # With what it has no place for, a store, nothing stands in the way on a GPU.
    ready = config.model_copy(update={"data": config.data.model_copy(update={"store": "s"})})
    machine = Machine(gpus=1, bitsandbytes=True)
    assert list(faults(ready, machine)) == []


def test_sages_configuration() -> None:
    given = {
        "base_model": "Qwen/Qwen2.5-7B-Instruct", "train_data": "agent_sft:train",
        "max_length": 4096, "load_in_8bit": True, "fp16": True, "optim": "paged_adamw_8bit",
        "use_coreset_selection": True, "lora_r": 64, "lora_alpha": 128, "lora_dropout": 0.05,
        "use_lora_plus": True, "lora_plus_lr_ratio": 16.0, "num_epochs": 3, "batch_size": 1,
        "gradient_accumulation": 16, "learning_rate": 2e-5, "warmup_ratio": 0.1,
        "lr_scheduler": "cosine", "report_to": "none", "seed": 42, "unheard_of": 1,
    }  # fmt: skip
    config, other = read_config(given)
    assert other is not None
    assert config.lora is not None
    assert (config.lora.r, config.lora.loraplus_lr_ratio) == (64, 16.0)
    assert config.training.gradient_accumulation_steps == 16
    assert {item.name: item.why for item in other.left}["unheard_of"] == "it is not known"
    off = read_config({**given, "use_lora_plus": False, "use_lora": False})[0]
    assert off.lora is None


def test_a_configuration_can_be_written_and_read_again(tmp_path: Path) -> None:
    config = TrainConfig.model_validate({"data": "s", "method": "dpo", "training": {"seed": 3}})
    (tmp_path / "train.yaml").write_text(yaml.safe_dump(config.model_dump(mode="json")))
    again, _ = read_config(tmp_path / "train.yaml", more={"data.store": "s"})
    assert again == config
