"""Train stages: what they begin with, what they are told, and that a stopped one goes on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("trl", reason="needs the train extra")

from adp.trainers.training_process import train_here
from adp.workflows.loop import LoopOptions, make_plan, read_loop, run_loop
from adp.workflows.loop.hashes import model_hash

pytestmark = [
    pytest.mark.train,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]

CONFIG = {
    "lora": {"r": 2},
    "data": {"workers": 1},
    "render": {"max_length": 4096},
    "training": {
        "max_steps": 2,
        "learning_rate": "${rate}",
        "save_steps": 1,
        "use_cpu": True,
        "gradient_checkpointing": False,
        "gradient_accumulation_steps": 1,
        "bf16": False,
    },
}
PLAIN = {
    "loop": 1,
    "seed": 9,
    "rounds": {
        "repeat": 2,
        "values": {"rate": [0.01, 0.02]},
        "stages": [
            {"collect": {"env": "toolworld", "policy": "expert", "tasks": "train:2:${round}"}},
            {"train": {"method": "sft", "store": "${collect}", "config": CONFIG}},
        ],
    },
}


@pytest.fixture
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a cache of its own."""
    monkeypatch.setenv("ADP_CACHE", str(tmp_path / "cache"))
    return tmp_path


def run(out: Path) -> dict[str, str]:
    """Run the loop; what its stages made."""
    records = run_loop(make_plan(read_loop(PLAIN), out.parent), out, LoopOptions())
    return {record.key: record.hash for record in records}


class Stopped(Exception):
    """What stops a training in a test; no error of adp."""


@pytest.mark.slow
def test_models_follow_each_other_and_a_stopped_training_goes_on(alone, monkeypatch):
    hashes = run(alone / "whole")
    records = [
        json.loads((alone / "whole" / f"round-{number}" / "train" / "run.json").read_text())
        for number in (1, 2)
    ]
    models = [record["config"]["model"] for record in records]
    assert [model["adapter_name_or_path"] for model in models] == [None, "round-1/train/adapter"]
    assert [model["model_name_or_path"] for model in models] == ["base", "base"]
    rates = [record["config"]["training"]["learning_rate"] for record in records]
    assert rates == [0.01, 0.02]
    assert [record["seed"] for record in records] == [9, 9]
    for number in (1, 2):
        folder = alone / "whole" / f"round-{number}" / "train" / "adapter"
        assert model_hash(folder)
    assert hashes["round-1.train"] != hashes["round-2.train"]

    def stop(config, out, *rest):
        from transformers import Trainer

        real = Trainer._maybe_log_save_evaluate

        def after_a_step(self, *args, **options):
            real(self, *args, **options)
            if self.state.global_step == 1:
                raise Stopped

        with monkeypatch.context() as patched:
            patched.setattr(Trainer, "_maybe_log_save_evaluate", after_a_step)
            train_here(config, out, *rest)

    monkeypatch.setattr("adp.trainers.run.train_here", stop)
    with pytest.raises(Stopped):
        run(alone / "stopped")
    monkeypatch.setattr("adp.trainers.run.train_here", train_here)
    assert (alone / "stopped" / "work" / "round-1.train" / "train" / "checkpoints").is_dir()
    assert run(alone / "stopped") == hashes
