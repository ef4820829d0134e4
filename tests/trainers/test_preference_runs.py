"""DPO, KTO and GRPO train on TRL's own trainers, and only on what they should."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.trainers.preference_runs import (
    RESULT,
    configure,
    logged,
    prepare,
    trainer,
    write_agents,
)

pytestmark = [
    pytest.mark.train,
    # TRL 1.16 uses names that transformers 5.23 calls old.
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]


@pytest.fixture(scope="module")
def agents(tmp_path_factory) -> Path:
    folder: Path = tmp_path_factory.mktemp("agents") / "s"
    write_agents(folder)
    return folder


def watch(made: Any) -> list[str]:
    """What stands under the loss in every call of the model from now on, policy and reference."""
    seen: list[str] = []
    model = made.model
    forward = model.forward

    def watched(*args: Any, **kwargs: Any) -> Any:
        for row in kwargs.get("labels", ()):
            seen.append(made.processing_class.decode(row[row != -100]))
        return forward(*args, **kwargs)

    model.forward = watched
    return seen


def call_text(query: str) -> str:
    return f'<tool_call>{{"name": "search", "arguments": {{"query": "{query}"}}}}</tool_call>'


GOOD = {f"{call_text(f'weather {n}')}<|im_end|>the answer is yes<|im_end|>" for n in range(8)}
BAD = {f"{call_text(f'wrong {n}')}<|im_end|>no no no<|im_end|>" for n in range(8)}


def started(config: Any, tmp_path: Path, name: str = "run") -> Any:
    prepare(config, tmp_path / name)
    return trainer(config, tmp_path / name, tmp_path / f"{name}-out")


def logits(model: Any) -> Any:
    import torch

    with torch.no_grad():
        return model.eval()(input_ids=torch.arange(5, 25)[None]).logits


def reloaded(config: Any, tmp_path: Path, adapter: Path) -> Any:
    from peft import PeftModel

    from adp.trainers.model import load_model

    return PeftModel.from_pretrained(load_model(config, tmp_path / "run"), adapter)


def test_dpo_learns_the_pairs_and_nothing_else(agents, tmp_path):
    import torch

    made = started(config := configure(agents, "dpo", {"max_steps": 6}), tmp_path)
    seen = watch(made)
    made.train()
    # Results of tools, headers and the masked step of the chosen sides are never in a loss.
    assert set(seen) <= GOOD | BAD
    assert set(seen) & GOOD
    assert set(seen) & BAD
    losses, margins = logged(made, "loss"), logged(made, "rewards/margins")
    assert losses[0] == pytest.approx(0.6931, abs=1e-4)
    assert losses[-1] < 0.5
    assert margins[-1] > 0.5
    # What is saved is the trained adapter alone, and it gives the same model again.
    made.save_model(str(tmp_path / "adapter"))
    assert not (tmp_path / "adapter" / "ref").exists()
    again = reloaded(config, tmp_path, tmp_path / "adapter")
    assert torch.allclose(logits(again), logits(made.model), atol=1e-6)


@pytest.mark.slow
def test_dpo_goes_on_with_an_adapter_and_compares_with_it(agents, tmp_path):
    import torch

    first = started(configure(agents, "dpo", {"max_steps": 3}), tmp_path)
    first.train()
    first.save_model(str(tmp_path / "sft"))
    old = {"adapter_name_or_path": str(tmp_path / "sft")}
    shape = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1}
    model = {"model_name_or_path": "tiny", "tiny": shape, **old}
    made = started(configure(agents, "dpo", {"max_steps": 3}, model=model), tmp_path, "second")
    frozen = {
        name: value.clone() for name, value in made.model.named_parameters() if ".ref." in name
    }
    made.train()
    # The reference is the adapter as it was: at first nothing differs, to the last bit.
    assert logged(made, "rewards/chosen")[0] == 0.0
    assert logged(made, "rewards/rejected")[0] == 0.0
    assert logged(made, "rewards/margins")[-1] > 0
    parameters = dict(made.model.named_parameters())
    assert frozen
    for name, value in frozen.items():
        assert torch.equal(value, parameters[name])
        assert not torch.equal(value, parameters[name.replace(".ref.", ".default.")])
    made.save_model(str(tmp_path / "dpo"))
    assert not (tmp_path / "dpo" / "ref").exists()
    # By option it is the model without the adapter, which the policy differs from at once.
    base = configure(agents, "dpo", {"max_steps": 1}, model=model, dpo={"reference": "base"})
    compared = started(base, tmp_path, "third")
    compared.train()
    assert abs(logged(compared, "rewards/chosen")[0]) > 0.01
    assert list(compared.model.peft_config) == ["default"]


def test_kto_learns_what_is_good(agents, tmp_path):
    made = started(configure(agents, "kto", {"max_steps": 8}), tmp_path)
    seen = watch(made)
    made.train()
    assert set(seen) <= GOOD | BAD
    assert not any(RESULT in text for text in seen)
    losses, margins = logged(made, "loss"), logged(made, "rewards/margins")
    assert losses[0] == pytest.approx(0.5, abs=1e-4)
    assert losses[-1] < 0.42
    assert margins[-1] > 0.5


def test_grpo_learns_what_is_rewarded(agents, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small_ids.py").write_text(
        "def reward(completion_ids, **_):\n"
        "    return [sum(i < 320 for i in ids) / len(ids) for ids in completion_ids]\n"
    )
    ours = {
        "rewards": ["small_ids:reward", "length"],
        "num_generations": 8,
        "max_completion_length": 8,
        "length_buffer": 1,
    }
    sizes = {"per_device_train_batch_size": 16, "max_steps": 10, "learning_rate": 0.02}
    config = configure(agents, "grpo", sizes, grpo=ours, lora=None)
    made = started(config, tmp_path)
    prompt = made.train_dataset[0]["prompt"]
    ids, *_ = made._tokenize_prompts([prompt])
    assert made.processing_class.decode(ids[0]) == prompt
    made.train()
    rewards = logged(made, "rewards/small_ids:reward/mean")
    assert sum(rewards[-3:]) / 3 > sum(rewards[:3]) / 3 + 0.1


@pytest.mark.slow
@pytest.mark.parametrize("method", ["dpo", "kto"])
def test_a_resumed_run_equals_an_uninterrupted_one(agents, tmp_path, method):
    import torch

    saved = {"max_steps": 6, "save_strategy": "steps", "save_steps": 3}
    config = configure(agents, method, saved)
    whole = started(config, tmp_path)
    whole.train()
    checkpoint = tmp_path / "run-out" / "checkpoints" / "checkpoint-3"
    assert not (checkpoint / "ref").exists()
    again = trainer(config, tmp_path / "run", tmp_path / "again")
    again.train(resume_from_checkpoint=str(checkpoint))
    assert logged(again, "loss") == logged(whole, "loss")
    assert torch.equal(logits(again.model), logits(whole.model))


@pytest.mark.slow
def test_a_continued_adapter_is_resumed_with_its_reference(agents, tmp_path):
    import torch

    first = started(configure(agents, "dpo", {"max_steps": 3}), tmp_path)
    first.train()
    first.save_model(str(tmp_path / "sft"))
    shape = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1}
    model = {
        "model_name_or_path": "tiny",
        "tiny": shape,
        "adapter_name_or_path": str(tmp_path / "sft"),
    }
    saved = {"max_steps": 6, "save_strategy": "steps", "save_steps": 3}
    config = configure(agents, "dpo", saved, model=model)
    whole = started(config, tmp_path, "second")
    whole.train()
    again = trainer(config, tmp_path / "second", tmp_path / "again")
    checkpoint = tmp_path / "second-out" / "checkpoints" / "checkpoint-3"
    again.train(resume_from_checkpoint=str(checkpoint))
    assert logged(again, "loss") == logged(whole, "loss")
    assert torch.equal(logits(again.model), logits(whole.model))


@pytest.mark.slow
@pytest.mark.parametrize("method", ["dpo", "kto"])
def test_all_weights_with_a_reference_in_memory_or_computed_before(agents, tmp_path, method):
    training = {"max_steps": 4, "learning_rate": 1e-3}
    extra_keys = started(configure(agents, method, training, lora=None), tmp_path)
    assert extra_keys.ref_model is not None
    extra_keys.train()
    before = configure(
        agents, method, training, lora=None, **{method: {"precompute_ref_log_probs": True}}
    )
    computed = started(before, tmp_path, "before")
    assert computed.ref_model is None
    computed.train()
    assert logged(computed, "loss") == pytest.approx(logged(extra_keys, "loss"), rel=1e-4)
    assert logged(extra_keys, "rewards/margins")[-1] > 0


@pytest.mark.slow
@pytest.mark.parametrize("before", [False, True])
def test_the_base_is_the_reference_also_when_computed_before(agents, tmp_path, before):
    first = started(configure(agents, "dpo", {"max_steps": 3}), tmp_path)
    first.train()
    first.save_model(str(tmp_path / "sft"))
    shape = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1}
    model = {
        "model_name_or_path": "tiny",
        "tiny": shape,
        "adapter_name_or_path": str(tmp_path / "sft"),
    }
    for reference, starts_at_zero in (("start", True), ("base", False)):
        ours = {"reference": reference, "precompute_ref_log_probs": before}
        config = configure(agents, "dpo", {"max_steps": 1}, model=model, dpo=ours)
        made = started(config, tmp_path, f"{reference}")
        made.train()
        reward = abs(logged(made, "rewards/chosen")[0])
        assert reward < 1e-4 if starts_at_zero else reward > 0.01


@pytest.mark.slow
@pytest.mark.parametrize("lora", [{"r": 4}, None])
@pytest.mark.parametrize("loss", ["orpo", "simpo"])
def test_losses_without_a_reference(agents, tmp_path, loss, lora):
    training = {"max_steps": 6, "learning_rate": 5e-3 if lora else 1e-3}
    ours = {"loss_type": [loss, "sft"], "loss_weights": [1.0, 0.1], "beta": 1.0}
    made = started(configure(agents, "dpo", training, dpo=ours, lora=lora), tmp_path)
    assert made.ref_model is None
    made.train()
    assert logged(made, "loss")[-1] < logged(made, "loss")[0]
    margins = logged(made, "rewards/margins")
    assert margins[-1] > margins[0]
    if lora:
        assert list(made.model.peft_config) == ["default"]


@pytest.mark.slow
def test_measured_while_training(agents, tmp_path):
    data = {"store": str(agents), "eval_share": 0.4}
    for method in ("dpo", "kto"):
        config = configure(agents, method, {"num_train_epochs": 1}, data=data)
        made = started(config, tmp_path, method)
        made.train()
        assert logged(made, "eval_loss")


@pytest.mark.slow
@pytest.mark.parametrize("before", [False, True])
def test_two_processes_equal_one(agents, tmp_path, before):
    """The global batch is the same, and so is the loss; rows on disk are found by both."""
    from adp.trainers.run import train

    losses = []
    for count in (1, 2):
        config = configure(
            agents,
            "dpo",
            {"max_steps": 4, "per_device_train_batch_size": 4 // count},
            launch={"processes": count},
            dpo={"precompute_ref_log_probs": before},
        )
        done = train(config, tmp_path / f"by {count}")
        assert done.record is not None
        lines = (tmp_path / f"by {count}" / "metrics.jsonl").read_text().splitlines()
        losses.append([line["loss"] for line in map(json.loads, lines) if "loss" in line])
    assert len(losses[0]) == 4
    assert losses[1] == pytest.approx(losses[0], rel=1e-4)
