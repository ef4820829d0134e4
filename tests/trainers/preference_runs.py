"""Small runs of DPO, KTO and GRPO in one process, on the model ``tiny``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from adp.core.progress import Silent
from adp.trainers.arguments import common_arguments
from adp.trainers.config import TrainConfig
from adp.trainers.method import METHODS, TrainingPlan
from adp.trainers.model import build_tiny
from tests.trainers.pair_stores import call, run, say, sides, write_pairs

SMALL = {
    "per_device_train_batch_size": 4,
    "gradient_accumulation_steps": 1,
    "gradient_checkpointing": False,
    "learning_rate": 1e-2,
    "lr_scheduler_type": "constant",
    "warmup_steps": 0,
    "use_cpu": True,
    # Weights and losses are compared with those of a reference in float32.
    "bf16": False,
    "save_strategy": "no",
}
"""Settings of training that suit the model ``tiny``."""

RESULT = "RESULT"
"""Stands in every result of a tool, and in no other text."""


def write_agents(folder: Path, count: int = 8) -> None:
    """Write a store of pairs: who searches well and says so, and who does not.

    The second step of a chosen side is masked, so it must not be learnt.
    """
    runs, pairs = [], []
    for n in range(count):
        good = [
            call(f"weather {n}", f"{RESULT} sunny {n}"),
            say("masked words here", loss_weight=0.0),
            say("the answer is yes"),
        ]
        bad = [call(f"wrong {n}", f"{RESULT} error {n}"), say("no no no")]
        runs.append(run(f"g{n}", f"weather in city {n}?", good, success=True))
        runs.append(run(f"b{n}", f"weather in city {n}?", bad, success=False))
        pairs.append(sides(f"g{n}", f"b{n}"))
    write_pairs(folder, runs, pairs)


def configure(store: Path, method: str, training: dict[str, Any], **sections: Any) -> TrainConfig:
    """A configuration for the model ``tiny``."""
    shape = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1}
    values = {
        "method": method,
        "data": str(store),
        "model": {"model_name_or_path": "tiny", "tiny": shape},
        "training": {**SMALL, **training},
        **sections,
    }
    return TrainConfig.model_validate(values)


def prepare(config: TrainConfig, folder: Path) -> TrainingPlan:
    """Write rows and model of a run."""
    folder.mkdir(parents=True)
    plan = METHODS.get(config.method).prepare(config, folder, Silent())
    build_tiny(folder / "base", config.model.tiny)
    return plan


def trainer(config: TrainConfig, folder: Path, out: Path) -> Any:
    """The trainer of a run that was prepared."""
    made = METHODS.get(config.method)
    return made.trainer(config, folder, common_arguments(config, out), [])


def logged(trainer: Any, name: str) -> list[float]:
    """A measure of all steps."""
    return [line[name] for line in trainer.state.log_history if name in line]
