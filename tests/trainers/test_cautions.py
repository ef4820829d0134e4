"""What a run is warned of, and which kernels are refused where they would change the loss."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from adp.trainers.cautions import cautions, parameters
from adp.trainers.incompatible import faults
from adp.trainers.machine import Machine
from adp.trainers.run import plan_run
from adp_schema.errors import UsageError
from tests.trainers.small_runs import config_of, write_runs

pytestmark = pytest.mark.train

GPU = Machine(gpus=1, gpu_bytes=80 * 10**9, bitsandbytes=True, liger=True)


def _config(**more: Any) -> Any:
    values = {"training__use_cpu": False, "training__bf16": "auto", **more}
    return config_of("store", **values).resolved()


@pytest.fixture
def model(tmp_path: Path) -> str:
    """The configuration of a model, without weights."""
    from transformers import Qwen3Config

    shape = {"hidden_size": 512, "intermediate_size": 1024, "num_hidden_layers": 8,
             "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 64,
             "vocab_size": 4000, "tie_word_embeddings": False}  # fmt: skip
    Qwen3Config(**shape).save_pretrained(tmp_path / "model")
    return str(tmp_path / "model")


def _packed(length: int, batch: int = 1, **more: Any) -> Any:
    return _config(
        model__model_name_or_path="someone/else",
        training__packing=True,
        training__per_device_train_batch_size=batch,
        render__max_length=length,
        **more,
    )


def test_a_mask_of_packed_rows_is_warned_of_and_refused_when_it_is_too_large() -> None:
    sentences = cautions(_packed(16384), GPU)
    assert len(sentences) == 1
    # All pairs of 16,384 places in 2 bytes.
    assert "a mask of 0.5 GiB" in sentences[0]
    assert list(faults(_packed(16384), GPU)) == []
    refused = list(faults(_packed(16384, batch=4), GPU))
    assert len(refused) == 1
    assert "8.0 GiB" in refused[0]
    flash = _packed(16384, batch=4, model__attn_implementation="flash_attention_2")
    assert cautions(flash, GPU) == list(faults(flash, GPU)) == []
    assert cautions(_packed(16384), Machine()) == []


def test_the_memory_of_all_weights_is_counted(model: str) -> None:
    config = _config(model__model_name_or_path=model, render__max_length=512)
    full = config.model_copy(update={"lora": None})
    count = parameters(full)
    assert count is not None
    layer = 512 * 512 * 2 + 512 * 256 * 2 + 3 * 512 * 1024 + 2 * 512 + 2 * 64
    assert count == 8 * layer + 2 * 4000 * 512 + 512
    enough, little = (Machine(gpus=1, gpu_bytes=int(16 * count * part)) for part in (2, 1))
    assert cautions(full, enough) == []
    assert "billion weights takes" in cautions(full, little)[0]
    assert cautions(config, little) == []


@pytest.mark.parametrize(
    "more",
    [
        {"launch__fsdp": True, "launch__processes": 8},
        {"launch__zero": 3, "launch__processes": 8},
        {"model__load_in_4bit": True},
        {"training__other": {"use_liger_kernel": True}},
    ],
)
def test_what_was_not_tested_on_gpus_is_said_where_it_is_chosen(more: dict[str, Any]) -> None:
    sentences = cautions(_config(**more), GPU)
    assert [sentence.partition(":")[0] for sentence in sentences] == ["not tested on GPUs"]


LIGER = {"training__other": {"use_liger_kernel": True}}


@pytest.mark.parametrize(
    ("more", "machine", "words"),
    [
        (LIGER, Machine(), "need a GPU"),
        (LIGER, Machine(gpus=1), "pip install liger-kernel"),
        ({**LIGER, "method": "dpo"}, GPU, "exact masks of DPO"),
        ({**LIGER, "data__eval_share": 0.1}, GPU, "held-out rows"),
        (
            {
                "training__other": {
                    "use_liger_kernel": True,
                    "liger_kernel_config": {"fused_linear_cross_entropy": True},
                }
            },
            GPU,
            "takes the place of the head",
        ),
        ({"model__attn_implementation": "flash_attention_2"}, Machine(), "needs a GPU"),
        (
            {"model__attn_implementation": "flash_attention_2", "training__bf16": False},
            GPU,
            "not be that of float32",
        ),
    ],
)
def test_kernels_that_change_the_loss_are_refused(
    more: dict[str, Any], machine: Machine, words: str
) -> None:
    sentences = list(faults(_config(**more), machine))
    assert any(words in sentence for sentence in sentences), sentences


def test_liger_is_allowed_where_the_loss_stays_as_it_is() -> None:
    assert list(faults(_config(**LIGER), GPU)) == []


def test_fractional_weights_refuse_liger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADP_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("adp.trainers.run.refuse", lambda config: None)
    store = write_runs(tmp_path / "store", weights=(0.25, 1.0))
    with pytest.raises(UsageError, match="weights between 0 and 1 multiply"):
        plan_run(config_of(store, **LIGER))
    plan = plan_run(config_of(write_runs(tmp_path / "plain"), **LIGER))
    assert plan.rows


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.slow
def test_an_adapter_on_weights_in_4_bits_learns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """QLoRA on a processor, where bitsandbytes is installed."""
    pytest.importorskip("bitsandbytes")
    import torch

    from adp.core.progress import Silent
    from adp.rendering.tiny import tiny_model, tiny_tokenizer
    from adp.trainers.arguments import common_arguments
    from adp.trainers.method import METHODS

    monkeypatch.setenv("ADP_CACHE", str(tmp_path / "cache"))
    base = tiny_model({"hidden_size": 128, "intermediate_size": 256})
    base.to(torch.bfloat16).save_pretrained(tmp_path / "base")
    tiny_tokenizer().save_pretrained(tmp_path / "base")
    config = config_of(
        write_runs(tmp_path / "store"),
        model__model_name_or_path=str(tmp_path / "base"),
        model__load_in_4bit=True,
        render__max_length=2048,
        training__gradient_checkpointing=True,
        training__max_steps=6,
        training__learning_rate=0.003,
    ).resolved()
    rows = tmp_path / "rows"
    rows.mkdir()
    METHODS.get("sft").prepare(config, rows, Silent())
    args = common_arguments(config, tmp_path / "out")
    trainer = METHODS.get("sft").trainer(config, rows, args, [])
    kinds = {type(weight).__name__ for weight in trainer.model.parameters()}
    assert "Params4bit" in kinds
    frozen = {
        name: weight.clone()
        for name, weight in trainer.model.named_parameters()
        if not weight.requires_grad
    }
    trainer.train()
    losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    assert losses[-1] < losses[0] - 0.1
    for name, weight in trainer.model.named_parameters():
        assert weight.requires_grad == ("lora_" in name)
        assert name not in frozen or torch.equal(weight, frozen[name])
