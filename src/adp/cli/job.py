"""``adp job``: a batch script that runs a command on a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from adp.cli.text import epilog, say
from adp.core.output_files import whole_file
from adp.workflows.job_script import JobRequest, Scheduler, job_script

EPILOG = epilog(
    "adp job slurm --nodes 2 --gpus 4 -o train.sbatch -- train sft --config train.yaml -o run", 2, 4
)


def job(
    scheduler: Annotated[
        Scheduler, typer.Argument(metavar="SCHEDULER", help="slurm or lsf.", show_default=False)
    ],
    command: Annotated[
        list[str], typer.Argument(metavar="COMMAND", help="What to run, behind --, without adp.")
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="File for it; standard output without."),
    ] = None,
    name: Annotated[str, typer.Option(metavar="NAME", help="Name of the job.")] = "adp",
    nodes: Annotated[
        int, typer.Option(min=1, metavar="N", help="Nodes; several only for adp train.")
    ] = 1,
    gpus: Annotated[int, typer.Option(min=0, metavar="N", help="GPUs of each node.")] = 0,
    cpus: Annotated[int, typer.Option(min=1, metavar="N", help="Cores of each node.")] = 8,
    memory: Annotated[
        int | None, typer.Option(min=1, metavar="GB", help="Memory of each node.")
    ] = None,
    time: Annotated[
        str | None, typer.Option(metavar="HH:MM", help="Longest time; else that of the queue.")
    ] = None,
    queue: Annotated[
        str | None, typer.Option(metavar="NAME", help="Partition of Slurm, queue of LSF.")
    ] = None,
    activate: Annotated[
        str | None, typer.Option(metavar="FILE", help="Sourced first: .venv/bin/activate.")
    ] = None,
    variable: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="Environment variable; repeatable."),
    ] = None,
    scheduler_option: Annotated[
        list[str] | None,
        typer.Option(metavar="OPTION", help="Further option of the scheduler; repeatable."),
    ] = None,
) -> None:
    """Write a batch script that runs a command of adp under Slurm or LSF.

    A training on several nodes is started on each, with a process for each GPU. Submitted again
    after a stop, it goes on. Nothing is submitted: that is for sbatch or bsub.
    """
    request = JobRequest(
        scheduler, name, nodes, gpus, cpus, memory, time, queue, activate, variable or (),
        scheduler_option or (),
    )  # fmt: skip
    script = job_script(request, command)
    if out is None:
        typer.echo(script, nl=False)
        return
    with whole_file(out) as part:
        part.write_text(script, encoding="utf-8")
    say(f"next: {'sbatch' if scheduler == 'slurm' else 'bsub <'} {out}")
