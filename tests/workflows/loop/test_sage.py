"""SAGE's configurations as loops: each setting is mapped or named, and every stage runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from adp.cli.main import main
from adp.trainers.readers.sage import SELECTION
from adp.workflows.loop import make_plan, read_loop
from adp.workflows.loop.sage import read_foreign_loop
from adp.workflows.loop.shipped import loop_path
from adp_schema.errors import UsageError

SFT = {
    "base_model": "tiny",
    "max_length": 4096,
    "task_weights": {"tool_selection": 0.35, "multi_step_planning": 0.65},
    "max_train_samples": 40,
    "use_coreset_selection": True,
    "coreset_strategy": "hybrid",
    "coreset_target_size": 4,
    "coreset_metric_key": "loss",
    "use_online_continual": True,
    "continual_buffer_size": 8,
    "continual_replay_ratio": 0.5,
    "lora_r": 4,
    "eval_strategy": "steps",
    "load_best_model": True,
    "output_dir": "x",
}


def written(folder: Path, given: object, name: str = "given.yaml") -> Path:
    path = folder / name
    path.write_text(yaml.safe_dump(given))
    return path


def ops(folder: Path, **changes: object) -> list[str]:
    """The ops that a configuration comes to."""
    loop = read_foreign_loop(written(folder, {**SFT, **changes}), ["data=x"])
    assert loop is not None
    first = loop.plain["rounds"]["stages"][0]
    return [next(iter(op)) for op in first["curate"]["recipe"]["ops"]] if "curate" in first else []


def test_one_configuration_selects_mixes_replays_and_trains(tmp_path: Path):
    loop = read_foreign_loop(written(tmp_path, SFT), ["data=x", "seed=3"])
    assert loop is not None
    curate, train = loop.plain["rounds"]["stages"]
    mix, coreset, replay = curate["curate"]["recipe"]["ops"]
    assert (mix["mix"]["total"], mix["mix"]["weights"]) == (40, SFT["task_weights"])
    assert (coreset["coreset"]["method"], coreset["coreset"]["size"]) == ("hybrid", 4)
    assert (replay["replay"]["size"], replay["replay"]["ratio"]) == (8, 0.5)
    assert train["train"]["config"]["lora"] == {"r": 4}
    assert "model" not in train["train"]["config"]
    assert loop.settings == ["seed=3"]
    for name in SFT:  # none is dropped without a word
        assert any(name in line for line in loop.lines), name
    make_plan(read_loop(loop.plain, loop.settings), tmp_path)


def test_what_is_off_is_left_out_and_named(tmp_path: Path):
    assert ops(tmp_path) == ["mix", "coreset", "replay"]
    assert ops(tmp_path, max_train_samples=None) == ["coreset", "replay"]
    assert ops(tmp_path, task_weights=None) == ["coreset", "coreset", "replay"]
    assert ops(tmp_path, use_online_continual=False) == ["mix", "coreset"]
    off = {"max_train_samples": None, "use_coreset_selection": False, "use_online_continual": False}
    assert ops(tmp_path, **off) == []
    loop = read_foreign_loop(written(tmp_path, {**SFT, **off}), ["data=x"])
    assert loop is not None
    text = "\n".join(loop.lines)
    assert all(name in text for name in SELECTION)


def test_the_data_have_to_be_named(tmp_path: Path):
    with pytest.raises(UsageError, match="--set data=STORE"):
        read_foreign_loop(written(tmp_path, SFT))
    assert read_foreign_loop(loop_path("toolworld")) is None
    assert main(["loop", str(written(tmp_path, SFT)), "--dry-run"]) == 2


def stages(folder: Path, **given: object) -> list[str]:
    loop = read_foreign_loop(written(folder, given), ["scale=smoke"])
    assert loop is not None
    plan = make_plan(read_loop(loop.plain, loop.settings), folder)
    return [stage.context.name for stage in plan.stages]


def test_a_pipeline_runs_what_it_switches_on(tmp_path: Path):
    after = ["runs", "sft_data", "sft"]
    assert stages(tmp_path, run_rl=False, run_eval=False) == after
    rl = ["attempts", "pairs", "dpo"]
    assert stages(tmp_path, run_eval=False) == [*after, *rl]
    grpo = {"algorithm": "grpo", "grpo": {"group_size": 2}}
    assert stages(tmp_path, run_eval=False, rl_config=grpo) == [*after, "grpo"]
    whole = stages(tmp_path, run_warmup=True)
    every = [
        stage["as"]
        for stage in yaml.safe_load(loop_path("sage").read_text())["rounds"][0]["stages"]
    ]
    assert whole == [name for name in every if name != "grpo"]
    with pytest.raises(UsageError, match="all off"):
        stages(tmp_path, run_sft=False, run_rl=False)


def test_the_settings_of_a_pipeline_come_into_its_stages(tmp_path: Path):
    given = {
        "run_rl": True,
        "experiment_name": "mine",
        "sft_config": {"base_model": "m", "use_coreset_selection": True, "coreset_target_size": 2},
        "rl_config": {"dpo": {"beta": 0.3}, "num_samples_per_prompt": 3},
        "reward_config": {"task_completion": 0.4},
        "other": 1,
    }
    loop = read_foreign_loop(written(tmp_path, given))
    assert loop is not None
    by_name = {stage["as"]: stage for stage in loop.plain["rounds"][0]["stages"]}
    assert loop.plain["model"] == "m"
    assert loop.plain["name"] == "mine"
    assert "coreset" in by_name["sft_data"]["curate"]["recipe"]["ops"][-1]
    assert by_name["dpo"]["train"]["config"]["dpo"] == {"loss_type": ["sigmoid"], "beta": 0.3}
    assert loop.plain["variables"]["samples"] == 3
    assert any(line.startswith("other -> nothing") for line in loop.lines)


@pytest.mark.parametrize(
    ("rl", "words"),
    [
        ({"algorithm": "ppo"}, "TRL 1.16 has no PPO"),
        ({"algorithm": "other"}, "takes dpo or grpo"),
        ({"dpo": {"reference_free": True}}, "reference"),
        ([1], "by name"),
    ],
)
def test_what_there_is_not_is_refused(rl, words, tmp_path: Path):
    with pytest.raises(UsageError, match=words):
        read_foreign_loop(written(tmp_path, {"run_rl": True, "rl_config": rl}))


def test_an_rl_configuration_is_one_of_training(tmp_path: Path):
    from adp.trainers.config_file import read_config

    given = {"algorithm": "dpo", "dpo_config": {"beta": 0.2, "label_smoothing": 0.1},
             "ppo": {"clip": 0.2}, "learning_rate": 5e-6, "gradient_accumulation": 8}  # fmt: skip
    config, mapped = read_config(written(tmp_path, given))
    assert mapped is not None
    assert (config.method, config.dpo.beta, config.dpo.label_smoothing) == ("dpo", 0.2, 0.1)
    assert config.training.learning_rate == 5e-6
    assert [entry.name for entry in mapped.left] == ["ppo"]
    with pytest.raises(UsageError, match="no PPO"):
        read_config(written(tmp_path, {"algorithm": "ppo"}))


@pytest.mark.train
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_the_loop_runs_at_tiny_size(tmp_path: Path, monkeypatch):
    pytest.importorskip("trl", reason="needs the train extra")
    monkeypatch.setenv("ADP_CACHE", str(tmp_path / "cache"))
    out = tmp_path / "out"
    assert main(["loop", "sage", "--set", "scale=smoke", "-o", str(out)]) == 0
    kinds = [json.loads(line)["kind"] for line in (out / "ledger.jsonl").read_text().splitlines()]
    assert kinds.count("train") == 4
    assert kinds.count("eval") == 3
