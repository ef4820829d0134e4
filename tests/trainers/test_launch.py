"""Several processes on the CPU: they learn what one does; a killed run ends the same."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from adp.trainers.config import TrainConfig
from adp.trainers.config_file import read_config
from adp.trainers.incompatible import faults
from adp.trainers.launch import command, config_file
from adp.trainers.machine import Machine
from tests.trainers.small_runs import config_of, losses_of, write_runs
from tests.waiting import PATIENCE

pytestmark = pytest.mark.train

CALL = [sys.executable, "-c", "import sys; from adp.cli.main import main; sys.exit(main())"]
SETTINGS = {
    "training.learning_rate": 0.01,
    "training.per_device_train_batch_size": 2,
    "training.gradient_checkpointing": False,
    "training.use_cpu": True,
    "training.bf16": False,
    "data.workers": 1,
}


def _run(folder: Path, name: str, settings: dict[str, Any], *words: str) -> subprocess.Popen[str]:
    given = [
        f"--set={path}={json.dumps(value)}" for path, value in {**SETTINGS, **settings}.items()
    ]
    store = folder / "store"
    if not store.exists():
        write_runs(store, 16)
    whole = [
        *CALL,
        "train",
        "sft",
        str(store),
        "--model",
        "tiny",
        "-o",
        str(folder / name),
        "--json",
    ]
    env = {**os.environ, "OMP_NUM_THREADS": "1", "ADP_CACHE": str(folder / "cache")}
    return subprocess.Popen(
        [*whole, *given, *words],
        env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def _finish(process: subprocess.Popen[str]) -> dict[str, Any]:
    out, wrong = process.communicate(timeout=2 * PATIENCE)
    assert process.returncode == 0, wrong
    value: dict[str, Any] = json.loads(out)
    return value


@pytest.mark.parametrize("zero", [2, 3])
@pytest.mark.parametrize("offload", [False, True])
def test_the_files_for_zero_are_there(zero: int, offload: bool) -> None:
    launch = {"processes": 2, "zero": zero, "offload": offload}
    training = {"use_cpu": True, "bf16": False}
    config = TrainConfig.model_validate({"launch": launch, "training": training})
    plain = yaml.safe_load(config_file(config).read_text())
    assert plain["deepspeed_config"]["zero_stage"] == zero
    assert plain["deepspeed_config"]["offload_optimizer_device"] == ("cpu" if offload else "none")
    words = command(config, Path("out"))
    assert words[words.index("--num_processes") + 1] == "2"
    assert words[words.index("--mixed_precision") + 1] == "no"
    plain_words = command(config_of("s", launch__processes=3), Path("out"))
    assert plain_words[plain_words.index("--nproc_per_node") + 1] == "3"


GPUS = Machine(gpus=8)


@pytest.mark.parametrize("offload", [False, True])
def test_accelerate_reads_the_file_for_fsdp2(offload: bool, tmp_path: Path) -> None:
    """What its own launcher makes of the call, as the plugin of a process sees it."""
    from accelerate.commands.launch import _validate_launch_command, launch_command_parser
    from accelerate.utils.launch import prepare_multi_gpu_env

    launch = {"processes": 4, "fsdp": True, "offload": offload}
    config = TrainConfig.model_validate({"launch": launch, "training": {"bf16": False}})
    words = command(config, tmp_path)
    read = launch_command_parser().parse_args(words[words.index("--config_file") :])
    read, *_ = _validate_launch_command(read)
    assert read.use_fsdp
    assert read.num_processes == 4
    env = prepare_multi_gpu_env(read)
    assert env["ACCELERATE_USE_FSDP"] == "true"
    assert env["FSDP_VERSION"] == "2"
    assert env["FSDP_STATE_DICT_TYPE"] == "FULL_STATE_DICT"
    assert env["FSDP_OFFLOAD_PARAMS"] == str(offload).lower()
    assert env["FSDP_AUTO_WRAP_POLICY"] == "TRANSFORMER_BASED_WRAP"
    assert env["ACCELERATE_MIXED_PRECISION"] == "no"


@pytest.mark.parametrize("way", ["", "zero", "fsdp"])
def test_several_machines_are_given_to_the_launcher(way: str) -> None:
    launch = {
        "processes": 16, "num_machines": 2, "machine_rank": 1, "main_process_ip": "10.0.0.1",
        **{"": {}, "zero": {"zero": 3}, "fsdp": {"fsdp": True}}[way],
    }  # fmt: skip
    config = TrainConfig.model_validate({"launch": launch, "training": {"bf16": False}})
    words = command(config, Path("out"))
    names = (
        ("--num_machines", "--machine_rank", "--main_process_ip", "--main_process_port")
        if way
        else ("--nnodes", "--node_rank", "--master_addr", "--master_port")
    )
    assert [words[words.index(name) + 1] for name in names] == ["2", "1", "10.0.0.1", "29500"]
    share = words[words.index("--num_processes" if way else "--nproc_per_node") + 1]
    assert share == ("16" if way else "8")


@pytest.mark.parametrize(
    ("launch", "words"),
    [
        ({"processes": 4, "num_machines": 2}, "main_process_ip"),
        ({"processes": 3, "num_machines": 2, "main_process_ip": "a"}, "no multiple"),
        ({"machine_rank": 1}, "counted from 0"),
    ],
)
def test_machines_that_do_not_fit_are_refused(launch: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        TrainConfig.model_validate({"launch": launch})


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"launch.zero": 3}, "not both"),
        ({"model.load_in_4bit": True}, "4 or 8 bits"),
        ({"lora.loraplus_lr_ratio": 8.0}, "before the optimiser is made"),
        ({"lora.init_lora_weights": "pissa"}, "whole weights"),
        ({"training.use_cpu": True}, "needs GPUs"),
        ({"method": "grpo"}, "not tried with FSDP"),
        ({"evaluate": {"env": "calculator"}}, "in one process"),
    ],
)
def test_what_does_not_go_with_fsdp_is_refused(more: dict[str, Any], words: str) -> None:
    given = {"data.store": "s", "launch.fsdp": True, "launch.processes": 4, **more}
    config = read_config(None, more=given)[0]
    sentences = list(faults(config, GPUS))
    assert any(words in sentence for sentence in sentences), sentences
    plain = {"data.store": "s", "launch.fsdp": True, "launch.processes": 4}
    assert list(faults(read_config(None, more=plain)[0], GPUS)) == []


@pytest.mark.slow
def test_two_machines_learn_what_a_single_one_does(tmp_path: Path) -> None:
    """Two calls on one computer, each as a machine of its own."""
    ten = {"training.max_steps": 10, "training.save_strategy": "no"}
    single = {**ten, "training.gradient_accumulation_steps": 2}
    _finish(_run(tmp_path, "one", single))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    shared = {
        **ten, "training.gradient_accumulation_steps": 1, "launch.num_machines": 2,
        "launch.main_process_ip": "127.0.0.1", "launch.main_process_port": port,
    }  # fmt: skip
    machines = [
        _run(tmp_path, "two", {**shared, "launch.machine_rank": rank}, "--launch", "2")
        for rank in (1, 0)
    ]
    results = [_finish(machine) for machine in machines]
    assert results[0] == {}
    assert results[1]["result"]["steps"] == 10
    assert losses_of(tmp_path / "two") == pytest.approx(losses_of(tmp_path / "one"), rel=1e-4)
    assert (tmp_path / "two" / "adapter" / "README.md").exists()


@pytest.mark.slow
@pytest.mark.parametrize("zero", [0, 2, 3])
def test_two_processes_learn_what_one_does(tmp_path: Path, zero: int) -> None:
    pytest.importorskip("deepspeed")
    ten = {"training.max_steps": 10, "training.save_strategy": "no"}
    _finish(_run(tmp_path, "one", {**ten, "training.gradient_accumulation_steps": 2}))
    more = ["--launch", "2", *(["--zero", str(zero)] if zero else [])]
    _finish(_run(tmp_path, "two", {**ten, "training.gradient_accumulation_steps": 1}, *more))
    result, two = losses_of(tmp_path / "one"), losses_of(tmp_path / "two")
    assert len(result) == 10
    assert result[-1] < result[0] - 0.2
    assert two == pytest.approx(result, rel=1e-4)
    assert (tmp_path / "two" / "adapter" / "adapter_model.safetensors").exists()


@pytest.mark.slow
def test_a_fault_of_one_of_several_is_one_sentence(tmp_path: Path) -> None:
    wild = {"training.learning_rate": 1e30, "training.max_grad_norm": 0, "training.max_steps": 5}
    process = _run(tmp_path, "out", wild, "--launch", "2")
    _, wrong = process.communicate(timeout=2 * PATIENCE)
    assert process.returncode == 11
    assert wrong.strip().splitlines()[-1].startswith("error: ")
    assert "learning_rate" in wrong


@pytest.mark.slow
def test_a_killed_run_ends_the_same(tmp_path: Path) -> None:
    steps = {
        "training.max_steps": 40,
        "training.gradient_accumulation_steps": 1,
        "training.save_steps": 5,
        "lora.lora_dropout": 0.1,
    }
    _finish(_run(tmp_path, "whole", steps))
    killed = 0
    for step in (7, 16, 33):
        process = _run(tmp_path, "out", steps, "--resume")
        log = tmp_path / "out" / "metrics.jsonl"
        while process.poll() is None:
            if log.exists() and len(log.read_text().splitlines()) >= step:
                process.send_signal(signal.SIGKILL)
                killed += 1
                break
            time.sleep(0.02)
        process.communicate()
    assert killed
    if not (tmp_path / "out" / "run.json").exists():
        _finish(_run(tmp_path, "out", steps, "--resume"))
    for name in ("adapter/adapter_model.safetensors", "metrics.jsonl", "loss.svg"):
        assert (tmp_path / "out" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
