"""Trainings that try their model on tasks: what is measured is what the saved model does."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from adp.rollouts.collecting.collect import alone, collect_now
from adp.rollouts.collecting.limits import Limits
from adp.rollouts.collecting.settings import CollectSettings
from adp.rollouts.collecting.tasks import read_tasks
from adp.rollouts.policies.transformers import TransformersPolicy, TransformersSettings
from adp.rollouts.spec import load_environment
from adp.trainers.curve import figure_curve
from adp.trainers.incompatible import faults
from adp.trainers.machine import Machine
from adp.trainers.run import TrainOptions, train
from adp.workflows.training_suite import SCORING, with_suite
from adp_schema.errors import UsageError
from adp_schema.store import Store
from tests.trainers.pair_stores import run, say, write_pairs
from tests.trainers.small_runs import TRAINING, config_of, log_of, write_runs
from tests.waiting import PATIENCE

pytestmark = TRAINING


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Runs in which the agent answers 7 to whatever is asked."""
    runs = [run(f"r{n}", f"what is {n} + {7 - n}?", [say("7")]) for n in range(8)]
    return write_pairs(tmp_path_factory.mktemp("runs") / "store", runs)


@pytest.fixture(scope="module")
def tasks(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Tasks of which half are answered by 7."""
    path = tmp_path_factory.mktemp("tasks") / "tasks.jsonl"
    lines = [
        {"task_id": f"t{n}", "instruction": f"what is {n} + 1?", "answers": [str(n + 1)]}
        for n in (6, 2, 6, 3)
    ]
    for place, line in enumerate(lines):
        line["task_id"] = f"t{place}"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return str(path)


def _section(tasks: str, **more: Any) -> dict[str, Any]:
    return {
        "env": "calculator",
        "tasks": tasks,
        "every_steps": 10,
        "policy": {"max_tokens": 12},
        "limits": {"max_turns": 2},
        **more,
    }


def _config(store: Store, tasks: str, **more: Any) -> Any:
    values = {"training__max_steps": 20, "training__lr_scheduler_type": "constant", **more}
    return config_of(store, evaluate=_section(tasks), **values)


def _tried(place: Path, tasks: str, out: Path) -> list[dict[str, Any]]:
    """What a saved model does in the tasks, by the policy that loads it from disk."""
    kind, settings = load_environment("calculator")
    given = {"model": str(place), "max_tokens": 12}
    actor = TransformersPolicy(TransformersSettings.model_validate(given))
    collecting = CollectSettings(limits=Limits(max_turns=2), timed=False)
    collect_now(
        out,
        lambda: kind.make(settings),
        alone(actor),
        read_tasks(tasks, kind, settings).tasks,
        collecting,
        policies=[actor],
    )
    return _episodes(out)


def _episodes(place: Path) -> list[dict[str, Any]]:
    store = Store.open(str(place))
    steps = store.scan("steps").collect().to_arrow().to_pylist()
    texts: dict[str, list[Any]] = {}
    for step in steps:
        texts.setdefault(step["trajectory_id"], []).append((step["source"], step["text"]))
    rows = store.scan("trajectories").collect().to_arrow().to_pylist()
    return sorted(
        ({"task": row["task_id"], "success": row["success"], "said": texts[row["trajectory_id"]]}
         for row in rows),
        key=lambda row: row["task"],
    )  # fmt: skip


def test_what_is_measured_is_what_the_saved_model_does(
    store: Store, tasks: str, tmp_path: Path
) -> None:
    done = train(_config(store, tasks), tmp_path / "out")
    assert done.record is not None
    result = done.record["result"]
    evaluations = {item["step"]: item for item in result["evaluations"]}
    assert list(evaluations) == [0, 10, 20]
    assert evaluations[0]["success"] == 0.0
    # It has learnt to say 7, which answers half of the tasks.
    assert evaluations[20]["success"] == 0.5
    tried = _tried(tmp_path / "out", tasks, tmp_path / "tried")
    assert tried == _episodes(tmp_path / "out" / "evaluations" / "step-20")
    best = result["best"]
    assert best["value"] == 0.5
    assert best["step"] == min(step for step, item in evaluations.items() if item["success"] == 0.5)
    tried = _tried(tmp_path / "out" / "best", tasks, tmp_path / "tried-best")
    assert tried == _episodes(tmp_path / "out" / "evaluations" / f"step-{best['step']}")
    logged = [line["step"] for line in log_of(tmp_path / "out") if "eval_success" in line]
    assert logged == [0, 10, 20]
    curve = (tmp_path / "out" / "evaluation.svg").read_text()
    assert curve == figure_curve(log_of(tmp_path / "out"), "success")


@pytest.mark.slow
def test_trying_a_model_does_not_change_its_training(
    store: Store, tasks: str, tmp_path: Path
) -> None:
    more = {"training__max_steps": 6, "lora__lora_dropout": 0.2}
    config = _config(store, tasks, **more)
    sampled = _section(tasks, every_steps=2, policy={"max_tokens": 6, "temperature": 1.0})
    tried = config.model_copy(update={"evaluate": type(config.evaluate).model_validate(sampled)})
    train(tried, tmp_path / "tried")
    train(config.model_copy(update={"evaluate": None}), tmp_path / "plain")
    weights = "adapter/adapter_model.safetensors"
    assert (tmp_path / "tried" / weights).read_bytes() == (
        tmp_path / "plain" / weights
    ).read_bytes()
    losses = [
        [{**line} for line in log_of(tmp_path / name) if "loss" in line]
        for name in ("tried", "plain")
    ]
    assert losses[0] == losses[1]


def test_a_training_stops_when_success_gains_nothing(
    store: Store, tasks: str, tmp_path: Path
) -> None:
    section = _section(tasks, every_steps=2, keep_best=False)
    config = config_of(
        store,
        evaluate=section,
        early_stopping={"patience": 2},
        training__max_steps=30,
        training__learning_rate=1e-6,
    )
    done = train(config, tmp_path / "out")
    assert done.record is not None
    result = done.record["result"]
    assert result["steps"] == 4
    assert result["stopped_early"].startswith("success has not become better in 2 measurements")
    assert not (tmp_path / "out" / "best").exists()


def test_a_training_stops_by_the_loss_of_held_out_rows(tmp_path: Path) -> None:
    store = write_runs(tmp_path / "store")
    other = write_runs(tmp_path / "other", 4)
    config = config_of(
        store,
        data__eval_store=other.root,
        training__eval_strategy="steps",
        training__eval_steps=1,
        training__max_steps=30,
        training__learning_rate=1e-7,
        early_stopping={"patience": 3, "min_delta": 0.05},
    )
    done = train(config, tmp_path / "out")
    assert done.record is not None
    assert done.record["result"]["steps"] == 4
    assert done.record["result"]["stopped_early"].startswith("loss has not become better")


def test_the_figures_of_scorers_are_logged_with_a_suite(
    store: Store, tasks: str, tmp_path: Path
) -> None:
    suite = tmp_path / "suite.yaml"
    suite.write_text(
        f"name: mine\nenvironment: calculator\ntasks: {tasks}\n"
        "scorers: [outcome, efficiency]\nlimits: {max_turns: 2}\nn: 2\n"
    )
    section = {"suite": str(suite), "policy": {"max_tokens": 4}, "metric": "truncated"}
    config = with_suite(config_of(store, evaluate=section, training__max_steps=1))
    assert config.evaluate is not None
    assert (config.evaluate.n, config.evaluate.env) == (2, "calculator")
    done = train(config, tmp_path / "out", TrainOptions(scoring=SCORING))
    assert done.record is not None
    last = done.record["result"]["evaluations"][-1]
    assert last["episodes"] == 8
    assert {"success", "turns", "pass@1"} <= set(last)
    with pytest.raises(UsageError, match="adp train brings"):
        train(config, tmp_path / "other")


def test_a_world_that_breaks_does_not_end_the_training(store: Store, tmp_path: Path) -> None:
    code = tmp_path / "worlds.py"
    code.write_text(
        "class Broken:\n"
        "    def look(self) -> str:\n"
        "        'Look.'\n"
        "        return 'x'\n"
        "    def reset(self, task):\n"
        "        raise OSError('the disk is gone')\n"
    )
    lines = [{"task_id": f"t{n}", "instruction": "look"} for n in range(30)]
    path = tmp_path / "tasks.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    section = {"env": f"{code}:Broken", "tasks": str(path), "policy": {"max_tokens": 4}}
    config = config_of(store, evaluate=section, training__max_steps=2)
    with pytest.raises(UsageError, match="--allow-python"):
        train(config, tmp_path / "out")
    done = train(config, tmp_path / "out", TrainOptions(allow_python=True))
    assert done.record is not None
    result = done.record["result"]
    assert result["steps"] == 2
    assert "best" not in result
    assert all(item["broken"] == 30 for item in result["evaluations"])


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"evaluate": {}}, "nothing to try the model on"),
        ({"evaluate": {"env": "calculator"}, "launch__zero": 2}, "in one process"),
        (
            {"evaluate": {"env": "calculator"}, "lora__init_lora_weights": "pissa"},
            "keep_best: false",
        ),
        ({"early_stopping": {}}, "there are none to measure"),
        ({"early_stopping": {"metric": "success"}}, "which nothing measures"),
    ],
)
def test_what_does_not_go_together_is_refused(more: dict[str, Any], words: str) -> None:
    sentences = list(faults(config_of("store", **more), Machine()))
    assert any(words in sentence for sentence in sentences), sentences


@pytest.mark.parametrize(
    ("section", "words"),
    [
        ({"env": "calculater"}, "calculator"),
        ({"env": "calculator", "policy": {"model": "x"}}, "takes no model"),
        ({"env": "calculator", "policy": {"max_token": 3}}, "max_token"),
    ],
)
def test_a_wrong_name_is_refused_before_the_training(
    store: Store, tmp_path: Path, section: dict[str, Any], words: str
) -> None:
    with pytest.raises(UsageError, match=words):
        train(config_of(store, evaluate=section), tmp_path / "out")
    assert not (tmp_path / "out").exists()


CALL = [sys.executable, "-c", "import sys; from adp.cli.main import main; sys.exit(main())"]


def _call(store: Store, tasks: str, out: Path, *words: str) -> subprocess.Popen[str]:
    settings = {
        "evaluate": _section(tasks, every_steps=4),
        "training.max_steps": 24,
        "training.save_steps": 6,
        "training.learning_rate": 0.01,
        "training.per_device_train_batch_size": 4,
        "training.gradient_accumulation_steps": 1,
        "training.gradient_checkpointing": False,
        "training.use_cpu": True,
        "training.bf16": False,
        "data.workers": 1,
    }
    given = [f"--set={path}={json.dumps(value)}" for path, value in settings.items()]
    env = {**os.environ, "OMP_NUM_THREADS": "1", "ADP_CACHE": str(out.parent / "cache")}
    return subprocess.Popen(
        [*CALL, "train", "sft", store.root, "--model", "tiny", "-o", str(out), "--json",
         *given, *words],
        env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def _finish(process: subprocess.Popen[str]) -> dict[str, Any]:
    out, wrong = process.communicate(timeout=2 * PATIENCE)
    assert process.returncode == 0, wrong
    value: dict[str, Any] = json.loads(out)
    return value


def _hashes(out: Path) -> dict[str, str]:
    names = ("adapter/adapter_model.safetensors", "best/adapter_model.safetensors",
             "metrics.jsonl", "evaluation.svg")  # fmt: skip
    return {name: hashlib.sha256((out / name).read_bytes()).hexdigest() for name in names}


@pytest.mark.slow
def test_a_killed_run_has_the_same_evaluations_and_the_same_best(
    store: Store, tasks: str, tmp_path: Path
) -> None:
    plain = _finish(_call(store, tasks, tmp_path / "plain"))
    killed = 0
    for lines in (4, 13, 22):
        process = _call(store, tasks, tmp_path / "out", "--resume")
        log = tmp_path / "out" / "metrics.jsonl"
        while process.poll() is None:
            if log.exists() and len(log.read_text().splitlines()) >= lines:
                process.send_signal(signal.SIGKILL)
                killed += 1
                break
            time.sleep(0.01)
        process.communicate()
    assert killed
    if not (tmp_path / "out" / "run.json").exists():
        _finish(_call(store, tasks, tmp_path / "out", "--resume"))
    record = json.loads((tmp_path / "out" / "run.json").read_text())
    for name in ("best", "evaluations"):
        assert record["result"][name] == plain["result"][name]
    assert _hashes(tmp_path / "out") == _hashes(tmp_path / "plain")
    for step in (0, 4, 24):
        name = f"evaluations/step-{step}"
        assert _episodes(tmp_path / "out" / name) == _episodes(tmp_path / "plain" / name)


@pytest.mark.slow
def test_two_processes_try_the_model_as_a_single_one_does(
    store: Store, tasks: str, tmp_path: Path
) -> None:
    two = _finish(_call(store, tasks, tmp_path / "two", "--launch", "2",
                        "--set=training.per_device_train_batch_size=2"))  # fmt: skip
    single = _finish(_call(store, tasks, tmp_path / "single"))
    assert two["result"]["evaluations"] == single["result"]["evaluations"]
    assert two["result"]["best"] == single["result"]["best"]
