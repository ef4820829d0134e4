"""Batch scripts that run a command of adp under Slurm or LSF, on one node or several.

A training on several nodes is started once on each; every start gets the number of nodes, its own
number and the address of the first. Any other command runs on one node. A training that was stopped
goes on when its script is submitted again: the script adds ``--resume`` where the output is there.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from adp_schema.errors import UsageError

Scheduler = Literal["slurm", "lsf"]
SCHEDULERS: tuple[Scheduler, ...] = ("slurm", "lsf")

_PLAIN = re.compile(r"[\w.@%+=:,/\[\]-]+")
_VARIABLE = re.compile(r"[A-Za-z_]\w*")
_TIME = re.compile(r"(\d+):([0-5]\d)")
_TRAIN = "train"


@dataclass(frozen=True)
class JobRequest:
    """What a job asks of the scheduler.

    Attributes:
        scheduler: slurm or lsf.
        name: name of the job.
        nodes: number of nodes; more than one only for a training.
        gpus: GPUs of each node; 0 asks for none.
        cpus: cores of each node.
        memory: memory of each node in GB; None asks for none.
        time: longest time, ``HOURS:MINUTES``; None takes that of the queue.
        queue: partition of Slurm or queue of LSF.
        activate: file that is sourced first, such as ``.venv/bin/activate``.
        variables: environment variables, ``NAME=VALUE``.
        further: further options of the scheduler, one a line, without ``#SBATCH`` or ``#BSUB``.
    """

    scheduler: Scheduler
    name: str = "adp"
    nodes: int = 1
    gpus: int = 0
    cpus: int = 8
    memory: int | None = None
    time: str | None = None
    queue: str | None = None
    activate: str | None = None
    variables: Sequence[str] = field(default_factory=tuple)
    further: Sequence[str] = field(default_factory=tuple)


def job_script(request: JobRequest, words: Sequence[str]) -> str:
    """The script of a job.

    Args:
        request: what it asks for.
        words: the command, without ``adp``: ``["train", "sft", "--config", ...]``.

    Raises:
        UsageError: a value cannot stand in a script, or the command runs on one node only.
    """
    if not words:
        raise UsageError("name the command behind --, such as: -- train sft --config train.yaml")
    training = words[0] == _TRAIN
    if request.nodes > 1 and not training:
        raise UsageError(f"adp {words[0]} runs on one node; leave --nodes out")
    _check(request)
    head = _slurm_head(request) if request.scheduler == "slurm" else _lsf_head(request)
    lines = ["#!/bin/bash", *head, "", "set -euo pipefail"]
    if request.activate is not None:
        # Scripts of environments use variables that are not set.
        lines += [f"set +u; source {shlex.quote(request.activate)}; set -u"]
    lines += [f"export {_assignment(text)}" for text in request.variables]
    lines += _run(request, list(words), training)
    return "\n".join(lines) + "\n"


def _check(request: JobRequest) -> None:
    """Options of a scheduler stand unquoted behind ``#SBATCH``, so they must be plain words."""
    plain = {"--name": request.name, "--queue": request.queue}
    for option, value in plain.items():
        if value is not None and not _PLAIN.fullmatch(value):
            raise UsageError(f"{option} {value!r}: use letters, digits and . @ % + = : , / [ ] -")
    if request.time is not None and not _TIME.fullmatch(request.time):
        raise UsageError(f"--time {request.time!r}: write hours and minutes, such as 12:00")
    for text in request.further:
        if not text.startswith("-") or not text.isprintable():
            raise UsageError(f"--scheduler-option {text!r}: it is one line that begins with -")


def _slurm_head(request: JobRequest) -> list[str]:
    options = [
        f"--job-name={request.name}",
        f"--nodes={request.nodes}",
        "--ntasks-per-node=1",
        f"--cpus-per-task={request.cpus}",
        "--output=%x_%j.out",
    ]
    if request.gpus:
        options.append(f"--gpus-per-node={request.gpus}")
    if request.memory is not None:
        options.append(f"--mem={request.memory}G")
    if request.time is not None:
        options.append(f"--time={request.time}:00")
    if request.queue is not None:
        options.append(f"--partition={request.queue}")
    return [f"#SBATCH {option}" for option in (*options, *request.further)]


def _lsf_head(request: JobRequest) -> list[str]:
    # One slot a node: blaunch starts one process on each, which starts those of its GPUs.
    options = [
        f"-J {request.name}",
        f"-n {request.nodes}",
        '-R "span[ptile=1]"',
        f'-R "affinity[core({request.cpus})]"',
        "-o %J.out",
    ]
    if request.gpus:
        options.append(f'-gpu "num={request.gpus}:mode=exclusive_process"')
    if request.memory is not None:
        options.append(f'-R "rusage[mem={request.memory}GB]"')
    if request.time is not None:
        options.append(f"-W {request.time}")
    if request.queue is not None:
        options.append(f"-q {request.queue}")
    return [f"#BSUB {option}" for option in (*options, *request.further)]


def _assignment(text: str) -> str:
    name, equals, value = text.partition("=")
    if not equals or not _VARIABLE.fullmatch(name):
        raise UsageError(f"--variable {text!r}: write NAME=VALUE")
    return f"{name}={shlex.quote(value)}"


def _run(request: JobRequest, words: list[str], training: bool) -> list[str]:
    """The lines that run the command."""
    if training and request.nodes * max(1, request.gpus) > 1 and "--launch" not in words:
        words = [*words, "--launch", str(request.nodes * max(1, request.gpus))]
    command = "adp " + shlex.join(words)
    lines = []
    if training:
        lines += ["resume=()", f"if [ -e {shlex.quote(_out(words))} ]; then resume=(--resume); fi"]
        command += ' "${resume[@]}"'
    if request.nodes == 1:
        return [*lines, command]
    places = (
        f"--set launch.num_machines={request.nodes} --set launch.machine_rank=$rank"
        " --set launch.main_process_ip=$first"
    )
    lines += ["export first"]
    if request.scheduler == "slurm":
        lines += ['first=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | sed -n 1p)']
        inside = f"rank=$SLURM_NODEID; {command} {places}"
        return [*lines, f"srun bash -c {shlex.quote(_positional(inside))} adp " + '"${resume[@]}"']
    lines += ['first=$(echo $LSB_HOSTS | cut -d " " -f 1)', "rank=0", "starts=()"]
    inside = f"{command} {places}"
    lines += [
        "for host in $LSB_HOSTS; do",
        f"  blaunch -z $host env rank=$rank first=$first bash -c {shlex.quote(_positional(inside))}"
        ' adp "${resume[@]}" &',
        "  starts+=($!)",
        "  rank=$((rank + 1))",
        "done",
        'for start in "${starts[@]}"; do wait "$start"; done',
    ]
    return lines


def _positional(command: str) -> str:
    """The command for a shell of its own, which gets the words of ``resume`` as arguments."""
    return command.replace('"${resume[@]}"', '"$@"')


def _out(words: Sequence[str]) -> str:
    """The output of a training.

    Raises:
        UsageError: it names none.
    """
    for number, word in enumerate(words):
        if word in ("-o", "--out") and number + 1 < len(words):
            return words[number + 1]
        if word.startswith("--out="):
            return word.partition("=")[2]
    raise UsageError("a training in a job needs -o OUT; name it behind --")
