"""Code in the manner of each example of SAGE's page about its agent module, with adp's import.

Source: "Agent Fine-tuning API Reference" of SAGE, the signatures and calls that its examples show;
only names of models, sizes and places are others, so that a CPU does it in seconds.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from adp.workflows.sage import (
    AgentCapabilityEvaluator,
    AgentSFTConfig,
    AgentSFTTrainer,
    CollectorConfig,
    CoresetSelector,
    MethodConfig,
    MethodRegistry,
    MixerConfig,
    MultiTaskMixer,
    OnlineContinualLearner,
    RLTrainingConfig,
    SFTConversionConfig,
    TaskSample,
    TrajectoryCollector,
    TrajectoryFilter,
    TrajectoryToSFTConverter,
    collect_and_convert,
    load_trajectories,
)
from adp_schema.errors import InputError, OutputExistsError, UsageError

WARNINGS = pytest.mark.filterwarnings("ignore::FutureWarning")
TORCH_WARNINGS = pytest.mark.filterwarnings(
    "ignore::DeprecationWarning:(torch|transformers|peft|trl|accelerate)"
)

TASKS: list[dict[str, Any]] = [
    {
        "task_id": f"t{number}",
        "instruction": f"How warm is town {number}?",
        "available_tools": ["weather"],
        "ground_truth": {"expected_tools": ["weather"]},
    }
    for number in range(4)
]


def my_agent(context: dict[str, Any]) -> dict[str, Any]:
    if context["history"] or context["instruction"].endswith("3?"):
        return {"thought": "I know.", "action": "finish", "action_input": {"answer": "7"}}
    return {"thought": "I ask.", "action": "weather", "action_input": {"town": "0"}}


def dialogs(path: Path) -> str:
    """Dialogs as ``agent_sft`` has them, of two splits."""
    lines = []
    for number in range(12):
        lines.append(
            {
                "dialog_id": f"sft_{number:06}", "goal": f"Tell the weather of town {number}.",
                "turns": [
                    {"role": "user", "content": f"How warm is town {number}?"},
                    {"role": "assistant", "content": f"I look at town {number} now."},
                    {"role": "tool", "tool_id": "weather_query_001", "content": f"{number} C"},
                    {"role": "assistant", "content": f"It has {number} degrees in town {number}."},
                ],
                "target_tools": ["weather_query_001"],
                "metadata": {"difficulty": "easy", "source": "made", "num_turns": 4},
                "split": "train" if number < 9 else "test",
            }
        )  # fmt: skip
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return str(path.with_suffix(""))


def test_configurations() -> None:
    config = AgentSFTConfig(
        base_model="Qwen/Qwen2.5-1.5B-Instruct",
        train_data="agent_sft:train",
        num_epochs=2,
        use_coreset_selection=True,
        coreset_strategy="hybrid",
        use_dora=True,
    )
    assert (config.lora_r, config.batch_size, config.max_seq_length) == (16, 8, 2048)
    assert config.settings()["use_dora"] is True
    rl = RLTrainingConfig()
    assert (rl.algorithm, rl.kl_coef, rl.gamma) == ("ppo", 0.1, 0.99)


@pytest.mark.train
@WARNINGS
@TORCH_WARNINGS
def test_training(tmp_path: Path) -> None:
    pytest.importorskip("trl")
    data = dialogs(tmp_path / "agent_sft.jsonl")
    config = AgentSFTConfig(
        base_model="tiny",
        train_data=f"{data}:train",
        output_dir=tmp_path / "out",
        num_epochs=1,
        use_coreset_selection=True,
        coreset_target_size=4,
        use_dora=True,
    )
    trainer = AgentSFTTrainer(config)
    result = trainer.train()
    assert math.isfinite(result.final_loss)
    assert (
        result.record["rows"]["trained"] == 4
        if "trained" in result.record.get("rows", {})
        else True
    )
    eval_result = trainer.evaluate(f"{data}:test")
    assert 0 <= eval_result.accuracy <= 1
    assert eval_result.num_tokens > 0
    trainer.save_model(tmp_path / "my_agent_model")
    again = AgentSFTTrainer(config)
    again.load_model(tmp_path / "my_agent_model")
    assert again.evaluate(f"{data}:test") == eval_result
    with pytest.raises(OutputExistsError):
        trainer.save_model(tmp_path / "my_agent_model")
    with pytest.raises(InputError, match="has no split 'dev', only test, train"):
        trainer.evaluate(f"{data}:dev")


def test_data_that_is_not_there(tmp_path: Path) -> None:
    trainer = AgentSFTTrainer(AgentSFTConfig("tiny", "nothing:train", output_dir=tmp_path / "out"))
    with pytest.raises(InputError, match="no store and no file of that name"):
        trainer.train()
    with pytest.raises(UsageError, match="nothing to save"):
        trainer.save_model(tmp_path / "m")
    with pytest.raises(UsageError, match="is no folder of a model"):
        trainer.load_model(tmp_path / "m")


@pytest.mark.train
@WARNINGS
@TORCH_WARNINGS
def test_coresets(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    dialogs(tmp_path / "agent_sft.jsonl")
    lines = (tmp_path / "agent_sft.jsonl").read_text().splitlines()
    all_samples = [json.loads(line) for line in lines]
    selector = CoresetSelector(strategy="hybrid", target_size=5, loss_ratio=0.6)
    selected = selector.select(all_samples, model="tiny")
    losses = selector.compute_losses(all_samples, model="tiny")
    assert len(selected) == 5
    best = sorted(range(12), key=lambda place: -losses[place])[:3]
    assert selected[:3] == [all_samples[place] for place in best]


def test_continual_learning() -> None:
    learner = OnlineContinualLearner(buffer_size=2048, replay_ratio=0.25)
    sizes = []
    for start in range(0, 24, 8):
        batch = {"n": list(range(start, start + 8))}
        sizes.append(len(learner.mix_with_replay(batch)["n"]))
        learner.update_buffer(batch)
    assert sizes == [8, 10, 10]
    assert len(learner.get_replay_samples(5)) == 5


def test_trajectories(tmp_path: Path) -> None:
    config = CollectorConfig(max_steps=10, require_success=True)
    collector = TrajectoryCollector(agent=my_agent, config=config)
    trajectories = collector.collect(TASKS)
    assert [run.task_id for run in trajectories] == ["t0", "t1", "t2"]

    quality = TrajectoryFilter(min_reward=0.5, require_success=True)
    assert quality.filter(trajectories) == trajectories
    stats = quality.get_stats(trajectories)
    assert f"Kept {stats['kept']} / {stats['total']} trajectories" == "Kept 3 / 3 trajectories"

    converter = TrajectoryToSFTConverter(
        SFTConversionConfig(format="chatml", include_observation=True)
    )
    sft_data = converter.convert(trajectories)
    with open(tmp_path / "sft_data.jsonl", "w") as file:  # noqa: PTH123 - as the page writes it
        for sample in sft_data:
            file.write(json.dumps(sample) + "\n")
    assert len((tmp_path / "sft_data.jsonl").read_text().splitlines()) == 3

    one_step = collect_and_convert(
        agent=my_agent, tasks=TASKS, min_reward=0.5, require_success=True
    )
    assert [row["messages"] for row in one_step] == [row["messages"] for row in sft_data]

    lines = "".join(run.to_json() + "\n" for run in trajectories)
    (tmp_path / "trajectories.jsonl").write_text(lines)
    assert list(load_trajectories(tmp_path / "trajectories.jsonl")) == trajectories


def test_mixing() -> None:
    config = MixerConfig(
        task_weights={"tool_selection": 0.35, "planning": 0.30, "timing": 0.20, "general": 0.15},
        strategy="weighted",
    )
    mixer = MultiTaskMixer(config)
    sets = {
        name: [TaskSample(task_type=name, data={"n": n}, source="made") for n in range(40)]
        for name in config.task_weights
    }
    mixed_data = mixer.mix(sets)
    dist = mixer.get_task_distribution(mixed_data)
    assert dist == {"tool_selection": 40, "planning": 40, "timing": 32, "general": 24}


def test_capabilities() -> None:
    evaluator = AgentCapabilityEvaluator()
    report = evaluator.evaluate(
        lambda prompt: f"Step 1: because {prompt}",
        {
            "tool_use": [{"instruction": "weather", "expected": "weather"}],
            "planning": [{"instruction": "ask", "expected": "ask"}],
            "reasoning": [{"instruction": "cold", "expected": "cold"}],
        },
    )
    assert report.summary().startswith("Agent Capability Report\n---")
    assert report.get_score("tool_use") == 1.0


def test_methods() -> None:
    all_methods = MethodRegistry.get_all_methods()
    documented = {
        *("A_baseline", "B1_coreset_loss", "B2_coreset_diversity", "B3_coreset_hybrid"),
        *("C_continual", "D_combined", "E_fireact", "F_agenttuning", "G_dora", "H_lora_plus"),
    }
    assert documented <= set(all_methods)
    assert len(all_methods) == 16
    assert all_methods["E_fireact"].use_trajectory_collection
    assert all_methods["E_fireact"].description
    assert all_methods["B3_coreset_hybrid"].coreset_target_size == 1000
    assert all_methods["H_lora_plus"].use_lora_plus
    assert list(MethodRegistry.get_quick_methods()) == [
        "A_baseline", "B_coreset", "C_continual", "E_fireact",
    ]  # fmt: skip
    custom = MethodConfig(
        name="My Method",
        description="Custom combination",
        use_dora=True,
        use_continual=True,
        continual_buffer_size=4096,
    )
    file = custom.method_file()
    assert file.replays
    assert file.training["lora"]["use_dora"] is True
    for config in all_methods.values():
        assert config.method_file().name
