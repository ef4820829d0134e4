"""TRL's own trainers on each of its formats: they train, and on the very tokens of the renderer."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from adp.rendering.options import RenderOptions
from adp.rendering.render import IGNORED, Renderer
from adp.rendering.tiny import TEMPLATE, tiny_tokenizer
from adp.trainers.export.run import export_rows
from tests.trainers.export.agent_runs import Run, Turn, word, write_runs

pytestmark = [
    pytest.mark.train,
    # How TRL 1.16 asks transformers 5.23 about gradient checkpointing.
    pytest.mark.filterwarnings("ignore:.is_gradient_checkpointing. is deprecated:FutureWarning"),
]

MARKED = TEMPLATE.replace(
    "{{- '<|im_start|>assistant\\n' }}\n", "{{- '<|im_start|>assistant\\n' }}{% generation %}\n", 1
).replace(
    "{{- '<|im_end|>\\n' }}\n    {%- elif message.role == 'tool'",
    "{{- '<|im_end|>' }}{% endgeneration %}{{- '\\n' }}\n    {%- elif message.role == 'tool'",
    1,
)
"""The tiny template with marks around what the model generates."""

LOOP = (Turn("system"), Turn("user"), Turn(calls=1), Turn(calls=2, reasoning=True), Turn())
TALK = (Turn("user"), Turn(), Turn("user"), Turn(calls=1), Turn())


@pytest.fixture(scope="module")
def tokenizer():
    return tiny_tokenizer()


@pytest.fixture
def model(tokenizer):
    import torch
    from transformers import Qwen2Config, Qwen2ForCausalLM

    torch.manual_seed(0)
    return Qwen2ForCausalLM(
        Qwen2Config(
            vocab_size=len(tokenizer),
            hidden_size=16,
            intermediate_size=32,
            num_hidden_layers=1,
            num_attention_heads=2,
            num_key_value_heads=1,
            max_position_embeddings=4096,
            pad_token_id=tokenizer.pad_token_id,
            eos_token_id=tokenizer.eos_token_id,
            bos_token_id=None,
        )
    )


@pytest.fixture(autouse=True)
def offline(monkeypatch, tmp_path):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")


@pytest.fixture
def store(tmp_path):
    chosen = {"chosen_id": "d/r2", "chosen_from": 1, "chosen_to": 2}
    rejected = {"rejected_id": "d/r3", "rejected_from": 1, "rejected_to": 2}
    pair = {"pair_id": "p", "level": "step", **chosen, **rejected}
    described = [
        Run(LOOP, success=True),
        Run(TALK, success=False),
        Run((Turn("user"), Turn(calls=1), Turn()), success=True),
        Run((Turn(calls=1),), branch=1, success=False),
        Run(TALK, success=True),
    ]
    return write_runs(tmp_path / "store", described, [pair])


def settings_of(kind, tmp_path, **more):
    return kind(
        output_dir=str(tmp_path / "run"),
        use_cpu=True,
        bf16=False,
        report_to="none",
        max_steps=1,
        per_device_train_batch_size=2,
        save_strategy="no",
        activation_checkpointing=False,
        disable_tqdm=True,
        **more,
    )


def lora():
    from peft import LoraConfig

    return LoraConfig(r=2, target_modules=["q_proj"], task_type="CAUSAL_LM")


def by_readme(folder: Path, which: int):
    """The data set as the code in README.md loads it."""
    import os

    text = (folder / "README.md").read_text()
    blocks = [
        code for code in re.findall(r"```python\n(.*?)```", text, re.S) if "dataset = " in code
    ]
    before = Path.cwd()
    os.chdir(folder)
    try:
        names: dict[str, object] = {}
        exec(blocks[which], names)
    finally:
        os.chdir(before)
    return names["dataset"]


def rendered(store, template=None, **options):
    """The rows of the renderer: ids, and labels."""
    renderer = Renderer.load("tiny", RenderOptions(chat_template=template, **options))
    return [
        (row.input_ids.tolist(), row.labels.tolist())
        for trajectory in store.trajectories()
        if trajectory.parent_id is None
        for row in renderer.trajectory(trajectory).rows
    ]


def test_messages_train_what_the_renderer_trains(tmp_path, store, tokenizer, model):
    from datasets import load_dataset
    from trl import SFTConfig, SFTTrainer

    export_rows(store, "trl-sft", str(tmp_path / "out"))
    tokenizer.chat_template = MARKED
    datasets = [by_readme(tmp_path / "out", 0), by_readme(tmp_path / "out", 1)]
    datasets.append(load_dataset(str(tmp_path / "out"), split="train"))
    arguments = datasets[1][0]["messages"][2]["tool_calls"][0]["function"]["arguments"]
    assert arguments == {"query": "x", "share": 3.141592653589793}
    assert datasets[0][0]["messages"][2] == datasets[2][0]["messages"][2]
    args = settings_of(SFTConfig, tmp_path, assistant_only_loss=True, max_length=None)
    trainer = SFTTrainer(model, args=args, train_dataset=datasets[1], processing_class=tokenizer)
    results = [(row["input_ids"], row["labels"]) for row in trainer.train_dataset]
    assert results == rendered(store, MARKED)
    assert trainer.train().training_loss > 0


def test_tokens_train_what_the_renderer_trains(tmp_path, store, tokenizer, model):
    from trl import SFTConfig, SFTTrainer

    export_rows(store, "trl-sft", str(tmp_path / "out"), {"form": "tokens"}, model="tiny")
    dataset = by_readme(tmp_path / "out", 0)
    args = settings_of(SFTConfig, tmp_path, max_length=None)
    trainer = SFTTrainer(model, args=args, train_dataset=dataset, processing_class=tokenizer)
    results = [(row["input_ids"], row["labels"]) for row in trainer.train_dataset]
    assert results == rendered(store)
    assert trainer.train().training_loss > 0


def test_prompts_and_completions_train_each_step(tmp_path, store, tokenizer, model):
    from trl import SFTConfig, SFTTrainer

    export_rows(store, "trl-prompt-completion", str(tmp_path / "out"), {"expand": True})
    args = settings_of(SFTConfig, tmp_path, max_length=None)
    trainer = SFTTrainer(
        model,
        args=args,
        train_dataset=by_readme(tmp_path / "out", 1),
        processing_class=tokenizer,
    )
    # TRL trains the line end after the end of the turn too, which only the template writes.
    end = tokenizer.encode("\n")
    results = []
    for row in trainer.train_dataset:
        ours = [label for label in row["labels"] if label != IGNORED]
        assert ours[-1:] == row["input_ids"][-1:] == end
        results.append((row["input_ids"][:-1], ours[:-1]))
    wanted = []
    for ids, labels in rendered(store):
        steps = "".join("x" if label != IGNORED else " " for label in labels)
        for part in re.finditer("x+", steps):
            wanted.append((ids[: part.end()], ids[part.start() : part.end()]))
    assert results == wanted
    assert trainer.train().training_loss > 0


def test_pairs_train_one_step_a_side(tmp_path, store, tokenizer, model):
    from trl import DPOConfig, DPOTrainer

    export_rows(store, "trl-dpo", str(tmp_path / "out"))
    args = settings_of(DPOConfig, tmp_path, max_length=None)
    trainer = DPOTrainer(
        model,
        args=args,
        train_dataset=by_readme(tmp_path / "out", 1),
        processing_class=tokenizer,
        peft_config=lora(),
    )
    (row,) = trainer.train_dataset
    assert tokenizer.decode(row["chosen_ids"]).startswith(f"did {word(2, 1)}")
    assert tokenizer.decode(row["rejected_ids"]).startswith(f"did {word(3, 0)}")
    assert trainer.train().training_loss > 0


def test_labelled_answers_train(tmp_path, store, tokenizer, model):
    from trl import KTOConfig, KTOTrainer

    report = export_rows(store, "trl-kto", str(tmp_path / "out"), {"expand": True})
    args = settings_of(KTOConfig, tmp_path, max_length=None)
    trainer = KTOTrainer(
        model,
        args=args,
        train_dataset=by_readme(tmp_path / "out", 1),
        processing_class=tokenizer,
        peft_config=lora(),
    )
    assert len(trainer.train_dataset) == report.in_rows
    rows = list(trainer.train_dataset)
    assert {row["label"] for row in rows[:2]} == {True, False}
    for row in rows[: len(rows) // 2 * 2]:  # the last batch may be a single row
        assert row["KL_completion_ids"] != row["completion_ids"]
    assert trainer.train().training_loss > 0


def test_prompts_train_with_the_reward_of_the_readme(tmp_path, tokenizer, model):
    from trl import GRPOConfig, GRPOTrainer

    store = write_runs(tmp_path / "store", [Run(LOOP), Run(TALK), Run(LOOP)])
    report = export_rows(store, "trl-grpo", str(tmp_path / "out"), {"tools": "text"})
    assert (report.rows, report.in_store) == (3, 3)
    text = (tmp_path / "out" / "README.md").read_text()
    code = next(
        code for code in re.findall(r"```python\n(.*?)```", text, re.S) if "def has" in code
    )
    names: dict[str, object] = {}
    exec(code.partition("args = ")[0], names)

    def shorter(completions, answers, **columns):
        assert answers == [None] * len(completions)
        assert "expected_calls" in columns
        assert names["has_answer"](completions=completions, answers=answers) == answers
        return [-float(len(completion[0]["content"])) for completion in completions]

    args = settings_of(GRPOConfig, tmp_path, max_completion_length=8, num_generations=2)
    trainer = GRPOTrainer(
        model,
        reward_funcs=shorter,
        args=args,
        train_dataset=by_readme(tmp_path / "out", 1),
        processing_class=tokenizer,
    )
    trainer.train()
    assert trainer.state.log_history
    assert json.loads((tmp_path / "out" / "export.json").read_text())["unit"] == "trajectories"
