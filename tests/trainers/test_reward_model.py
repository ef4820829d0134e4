"""Reward models on the CPU: the loss is that of the formula, and what is saved gives the order."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from adp.cli.main import main
from adp.trainers.config import TrainConfig
from adp.trainers.merge import merge
from adp.trainers.run import train
from adp_schema.errors import UsageError
from tests.trainers.preference_runs import configure, prepare, write_agents
from tests.trainers.small_runs import TRAINING, log_of

pytestmark = [*TRAINING, pytest.mark.filterwarnings("ignore::UserWarning")]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pairs") / "store"
    write_agents(folder)
    return folder


def _rows(config: TrainConfig, folder: Path) -> list[dict[str, Any]]:
    from adp.trainers.rows import TRAIN, read_arrow

    prepare(config, folder)
    rows = read_arrow(folder / TRAIN)
    assert rows is not None
    return list(rows)


def _load(out: Path) -> Any:
    """What was saved, by PEFT itself."""
    from peft import PeftModel
    from transformers import AutoModelForSequenceClassification

    base = AutoModelForSequenceClassification.from_pretrained(
        out / "base", num_labels=1, dtype="float32"
    )
    return PeftModel.from_pretrained(base, str(out / "adapter")).eval()


def _score(model: Any, ids: list[int]) -> float:
    """The number at the last token of a row without padding."""
    import torch

    with torch.no_grad():
        hidden = model.base_model.model.model(input_ids=torch.tensor([ids])).last_hidden_state
        number: float = model.base_model.model.score(hidden[0, -1]).item()
    return number


def test_the_order_is_learnt_and_what_is_saved_gives_it(store: Path, tmp_path: Path) -> None:
    config = configure(store, "reward", {"max_steps": 12}, reward={"disable_dropout": True})
    done = train(config, tmp_path / "out")
    assert done.record is not None
    losses = [line["loss"] for line in log_of(tmp_path / "out") if "loss" in line]
    # With a random head, about log 2; learnt, close to nothing.
    assert losses[0] == pytest.approx(math.log(2), abs=0.3)
    assert losses[-1] < 0.1
    model = _load(tmp_path / "out")
    rows = _rows(config, tmp_path / "rows")
    assert len(rows) == 8
    for row in rows:
        assert _score(model, row["chosen_ids"]) > _score(model, row["rejected_ids"]) + 1
    facts = merge(tmp_path / "out", tmp_path / "merged")
    assert facts["parameters"]
    from transformers import AutoModelForSequenceClassification

    merged = AutoModelForSequenceClassification.from_pretrained(tmp_path / "merged").eval()
    import torch

    ids = rows[0]["chosen_ids"]
    with torch.no_grad():
        number = merged(input_ids=torch.tensor([ids])).logits[0, 0].item()
    assert number == pytest.approx(_score(model, ids), abs=1e-3)
    assert "text-classification" in (tmp_path / "out" / "adapter" / "README.md").read_text()


def test_the_loss_is_that_of_bradley_and_terry(store: Path, tmp_path: Path) -> None:
    """All pairs in one batch, a rate of next to nothing: the loss is that of what is saved."""
    training = {"max_steps": 1, "per_device_train_batch_size": 8, "learning_rate": 1e-12}
    centred = {"center_rewards_coefficient": 0.5}
    config = configure(store, "reward", training, reward=centred)
    train(config, tmp_path / "out")
    model = _load(tmp_path / "out")
    total = 0.0
    for row in _rows(config, tmp_path / "rows"):
        better, worse = (_score(model, row[f"{side}_ids"]) for side in ("chosen", "rejected"))
        total += math.log1p(math.exp(worse - better)) + 0.5 * (better + worse) ** 2
    logged = [line["loss"] for line in log_of(tmp_path / "out") if "loss" in line]
    assert logged == [pytest.approx(total / 8, rel=1e-4)]


def test_both_sides_are_whole_conversations(store: Path, tmp_path: Path) -> None:
    """Tokens as the template writes them: each side is what the agent's run is as a whole."""
    from adp.rendering.tiny import tiny_tokenizer

    rows = _rows(configure(store, "reward", {}), tmp_path / "rows")
    texts = [tiny_tokenizer().decode(rows[0][f"{side}_ids"]) for side in ("chosen", "rejected")]
    assert all(text.count("weather in city") == 1 for text in texts)
    assert "the answer is yes" in texts[0]
    assert "no no no" in texts[1]
    assert all(text.rstrip().endswith("<|im_end|>") for text in texts)


@pytest.mark.parametrize(("method", "words"), [
    ("ppo", "TRL 1.16 has no PPO"), ("rm", "method: reward"), ("GKD", "method: distill"),
    ("online_dpo", "among its experiments"),
    ("rloo", "scale_rewards: none"),
])  # fmt: skip
def test_methods_that_there_are_not_are_named_with_what_there_is(method: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        TrainConfig.model_validate({"method": method})


def test_the_commands(store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    short = ["--set=training.max_steps=1", "--set=training.use_cpu=true", "--set=data.workers=1"]
    out = str(tmp_path / "out")
    words = ["train", "reward", str(store), "--model", "tiny", "-o", out, "--json", *short]
    assert main(words) == 0
    record = json.loads(capsys.readouterr().out)
    assert (record["method"], record["learning_rate"]) == ("reward", 1e-4)
    for options in ([], ["runs", "--model", "tiny", "-o", "out", "--set", "a=b"]):
        assert main(["train", "ppo", *options]) == 2
    assert "TRL 1.16 has no PPO" in " ".join(capsys.readouterr().err.split())
    section = ["--set", "evaluate.env=calculator"]
    assert main([*words[:5], "-o", str(tmp_path / "no"), *section]) == 2


def test_pissa_is_refused_for_a_head_that_is_trained(store: Path, tmp_path: Path) -> None:
    config = configure(store, "reward", {}, lora={"init_lora_weights": "pissa"})
    with pytest.raises(UsageError, match="trained as a whole"):
        train(config, tmp_path / "out")
