"""Distillation on TRL's own trainer: the loss is that of the paper, over exactly the masked tokens.

The reference is the generalised Jensen-Shannon divergence of section 3 of Agarwal et al. 2024
(arXiv 2306.13649), written out here token by token, of the logits that the models give row by row.
"""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from adp.cli.main import main
from adp.rendering.tiny import tiny_tokenizer
from adp.trainers.config import TrainConfig
from adp.trainers.incompatible import refuse
from adp.trainers.rows import EVAL, TRAIN, read_arrow
from adp.trainers.run import TrainOptions, plan_run, train
from adp_schema.errors import UsageError
from tests.trainers.pair_stores import call, run, say, write_pairs
from tests.trainers.preference_runs import (
    RESULT,
    configure,
    logged,
    prepare,
    trainer,
    write_agents,
)
from tests.trainers.rollouts.test_acting_resume import wait_for_step
from tests.trainers.small_runs import TRAINING, log_of, rows_of
from tests.waiting import PATIENCE

pytestmark = [*TRAINING, pytest.mark.filterwarnings("ignore::UserWarning")]

Row = tuple[list[int], list[bool]]
"""Token ids, and which of them are in the loss."""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("agents") / "store"
    write_agents(folder)
    return folder


@pytest.fixture(scope="module")
def teacher(store: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that learnt the store; its model is wider than the one that is to learn from it."""
    out = tmp_path_factory.mktemp("teacher") / "teacher"
    shape = {"hidden_size": 48, "intermediate_size": 96, "num_hidden_layers": 1, "seed": 3}
    model = {"model_name_or_path": "tiny", "tiny": shape}
    train(configure(store, "sft", {"max_steps": 12}, model=model, lora=None), out)
    return out


def distill(store: Path, teacher: Path | str, training: dict[str, Any], **more: Any) -> TrainConfig:
    """A short distillation; more settings of the sections ``distill`` and others."""
    sections = {name: more.pop(name) for name in ("data", "lora", "render") if name in more}
    section = {"teacher_model_name_or_path": str(teacher), "max_completion_length": 6, **more}
    return configure(store, "distill", training, distill=section, **sections)


def made_of(config: TrainConfig, folder: Path) -> Any:
    prepare(config, folder)
    return trainer(config, folder, folder.parent / f"{folder.name}-out")


def stored_rows(config: TrainConfig) -> list[Row]:
    """What SFT would train on, rendered again."""
    rows = rows_of(config)
    return [(row["input_ids"], [label != -100 for label in row["labels"]]) for row in rows]


def divergence(teacher: Any, student: Any, beta: float) -> float:
    """Of two distributions, by the formulas of the paper; P is the teacher's."""
    total = 0.0
    for p, q in zip(teacher.tolist(), student.tolist(), strict=True):
        if beta == 0:
            total += p * math.log(p / q)
        elif beta == 1:
            total += q * math.log(q / p)
        else:
            middle = beta * p + (1 - beta) * q
            total += beta * p * math.log(p / middle) + (1 - beta) * q * math.log(q / middle)
    return total


def reference(
    student: Any, teacher: Any, rows: Sequence[Row], beta: float, temperature: float = 1.0
) -> float:
    """The mean over all masked tokens, row by row and without padding."""
    import torch

    values = []
    for ids, mask in rows:
        with torch.no_grad():
            chances = [
                torch.softmax(model(torch.tensor([ids])).logits[0].double() / temperature, -1)
                for model in (teacher.eval(), student.eval())
            ]
        values += [
            divergence(chances[0][place - 1], chances[1][place - 1], beta)
            for place in range(1, len(ids))
            if mask[place]
        ]
    return sum(values) / len(values)


@pytest.mark.parametrize(("beta", "temperature"), [(0.0, 1.0), (0.3, 1.7), (1.0, 1.0)])
def test_the_loss_is_that_of_the_paper(
    store: Path, teacher: Path, tmp_path: Path, beta: float, temperature: float
) -> None:
    """A rate of next to nothing; batches of two rows, of which four make a step."""
    training = {"max_steps": 2, "learning_rate": 1e-12, "per_device_train_batch_size": 2,
                "gradient_accumulation_steps": 8}  # fmt: skip
    config = distill(store, teacher, training, lmbda=0, beta=beta, temperature=temperature)
    made = made_of(config, tmp_path / "run")
    rows = stored_rows(config)
    assert len(rows) == 16
    wanted = reference(made.model, made.teacher_model, rows, beta, temperature)
    made.train()
    assert logged(made, "loss") == [pytest.approx(wanted, rel=1e-4)] * 2
    assert wanted > 0.05


def watch(made: Any) -> list[Row]:
    """What TRL's loss is given from now on, row by row."""
    seen: list[Row] = []
    compute = made._compute_loss

    def watched(student: Any, inputs: Any, count: Any) -> Any:
        kinds = ("prompt", "completion")
        for index in range(len(inputs["prompt_ids"])):
            ids, real = ([token for kind in kinds for token in inputs[f"{kind}_{what}"][index]]
                         for what in ("ids", "mask"))  # fmt: skip
            mask = [False, *map(bool, inputs["tool_mask"][index].tolist())]
            length = int(sum(real))
            seen.append(([int(token) for token in ids[:length]], mask[:length]))
        return compute(student, inputs, count)

    made._compute_loss = watched
    return seen


def split(row: Row) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """What stands before the first masked token, and the masked ones."""
    ids, mask = row
    first = mask.index(True)
    trained = tuple(token for token, kept in zip(ids, mask, strict=True) if kept)
    return tuple(ids[:first]), trained


def test_its_own_answers_stand_before_the_steps_of_the_store(
    store: Path, teacher: Path, tmp_path: Path
) -> None:
    """On-policy: prompts as at inference, and nothing but what the model wrote is in the loss."""
    training = {"max_steps": 3, "learning_rate": 1e-12, "per_device_train_batch_size": 8}
    config = distill(store, teacher, training, beta=0.5)
    made = made_of(config, tmp_path / "run")
    seen = watch(made)
    made.train()
    decode = made.processing_class.decode
    prompts = {split(row)[0] for row in seen}
    # 8 good runs with a masked step, 8 bad ones: two trained steps each.
    assert len(prompts) > 16
    full = [ids for ids, _ in stored_rows(config)]
    for ids, mask in seen:
        first = mask.index(True)
        assert all(mask[first:])
        assert len(ids) - first <= 6
        assert any(ids[:first] == stored[:first] for stored in full)
        assert decode(ids[:first]).endswith("<|im_start|>assistant\n")
    wanted = [
        reference(made.model, made.teacher_model, seen[step * 8 : step * 8 + 8], 0.5)
        for step in range(3)
    ]
    assert logged(made, "loss") == [pytest.approx(value, rel=1e-4) for value in wanted]
    assert logged(made, "on_policy") == [1.0] * 3


def test_a_share_of_the_steps_takes_the_tokens_of_the_store(
    store: Path, teacher: Path, tmp_path: Path
) -> None:
    training = {"max_steps": 10, "learning_rate": 1e-12, "per_device_train_batch_size": 4}
    made = made_of(distill(store, teacher, training, lmbda=0.5), tmp_path / "run")
    seen = watch(made)
    made.train()
    drawn = logged(made, "on_policy")
    assert set(drawn) == {0.0, 1.0}
    decode = made.processing_class.decode
    stored = [
        row for step, written in enumerate(drawn) if not written for row in seen[step * 4 :][:4]
    ]
    texts = {decode(split(row)[1]) for row in stored}
    assert any("<tool_call>" in text for text in texts)
    assert not any(RESULT in text or "masked words" in text for text in texts)
    assert all(text.endswith("<|im_end|>") for text in texts)
    # Each is the end of what is left of its row: one step, whose results come later.
    assert all(text.count("<|im_end|>") == 1 for text in texts)


@pytest.mark.slow
def test_a_student_comes_closer_to_its_teacher(store: Path, teacher: Path, tmp_path: Path) -> None:
    """Measured by the reference on held-out rows, before and after; on either kind of data."""
    from adp.rollouts.policies.loading import load_for_generation
    from adp.rollouts.policies.settings import ModelSettings

    def load(place: Path) -> Any:
        return load_for_generation(ModelSettings(model=str(place), device="cpu"))[0].float()

    held = tmp_path / "held"
    write_pairs(held, [run("x", "weather in city 11?", [call("weather 11", f"{RESULT} rain"),
                                                        say("the answer is yes")])])  # fmt: skip
    taught = load(teacher)
    rows = stored_rows(distill(held, teacher, {}))
    before = after = 0.0
    for name, more in (("off", {"lmbda": 0, "beta": 0.5}), ("mixed", {"lmbda": 0.5, "beta": 0.5})):
        training = {"max_steps": 40, "per_device_train_batch_size": 8}
        config = distill(store, teacher, training, lora=None, **more)
        train(config, tmp_path / name)
        before = reference(load(tmp_path / name / "base"), taught, rows, 0.5)
        after = reference(load(tmp_path / name), taught, rows, 0.5)
        assert after < 0.6 * before, name
    assert (
        "Teacher: teacher. License of the teacher: not known"
        in (tmp_path / "mixed" / "model" / "README.md").read_text()
    )
    record = json.loads((tmp_path / "mixed" / "run.json").read_text())
    assert "in a share 0.5 of the steps" in record["mask"]["policy"]
    # The teacher is named, and not by a path of the machine.
    assert record["config"]["distill"]["teacher_model_name_or_path"] == "teacher"


def test_the_rows_that_are_measured_are_those_of_the_store(
    store: Path, teacher: Path, tmp_path: Path
) -> None:
    """Whatever the model writes itself, so measurements compare."""
    training = {"max_steps": 1, "learning_rate": 1e-12, "per_device_eval_batch_size": 64}
    data = {"store": str(store), "eval_share": 0.4}
    made = made_of(distill(store, teacher, training, data=data, beta=0), tmp_path / "run")
    held = read_arrow(tmp_path / "run" / EVAL)
    trained = read_arrow(tmp_path / "run" / TRAIN)
    assert held is not None
    assert trained is not None
    assert len(held) + len(trained) == 32
    rows: list[Row] = [
        ([*row["ids"], *row["answer"]], [*[False] * len(row["ids"]), *map(bool, row["mask"])])
        for row in held["prompt"]
    ]
    made.train()
    measured = logged(made, "eval_loss")
    assert measured == [pytest.approx(reference(made.model, made.teacher_model, rows, 0), rel=1e-4)]
    assert logged(made, "eval_on_policy") == [0.0]


def test_a_run_that_stopped_goes_on_as_if_it_had_not(
    store: Path, teacher: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from adp.trainers.trl_distill import ExactDistillationTrainer

    # Rows do not fill the last step of an epoch, and the fourth one begins a new epoch.
    training = {"max_steps": 6, "save_strategy": "steps", "save_steps": 2,
                "per_device_train_batch_size": 12}  # fmt: skip
    config = distill(store, teacher, training, lmbda=0.5)
    plan = train(config, tmp_path / "unbroken").plan
    assert plan.notes["rows taken once more to fill the last step of an epoch"] == 4
    compute = ExactDistillationTrainer.training_step

    def stops(self: Any, *given: Any, **more: Any) -> Any:
        if self.state.global_step == 5:
            raise KeyboardInterrupt
        return compute(self, *given, **more)

    with monkeypatch.context() as patched:
        patched.setattr(ExactDistillationTrainer, "training_step", stops)
        with pytest.raises(KeyboardInterrupt):
            train(config, tmp_path / "cut")
    train(config, tmp_path / "cut", TrainOptions(resume=True))
    same(tmp_path / "unbroken", tmp_path / "cut")


def same(first: Path, second: Path) -> None:
    assert log_of(first) == log_of(second)
    weights = [
        (place / "adapter" / "adapter_model.safetensors").read_bytes() for place in (first, second)
    ]
    assert weights[0] == weights[1]


@pytest.mark.slow
def test_a_run_that_was_killed_goes_on_as_if_it_had_not(
    store: Path, teacher: Path, tmp_path: Path
) -> None:
    training = {"max_steps": 6, "save_strategy": "steps", "save_steps": 2}
    config = tmp_path / "train.yaml"
    made = distill(store, teacher, training, lmbda=0.5)
    config.write_text(json.dumps(made.model_dump(mode="json")))

    def start(out: str, *more: str) -> subprocess.Popen[bytes]:
        code = "import sys; from adp.cli.entry import run; sys.exit(run())"
        words = ["train", "distill", "-c", str(config), "-o", out, *more]
        return subprocess.Popen(
            [sys.executable, "-c", code, *words], cwd=tmp_path, stderr=subprocess.DEVNULL
        )

    assert start("unbroken").wait(PATIENCE) == 0
    process = start("cut")
    wait_for_step(tmp_path / "cut" / "metrics.jsonl", 3)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert start("cut", "--resume").wait(PATIENCE) == 0
    same(tmp_path / "unbroken", tmp_path / "cut")


@pytest.mark.slow
def test_two_processes_learn_what_one_does(store: Path, teacher: Path, tmp_path: Path) -> None:
    losses = []
    for count in (1, 2):
        values = distill(
            store, teacher, {"max_steps": 3, "per_device_train_batch_size": 8 // count}, lmbda=0
        ).model_dump(mode="json")
        values["launch"]["processes"] = count
        train(TrainConfig.model_validate(values), tmp_path / f"by {count}")
        losses.append([line["loss"] for line in log_of(tmp_path / f"by {count}") if "loss" in line])
    assert len(losses[0]) == 3
    assert losses[1] == pytest.approx(losses[0], rel=1e-4)


def test_a_head_that_is_saved_with_the_adapter_learns(
    store: Path, teacher: Path, tmp_path: Path
) -> None:
    """TRL reads the weights of the head by itself: those that are trained, and not the frozen."""
    lora = {"r": 4, "modules_to_save": ["lm_head"]}
    made = made_of(distill(store, teacher, {"max_steps": 2}, lora=lora, lmbda=0), tmp_path / "run")
    heads = {name: value for name, value in made.model.named_parameters() if "lm_head" in name}
    before = {name: value.detach().clone() for name, value in heads.items()}
    made.train()
    moved = {name for name, value in heads.items() if not value.equal(before[name])}
    assert moved == {name for name in heads if "modules_to_save" in name}
    assert moved


# ---- refusals ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("changes", "words"), [
    ({"distill": {}}, "--teacher MODEL"),
    ({"distill": {"teacher_model_name_or_path": "tiny"}}, "random weights"),
    ({"training": {"train_sampling_strategy": "group_by_length"}}, "takes no notice"),
    ({"training": {"packing": True}}, "only SFT packs rows"),
    ({"training": {"other": {"beta": 0.5}}}, r"its own place, distill\.beta"),
    ({"training": {"other": {"chat_template_kwargs": {}}}}, "no effect"),
    ({"training": {"other": {"label_smoothing_factor": 0.1}}}, "no effect"),
    ({"training": {"other": {"use_vllm": True}}}, "end tokens"),
    ({"training": {"other": {"use_liger_kernel": True}}}, "Liger"),
    ({"launch": {"zero": 2}}, "was not tried with ZeRO"),
    ({"launch": {"fsdp": True}}, "was not tried with FSDP"),
])  # fmt: skip
def test_what_does_not_go_with_it_is_refused(changes: dict[str, Any], words: str) -> None:
    values: dict[str, Any] = {"distill": {"teacher_model_name_or_path": "out"}, **changes}
    config = TrainConfig.model_validate({"method": "distill", "data": "store", **values})
    with pytest.raises(UsageError, match=words):
        refuse(config)


def test_another_vocabulary_is_refused_before_anything_is_loaded(
    store: Path, teacher: Path, tmp_path: Path
) -> None:
    from transformers import AutoModelForCausalLM

    other = tiny_tokenizer()
    other.add_tokens(["<another>"])
    other.save_pretrained(tmp_path / "tokens")
    with pytest.raises(
        UsageError, match=r"another vocabulary \(612 tokens\) than the model \(611\)"
    ):
        plan_run(distill(store, tmp_path / "tokens", {}))
    # The same tokens, and more rows in the head: known from the configuration of both.
    model = AutoModelForCausalLM.from_pretrained(teacher / "model")
    model.resize_token_embeddings(704)
    model.save_pretrained(tmp_path / "wide")
    tiny_tokenizer().save_pretrained(tmp_path / "wide")
    values = distill(store, tmp_path / "wide", {}).model_dump(mode="json")
    values["model"]["model_name_or_path"] = str(teacher / "model")
    values["render"]["max_length"] = 512
    with pytest.raises(UsageError, match="704 rows and that of the model 611"):
        plan_run(TrainConfig.model_validate(values))


def test_a_teacher_with_another_template_is_warned_of(
    store: Path, teacher: Path, tmp_path: Path
) -> None:
    tokens = tiny_tokenizer()
    assert plan_run(distill(store, teacher, {})).warnings == []
    tokens.chat_template = "{{ messages[0].content }}"
    tokens.save_pretrained(tmp_path / "tokens")
    (warning,) = plan_run(distill(store, tmp_path / "tokens", {})).warnings
    assert "another chat template" in warning


def test_weights_between_0_and_1_are_refused(teacher: Path, tmp_path: Path) -> None:
    steps = [call("a", "b"), say("yes", loss_weight=0.5)]
    write_pairs(tmp_path / "store", [run("x", "what?", steps)])
    with pytest.raises(UsageError, match="weights between 0 and 1"):
        plan_run(distill(tmp_path / "store", teacher, {}))


def test_logits_that_trl_does_not_know_are_refused(
    store: Path, teacher: Path, tmp_path: Path
) -> None:
    """The configuration names a scale of logits that the model itself does not apply."""
    config = distill(store, teacher, {"max_steps": 1}, lmbda=0)
    made = made_of(config, tmp_path / "run")
    made.teacher_model.config.logit_scale = 9.0
    with pytest.raises(UsageError, match="take other models for distill"):
        made.check_heads()


def test_the_command(
    store: Path, teacher: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["train", "distill", str(store), "--model", "tiny", "--teacher", str(teacher)]
    short = ["--set=training.use_cpu=true", "--set=data.workers=1", "--set=data.max_rows=9"]
    assert main([*words, "--dry-run", *short]) == 0
    text = capsys.readouterr().out
    assert "9 prompts, each before a step of the store" in text
    assert "beta 1, 100 % of the steps on what the model writes itself" in text
    assert main([*words, "--dry-run", "--set=distill.lmbda=0", *short]) == 0
    assert "\n9 rows: " in capsys.readouterr().out
    assert main([*words, "--dry-run", "--json", "--set=distill.lmbda=0", *short]) == 0
    plan = json.loads(capsys.readouterr().out)["plan"]
    assert (plan["rows"], plan["steps"]) == (9, 2)
    assert plan["notes"]["rows that were rendered and are not trained on"] == 7
    assert main([*words[:5], "--dry-run", *short]) == 2
    assert "--teacher MODEL" in " ".join(capsys.readouterr().err.split())
    # The teacher beside a configuration is found from anywhere.
    (tmp_path / "train.yaml").write_text(
        f"method: distill\ndata: {store}\nmodel: tiny\n"
        "distill: {teacher_model_name_or_path: taught, lmbda: 0}\n"
    )
    (tmp_path / "taught").symlink_to(teacher)
    assert main(["train", "distill", "-c", str(tmp_path / "train.yaml"), "--dry-run", *short]) == 0
