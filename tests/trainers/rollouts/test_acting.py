"""GRPO in an environment: TRL's own trainer, with scripted turns in the place of the model's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from adp.rendering.tiny import tiny_tokenizer
from adp.trainers.config import LoraSection
from adp.trainers.run import train
from adp_schema.store import Store
from tests.trainers.rollouts.acting_runs import (
    ScriptedWriter,
    acting_config,
    sums,
    works_out,
)
from tests.trainers.small_runs import log_of

pytestmark = [
    pytest.mark.train,
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]


class Losses:
    """What TRL's trainer puts under the loss."""

    def __init__(self, monkeypatch: Any) -> None:
        from adp.trainers.trl_environment import EnvironmentGRPOTrainer

        self.inputs: list[dict[str, Any]] = []
        self.values: list[float] = []
        compute = EnvironmentGRPOTrainer._compute_loss

        def watched(trainer: Any, model: Any, inputs: dict[str, Any]) -> Any:
            result = compute(trainer, model, inputs)
            self.inputs.append({**inputs})
            self.values.append(float(result.detach()))
            return result

        monkeypatch.setattr(EnvironmentGRPOTrainer, "_compute_loss", watched)


@pytest.fixture
def losses(monkeypatch) -> Losses:
    return Losses(monkeypatch)


def masked_texts(inputs: dict[str, Any]) -> list[str]:
    """What stands under the loss, row by row."""
    tokenizer = tiny_tokenizer()
    mask = (inputs["completion_mask"] * inputs["tool_mask"]).bool()
    rows = zip(inputs["completion_ids"], mask, strict=True)
    return [tokenizer.decode(ids[chosen].tolist()) for ids, chosen in rows]


def facts_of(row: dict[str, Any]) -> dict[str, Any]:
    facts: dict[str, Any] = json.loads(row["extra"])["grpo"]
    return facts


def test_only_what_the_model_wrote_is_under_the_loss(tmp_path, monkeypatch, losses):
    writer = ScriptedWriter(works_out).install(monkeypatch)
    train(acting_config(sums(tmp_path)), tmp_path / "run")
    end = "<|im_end|>"
    (first, *_) = losses.inputs
    texts = masked_texts(first)
    assert len(texts) == 8
    for text in texts:
        call, answer, rest = text.split(end)
        assert call in writer.texts
        assert answer in writer.texts
        assert not rest
        assert "tool_response" not in text
    whole = tiny_tokenizer().batch_decode(first["completion_ids"])
    assert all("<tool_response>" in text for text in whole)
    for name in ("prompt_ids", "completion_ids"):
        assert first[name].shape[0] == 8


def test_advantages_loss_and_store_say_the_same(tmp_path, monkeypatch, losses):
    ScriptedWriter(works_out).install(monkeypatch)
    train(acting_config(sums(tmp_path)), tmp_path / "run")
    rows = list(Store.open(str(tmp_path / "run" / "rollouts")).trajectories())
    assert len(rows) == 16
    assert len({row.trajectory_id for row in rows}) == 16
    steps: dict[int, list[Any]] = {}
    for row in rows:
        facts = facts_of(vars(row))
        steps.setdefault(facts["step"], []).append((row, facts))
        assert row.trajectory_id == f"grpo/step-{facts['step']:06d}/{row.task_id}/attempt-" + str(
            (row.attempt or 0) - 4 * facts["step"]
        )
        assert json.loads(row.rewards or "{}") == {"environment": row.reward}
        assert all(step.logprobs for step in row.steps if step.source == "agent")
    for step, items in steps.items():
        check_step(items, losses.inputs[step], losses.values[step])
    log = log_of(tmp_path / "run")
    assert [line["reward"] for line in log if "loss" in line] == [0.5, 0.5]
    assert log[0]["rollouts/success"] == 0.5
    assert log[0]["rollouts/calls"] == 1


def check_step(items: list[Any], inputs: dict[str, Any], loss: float) -> None:
    """Advantages by the formula of GRPO, and the loss that follows from them at ratio 1."""
    import torch

    total = count = 0.0
    for row, facts in items:
        group = [other.reward for other, known in items if known["group"] == facts["group"]]
        assert len(group) == 4
        wanted = (row.reward - sum(group) / 4) / (torch.tensor(group).std().item() + 1e-4)
        assert facts["advantage"] == pytest.approx(wanted, abs=1e-5)
        assert (facts["advantage"] > 0) == bool(row.success)
        written = sum(len(step.completion_token_ids or ()) for step in row.steps)
        assert facts["in_loss"] == written
        total, count = total + wanted * written, count + written
    assert loss == pytest.approx(-total / count, abs=1e-5)
    assert sorted(inputs["advantages"].tolist()) == pytest.approx(
        sorted(facts["advantage"] for _, facts in items), abs=1e-6
    )


def test_the_model_is_moved_towards_what_is_rewarded(tmp_path, monkeypatch):
    """The same turns in every step, so their likelihood under the loss can be compared."""
    ScriptedWriter(works_out).install(monkeypatch)
    path = sums(tmp_path, 2)
    config = acting_config(path, training={"max_steps": 12, "learning_rate": 3e-3})
    train(config, tmp_path / "run")
    before, after = (chances(tmp_path / "run", name) for name in ("base", "model"))
    assert after[True] - before[True] > 1
    assert after[True] - before[True] > after[False] - before[False] + 1


def chances(run: Path, name: str) -> dict[bool, float]:
    """Log likelihood of what was written, of episodes that succeeded and of others."""
    import torch
    from transformers import AutoModelForCausalLM

    from adp.trainers.rollouts.sequence import episode_tokens

    model = AutoModelForCausalLM.from_pretrained(run / name, dtype="float32").eval()
    sums_of: dict[bool, float] = {True: 0.0, False: 0.0}
    for row in Store.open(str(run / "rollouts")).trajectories():
        if facts_of(vars(row))["step"]:
            continue
        (tokens,) = episode_tokens(row).sequences
        ids = torch.tensor([[*tokens.prompt_ids, *tokens.response_ids]])
        with torch.no_grad():
            logs = torch.log_softmax(model(input_ids=ids).logits[0], -1)
        first = len(tokens.prompt_ids)
        for place, written in enumerate(tokens.response_mask):
            if written:
                chance = logs[first + place - 1, tokens.response_ids[place]].item()
                sums_of[bool(row.success)] += chance
    return sums_of


@pytest.mark.parametrize("adapter", [False, True])
def test_log_probabilities_are_those_that_the_trainer_compares_with(tmp_path, monkeypatch, adapter):
    """What the model really writes, at a temperature; an adapter, and activations that are
    computed twice, change nothing."""
    import torch

    from adp.trainers.trl_environment import EnvironmentGRPOTrainer

    seen: list[Any] = []
    compute = EnvironmentGRPOTrainer._compute_loss

    def watched(trainer: Any, model: Any, inputs: dict[str, Any]) -> Any:
        ids = torch.cat([inputs["prompt_ids"], inputs["completion_ids"]], 1)
        seen_mask = torch.cat([inputs["prompt_mask"], inputs["completion_mask"]], 1)
        width = inputs["completion_ids"].size(1)
        with torch.no_grad():
            logs, *_ = trainer._get_per_token_logps_and_entropies(model, ids, seen_mask, width)
        mask = (inputs["completion_mask"] * inputs["tool_mask"]).bool()
        seen.append((logs[mask], inputs["sampling_per_token_logps"][mask]))
        return compute(trainer, model, inputs)

    monkeypatch.setattr(EnvironmentGRPOTrainer, "_compute_loss", watched)
    config = acting_config(
        sums(tmp_path),
        {"max_turns": 3},
        {"gradient_checkpointing": adapter},
        temperature=0.7,
        max_completion_length=12,
    )
    if adapter:
        config = config.model_copy(update={"lora": LoraSection.model_validate({"r": 4})})
    train(config, tmp_path / "run")
    assert len(seen) == 2
    for ours, theirs in seen:
        assert ours.numel() > 50
        assert torch.allclose(ours, theirs, atol=1e-4)
