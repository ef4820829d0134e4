"""Several processes: torchrun for plain data parallelism, accelerate for ZeRO and FSDP2.

Of several machines each starts its own processes; those of machine 0 tell the others where to meet.

On a machine without a GPU torchrun uses gloo. ``accelerate launch --cpu`` would start one process
and say nothing, and torchrun with ZeRO-3 would build the model before there is a group; so ZeRO
goes by accelerate with one of the files beside this one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

from adp.trainers.config import TrainConfig
from adp.trainers.config_run import MULTI_PORT
from adp.trainers.precision import choose
from adp.trainers.training_process import FAULT, WORK
from adp_schema.errors import TrainingError


def launch(config: TrainConfig, out: Path) -> None:
    """Train in several processes, and wait for them.

    Args:
        config: with the section ``launch``.
        out: folder of the run, with its job and rows.

    Raises:
        TrainingError: one of them stopped on an error.
    """
    fault = out / WORK / FAULT
    fault.unlink(missing_ok=True)
    # DeepSpeed logs to standard output, which belongs to the report of the command.
    done = subprocess.run(command(config, out), env=_environment(config), stdout=2, check=False)
    if fault.exists():
        plain = json.loads(fault.read_text(encoding="utf-8"))
        raise TrainingError(plain["error"])
    if done.returncode:
        raise TrainingError(
            f"a process of the training ended with {done.returncode}; what it wrote is above, and "
            "--resume goes on from the last checkpoint"
        )


def command(config: TrainConfig, out: Path) -> list[str]:
    """The words of the call.

    Args:
        config: with the section ``launch``.
        out: folder of the run.
    """
    section = config.launch
    worker = ["-m", "adp.trainers.training_process", str(out)]
    if not section.zero and not section.fsdp:
        run = ["torch.distributed.run", *_place(config)]
        return [sys.executable, "-m", *run, *worker]
    precision = {"float16": "fp16", "bfloat16": "bf16", "float32": "no"}[choose(config).compute]
    run = ["accelerate.commands.launch", "--config_file", str(config_file(config))]
    run += ["--num_processes", str(section.processes), "--mixed_precision", precision]
    if section.num_machines > 1:
        run += ["--num_machines", str(section.num_machines)]
        run += ["--machine_rank", str(section.machine_rank)]
        run += ["--main_process_ip", str(section.main_process_ip)]
        run += ["--main_process_port", str(section.main_process_port or MULTI_PORT)]
    else:
        run += ["--main_process_port", str(section.main_process_port or 0)]
    return [sys.executable, "-m", *run, *worker]


def _place(config: TrainConfig) -> list[str]:
    """How many processes torchrun starts here, and where they meet."""
    section = config.launch
    here = ["--nproc_per_node", str(section.processes // section.num_machines)]
    port = section.main_process_port
    if section.num_machines > 1:
        return [
            *here,
            "--nnodes", str(section.num_machines),
            "--node_rank", str(section.machine_rank),
            "--master_addr", str(section.main_process_ip),
            "--master_port", str(port or MULTI_PORT),
        ]  # fmt: skip
    if port is not None:
        return [*here, "--master_port", str(port)]
    # Without a port that the user chose, torchrun listens first and tells the processes where.
    return [*here, "--standalone", "--local_addr", "127.0.0.1"]


def config_file(config: TrainConfig) -> Path:
    """The file for accelerate that is shipped for a kind of ZeRO, or for FSDP2."""
    section = config.launch
    kind = "fsdp2" if section.fsdp else f"zero{section.zero}"
    offload = "_offload" if section.offload else ""
    return Path(str(files("adp.trainers"))) / "launch_files" / f"{kind}{offload}.yaml"


def _environment(config: TrainConfig) -> dict[str, str]:
    """Variables for the processes; each has its share of the cores."""
    environment = dict(os.environ)
    here = config.launch.processes // config.launch.num_machines
    share = max(1, (os.cpu_count() or 1) // here)
    environment.setdefault("OMP_NUM_THREADS", str(share))
    environment.setdefault("TOKENIZERS_PARALLELISM", "false")
    if config.training.use_cpu:
        environment["CUDA_VISIBLE_DEVICES"] = ""
    return environment
