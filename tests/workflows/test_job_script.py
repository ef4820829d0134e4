"""Batch scripts, run by bash with stand-ins for the scheduler that note how adp was called."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from adp.workflows.job_script import JobRequest, job_script
from adp_schema.errors import UsageError

TRAIN = ["train", "sft", "--config", "my file.yaml", "-o", "run's", "--set", "x=$HOME;`id`"]

ADP = """#!/bin/bash
python3 -c 'import json, os, sys
print(json.dumps([sys.argv[1:], os.environ.get("TOKEN")]))' "$@" >> "$CALLS"
"""
# What a step of the job sees: srun starts a command once a node, with the number of the node.
SRUN = """#!/bin/bash
for SLURM_NODEID in 0 1; do export SLURM_NODEID; "$@" || exit 1; done
"""
BLAUNCH = """#!/bin/bash
[ "$1" = -z ] || exit 1
shift 2
exec "$@"
"""


def calls(script: str, folder: Path) -> list[Any]:
    programs = folder / "bin"
    programs.mkdir(exist_ok=True)
    texts = {"adp": ADP, "srun": SRUN, "blaunch": BLAUNCH}
    texts["scontrol"] = '#!/bin/bash\n[ "$*" = "show hostnames n[1-2]" ] && printf "n1\\nn2\\n"\n'
    for name, text in texts.items():
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    noted = folder / "calls.jsonl"
    noted.unlink(missing_ok=True)
    (folder / "job.sh").write_text(script)
    environment = {
        "PATH": f"{programs}:{os.environ['PATH']}",
        "CALLS": str(noted),
        "SLURM_JOB_NODELIST": "n[1-2]",
        "LSB_HOSTS": "n1 n2",
    }
    done = subprocess.run(
        ["bash", "job.sh"], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in noted.read_text().splitlines()]


@pytest.mark.parametrize("scheduler", ["slurm", "lsf"])
def test_a_training_on_two_nodes_starts_on_each(scheduler: Any, tmp_path: Path) -> None:
    request = JobRequest(scheduler, nodes=2, gpus=4, variables=["TOKEN=a b$c"])
    script = job_script(request, TRAIN)
    for resume in ([], ["--resume"]):
        started = sorted(calls(script, tmp_path), key=lambda item: item[0][-3])
        assert started == [
            [
                [*TRAIN, "--launch", "8", *resume, "--set", "launch.num_machines=2",
                 "--set", f"launch.machine_rank={rank}", "--set", "launch.main_process_ip=n1"],
                "a b$c",
            ]
            for rank in (0, 1)
        ]  # fmt: skip
        (tmp_path / "run's").mkdir(exist_ok=True)


@pytest.mark.parametrize("scheduler", ["slurm", "lsf"])
def test_any_command_on_one_node(scheduler: Any, tmp_path: Path) -> None:
    words = ["collect", "--env", "toolworld", "-o", "it's"]
    activate = tmp_path / "bin" / "activate"
    activate.parent.mkdir()
    activate.write_text('export TOKEN="$NOT_SET-on"\n')
    request = JobRequest(scheduler, cpus=16, activate=str(activate))
    assert calls(job_script(request, words), tmp_path) == [[words, "-on"]]


def test_what_is_asked_of_slurm() -> None:
    request = JobRequest(
        "slurm", "night", 2, 4, 16, 256, "12:30", "gpu", further=["--requeue", "--mail-type=END"]
    )
    options = [line for line in job_script(request, TRAIN).splitlines() if line[:7] == "#SBATCH"]
    assert options == [
        "#SBATCH --job-name=night", "#SBATCH --nodes=2", "#SBATCH --ntasks-per-node=1",
        "#SBATCH --cpus-per-task=16", "#SBATCH --output=%x_%j.out", "#SBATCH --gpus-per-node=4",
        "#SBATCH --mem=256G", "#SBATCH --time=12:30:00", "#SBATCH --partition=gpu",
        "#SBATCH --requeue", "#SBATCH --mail-type=END",
    ]  # fmt: skip


def test_what_is_asked_of_lsf() -> None:
    request = JobRequest("lsf", "night", 1, 4, 8, 256, "12:30", "gpu")
    options = [line for line in job_script(request, TRAIN).splitlines() if line[:5] == "#BSUB"]
    assert options == [
        "#BSUB -J night", "#BSUB -n 1", '#BSUB -R "span[ptile=1]"', '#BSUB -R "affinity[core(8)]"',
        "#BSUB -o %J.out", '#BSUB -gpu "num=4:mode=exclusive_process"',
        '#BSUB -R "rusage[mem=256GB]"', "#BSUB -W 12:30", "#BSUB -q gpu",
    ]  # fmt: skip


def test_a_training_that_fails_on_a_node_fails_the_job(tmp_path: Path) -> None:
    script = job_script(JobRequest("lsf", nodes=2), TRAIN)
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, text in {"adp": "#!/bin/bash\nexit $rank\n", "blaunch": BLAUNCH}.items():
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    environment = {"PATH": f"{programs}:{os.environ['PATH']}", "LSB_HOSTS": "n1 n2"}
    bash = shutil.which("bash") or "bash"
    done = subprocess.run([bash, "-c", script], cwd=tmp_path, env=environment, check=False)
    assert done.returncode == 1


BAD = [
    ({"name": "a b"}, TRAIN, "--name 'a b': use letters"),
    ({"queue": "x\n#SBATCH"}, TRAIN, "--queue"),
    ({"time": "12"}, TRAIN, "write hours and minutes"),
    ({"variables": ["1=2"]}, TRAIN, "write NAME=VALUE"),
    ({"further": ["x"]}, TRAIN, "begins with -"),
    ({"further": ["--a\nrm"]}, TRAIN, "one line"),
    ({"nodes": 2}, ["convert", "x"], "adp convert runs on one node"),
    ({}, ["train", "sft"], "needs -o OUT"),
    ({}, [], "name the command behind --"),
]


@pytest.mark.parametrize(("more", "words", "message"), BAD)
def test_what_cannot_stand_in_a_script(more: Any, words: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        job_script(JobRequest("slurm", **more), words)
