"""The sections of a training configuration about the run itself: processes, trials, reports."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, model_validator

from adp.rollouts.collecting.limits import Limits
from adp.trainers.config_section import ConfigSection, made

MULTI_PORT = 29500
"""Port of the first process of several machines, when none is chosen: they must agree on it."""


class LaunchSection(ConfigSection):
    """How many processes train, and how they share the work."""

    processes: int = Field(default=1, ge=1)
    """Processes of all machines together; on GPUs one for each."""
    zero: Literal[0, 2, 3] = 0
    """0: every process holds the model (DDP); 2, 3: DeepSpeed's ZeRO, which is not tested on
    GPUs."""
    fsdp: bool = False
    """Split weights, gradients and optimiser over the processes by torch's FSDP2, which is not
    tested on GPUs."""
    offload: bool = False
    """ZeRO: keep the optimiser, with 3 the weights too, in main memory; FSDP: the weights and the
    optimiser."""
    main_process_port: int | None = Field(default=None, ge=1, lt=65536)
    """Port of the first process; null: a free one, of several machines 29500."""
    num_machines: int = Field(default=1, ge=1)
    """Machines that train together. Each is started with the same configuration and its own
    machine_rank; OUT lies in a folder that all of them see. Not tested on GPUs."""
    machine_rank: int = Field(default=0, ge=0)
    """Number of this machine, from 0; 0 writes the result."""
    main_process_ip: str | None = Field(default=None, pattern=r"^[A-Za-z0-9.:_-]+$")
    """Address of machine 0, which the others reach."""

    @model_validator(mode="after")
    def _fits(self) -> LaunchSection:
        if self.machine_rank >= self.num_machines:
            raise ValueError(
                f"machine_rank {self.machine_rank} is none of {self.num_machines} machines, which "
                "are counted from 0"
            )
        if self.num_machines > 1 and self.main_process_ip is None:
            raise ValueError("several machines need main_process_ip, the address of machine 0")
        if self.processes % self.num_machines:
            raise ValueError(
                f"processes counts those of all machines, and {self.processes} is no multiple of "
                f"{self.num_machines}"
            )
        return self


class ReportSection(ConfigSection):
    """What is written about the run."""

    tensorboard: bool = False
    """Write events for TensorBoard, too."""
    report_to: tuple[str, ...] = ()
    """Further trackers of transformers, such as wandb."""
    run_name: str | None = None
    """Name of the run."""


class EvaluateSection(ConfigSection):
    """Tasks that the model is tried on while it is trained."""

    suite: str | None = None
    """A suite of adp eval: its name or a YAML file. It gives env, tasks, n, seed, limits and
    scorers, where these do not stand here."""
    env: str | None = None
    """Environment, as in adp collect: toolworld:max_hops=1. FILE.py:NAME needs --allow-python."""
    tasks: str | None = None
    """File of tasks, store, or SPLIT:COUNT[:SEED]; null: test:100. Take others than those that
    the store was collected on."""
    split: str | None = None
    """Of a file or a store, only tasks of this split."""
    every_steps: int = Field(default=100, ge=1)
    """Steps between two trials."""
    at_start: bool = True
    """Try the model before the first step, too: it shows what was gained, and what is wrong with
    the environment."""
    limit: int | None = Field(default=None, ge=1)
    """Only so many tasks, the first ones."""
    n: int | None = Field(default=None, ge=1)
    """Attempts at each task; null: 1, or as the suite says."""
    seed: int | None = None
    """Seed of the trials, the same each time; null: 0, or as the suite says."""
    limits: Limits = Field(default_factory=made(Limits))
    """Budgets of an episode."""
    concurrency: int = Field(default=64, ge=1)
    """Episodes at once."""
    policy: dict[str, Any] = Field(default_factory=dict)
    """Settings of the policy transformers, such as {max_tokens: 256, temperature: 0.7}; without
    its model. How prompts are written is taken from the section render."""
    scorers: tuple[str, ...] = ()
    """Scorers of adp eval; their figures are logged beside success and reward."""
    metric: str = Field(default="success", pattern=r"^[\w.@^/-]+$")
    """Figure that decides which checkpoint is the best: success, reward, or one of a scorer."""
    keep_best: bool = True
    """Keep the best model in OUT/best."""


class StoppingSection(ConfigSection):
    """When a training that gains nothing more is ended."""

    metric: str | None = Field(default=None, pattern=r"^[\w.@^/-]+$")
    """Figure that is watched: loss (of the held-out rows), or one of the section evaluate. Names
    that end in loss are to fall, others to rise. null: evaluate.metric, without it loss."""
    patience: int = Field(default=3, ge=1)
    """Measurements in a row without a gain that end the training."""
    min_delta: float = Field(default=0.0, ge=0)
    """What must be gained at least to count."""
