"""Small stores and configurations for training in tests, and a slow reference of the loss."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from adp.rendering.options import RenderOptions
from adp.rendering.run import render_store
from adp.trainers.config import TrainConfig
from adp.trainers.config_file import read_config
from adp_schema.store import Store
from tests.trainers.pair_stores import call, run, say, write_pairs

TRAINING = [
    pytest.mark.train,
    pytest.mark.usefixtures("training_cache"),
    # Old names that TRL and PEFT call, and what torch says of its own parts.
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings(
        "ignore::DeprecationWarning:(torch|transformers|peft|trl|accelerate)"
    ),
]
"""Marks of the tests that train."""

WORDS = ("weather", "paris", "table", "column", "file", "line", "error", "value", "query", "limit")


def write_runs(folder: Path, count: int = 8, weights: tuple[float | None, ...] = (None,)) -> Store:
    """Runs of two steps each, of different lengths; the last step's weight goes round."""
    chance = random.Random(7)

    def some(low: int, high: int) -> str:
        return " ".join(chance.choices(WORDS, k=chance.randint(low, high)))

    runs = []
    for index in range(count):
        query = some(1, 4)
        columns = {"loss_weight": weights[index % len(weights)]}
        steps = [call(query, f"found {some(3, 12)}"), say(f"The answer is {some(1, 2)}", **columns)]
        runs.append(run(f"r{index}", f"find {query}", steps))
    return write_pairs(folder, runs)


def config_of(store: Store | Path | str, **more: Any) -> TrainConfig:
    """A short run on the model ``tiny``; further values by path, with __ for dots."""
    place = store.root if isinstance(store, Store) else str(store)
    values = {
        "data.store": place,
        "data.workers": 1,
        "lora.r": 4,
        "training.learning_rate": 0.01,
        "training.max_steps": 4,
        "training.per_device_train_batch_size": 8,
        "training.per_device_eval_batch_size": 64,
        "training.gradient_accumulation_steps": 1,
        "training.gradient_checkpointing": False,
        "training.save_strategy": "no",
        "training.use_cpu": True,
        # Losses are compared with those of a reference in float32.
        "training.bf16": False,
        **{name.replace("__", "."): value for name, value in more.items()},
    }
    return read_config(None, more=values)[0]


def rows_of(config: TrainConfig) -> list[dict[str, Any]]:
    """The rows that a run trains on, by rendering them again."""
    import pyarrow.parquet as pq

    assert config.data.store is not None
    options: RenderOptions = config.resolved().render
    report = render_store(Store.open(config.data.store), "tiny", options=options, workers=1)
    return [row for path in report.files() for row in pq.read_table(path).to_pylist()]


def reference_loss(model: Any, rows: list[dict[str, Any]]) -> float:
    """Sum of weight times loss over the trained tokens, over their number; row by row."""
    import torch

    total, count = 0.0, 0
    with torch.no_grad():
        for row in rows:
            ids = torch.tensor([row["input_ids"]])
            logs = torch.log_softmax(model(input_ids=ids).logits[0].double(), -1)
            for place in range(1, len(row["input_ids"])):
                if row["labels"][place] != -100:
                    loss = -logs[place - 1, row["labels"][place]].item()
                    total += row["loss_weights"][place] * loss
                    count += 1
    return total / count


def log_of(out: Path) -> list[dict[str, Any]]:
    """The lines of the log."""
    return [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]


def losses_of(out: Path) -> list[float]:
    """The losses of the steps."""
    return [line["loss"] for line in log_of(out) if "loss" in line]


def load(out: Path) -> Any:
    """What was trained: the base with the adapter, or the whole model."""
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    if (out / "model").exists():
        return AutoModelForCausalLM.from_pretrained(out / "model", dtype="float32").eval()
    base = AutoModelForCausalLM.from_pretrained(out / "base", dtype="float32")
    return PeftModel.from_pretrained(base, str(out / "adapter")).eval()
