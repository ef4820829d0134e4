"""A training run from the configuration to the record: what all methods share.

OUT/
  adapter/ or model/   what was trained, with its tokenizer
  run.json             the record of the run
  metrics.jsonl        a line for each log
  loss.svg             the loss over the steps
  evaluations/         the episodes in which the model was tried, a store for each time
  evaluation.svg       how it did in them
  best/                the model that did best
  checkpoints/         to go on from
  rollouts/            episodes of a training in an environment, as a store
  data/                what was made to train on, by data.make
  base/                the model ``tiny``, when it was trained
  work/                rows and job of a run that is under way
"""

from __future__ import annotations

import json
import math
import os
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from adp.core.code_files import CODE_NAME
from adp.core.extras import need
from adp.core.progress import Progress, Silent
from adp.rendering.drops import check_drops
from adp.stores.locks import holding
from adp.trainers.cautions import cautions
from adp.trainers.config import TrainConfig
from adp.trainers.evaluation.tasks import task_evaluation
from adp.trainers.incompatible import refuse
from adp.trainers.launch import launch
from adp.trainers.library_output import quiet
from adp.trainers.machine import this_machine
from adp.trainers.method import METHODS, TrainingPlan
from adp.trainers.model import build_tiny, context_length
from adp.trainers.precision import Precision, choose
from adp.trainers.record import RECORD, write_record
from adp.trainers.rewards import check_python
from adp.trainers.rollouts.rollout_store import seal_rollouts
from adp.trainers.training_process import (
    CHECKPOINTS,
    JOB,
    PLAN,
    ROWS,
    WORK,
    clear,
    last_checkpoint,
    train_here,
)
from adp_schema.errors import AdpError, OutputExistsError, UsageError
from adp_schema.manifest import write_atomic
from adp_schema.scratch import ScratchFolder

DATA = "data"
"""Folder of the data that were made for a run."""


@dataclass
class TrainOptions:
    """How a run is carried out; none of it changes what comes out.

    Attributes:
        resume: go on with the run that the folder holds.
        command: the words of the call, for the record.
        shown: tell the progress also from other processes.
        reporter: called with the plan before the training starts.
        allow_python: let rewards be Python functions that the configuration names.
        steps: told about each step.
        strict: refuse to train on rows that lack something of the store.
        scoring: what gives the figures of ``evaluate.scorers``, as ``module:function``.
    """

    resume: bool = False
    command: Sequence[str] = ()
    shown: bool = False
    reporter: Callable[[TrainingPlan], None] | None = None
    allow_python: bool = False
    steps: Progress = field(default_factory=Silent)
    strict: bool = False
    scoring: str | None = None


@dataclass
class Trained:
    """What a run gave.

    Attributes:
        plan: what it was about to do.
        record: the record; None after a dry run.
    """

    plan: TrainingPlan
    record: dict[str, Any] | None = None


def plan_run(
    config: TrainConfig,
    progress: Progress | None = None,
    *,
    allow_python: bool = False,
    strict: bool = False,
    scoring: str | None = None,
) -> TrainingPlan:
    """What a run would do; nothing is written and no model is loaded.

    Args:
        config: the run.
        progress: told about the rendering.
        allow_python: let rewards be Python functions that the configuration names.
        strict: refuse rows that lack something of the store.
        scoring: as for `TrainOptions`.

    Raises:
        UsageError: what does not go well together.
        ConversionLossError: ``strict``, and something is dropped.
        EmptyResultError: nothing is left to train on.
    """
    need("train")
    refuse(config)
    _check_python(config, allow_python)
    config = config.resolved()
    task_evaluation(config, scoring)
    with ScratchFolder("train") as folder:
        plan = _prepare(config, folder, progress or Silent())
    if strict:
        check_drops(plan.dropped, plan.notes)
    return plan


def train(
    config: TrainConfig,
    out: str | os.PathLike[str],
    options: TrainOptions | None = None,
    progress: Progress | None = None,
) -> Trained:
    """Train.

    Args:
        config: the run.
        out: folder for what comes out; new or empty, unless a run is resumed.
        options: how it is carried out.
        progress: told about the rendering.

    Raises:
        UsageError: what does not go well together.
        EmptyResultError: nothing is left to train on.
        OutputExistsError: the folder holds something already.
        StoreError: another run writes there.
        TrainingError: the training stopped on an error.
    """
    need("train")
    refuse(config)
    options, progress = options or TrainOptions(), progress or Silent()
    _check_python(config, options.allow_python)
    config = config.resolved()
    task_evaluation(config, options.scoring)
    target = Path(out)
    target.parent.mkdir(parents=True, exist_ok=True)
    if config.launch.machine_rank > 0:
        return _follow(config, target, options, progress)
    with holding(target):
        return _train(config, target, options, progress)


def _check_python(config: TrainConfig, allowed: bool) -> None:
    """Check that code which the configuration names may run."""
    if config.method == "grpo":
        check_python(config.grpo, allowed)
    tried = config.evaluate.env if config.evaluate is not None else None
    if tried is not None and CODE_NAME.match(tried) and not allowed:
        raise UsageError(
            f"the environment {tried} is Python code; add --allow-python when you trust it"
        )


def _train(config: TrainConfig, out: Path, options: TrainOptions, progress: Progress) -> Trained:
    _check_out(config, out, options)
    work = out / WORK
    work.mkdir(parents=True, exist_ok=True)
    job = {
        "hash": config.hash(),
        "config": config.model_dump(mode="json"),
        "shown": options.shown,
        "scoring": options.scoring,
    }
    write_atomic(work / JOB, json.dumps(job) + "\n")
    try:
        plan = _rows(config, work, progress)
        if options.strict:
            check_drops(plan.dropped, plan.notes)
    except AdpError:
        if not options.resume:
            shutil.rmtree(out if not (out / DATA).exists() else work)
        raise
    if config.is_tiny and not (out / "base").exists():
        shutil.copytree(work / ROWS / "base", out / "base")
    if options.reporter is not None:
        options.reporter(plan)
    began = time.monotonic()
    exact = Precision.from_plain(plan.precision).applied(config)
    if config.launch.processes > 1 or config.launch.zero or config.launch.fsdp:
        launch(exact, out)
    else:
        train_here(exact, out, options.steps, options.scoring)
    seconds = time.monotonic() - began
    seal_rollouts(out)
    record = write_record(config, plan, out, options.command, seconds)
    clear(out)
    return Trained(plan, record)


_PATIENCE = 3600.0
"""Seconds that a machine waits for the rows of machine 0."""


def _follow(config: TrainConfig, out: Path, options: TrainOptions, progress: Progress) -> Trained:
    """Train with machine 0, which prepares the rows and writes the result.

    Raises:
        UsageError: machine 0 has another configuration, or its rows do not come.
    """
    work = out / WORK
    progress.status("waiting for the rows of machine 0")
    began = time.monotonic()
    while not ((work / PLAN).exists() and (work / ROWS).exists()):
        if time.monotonic() - began > _PATIENCE:
            raise UsageError(
                f"no rows of machine 0 came to {out}; start it too, with the same OUT in a folder "
                "that all machines see"
            )
        time.sleep(0.2)
    job = json.loads((work / JOB).read_text(encoding="utf-8"))
    if job["hash"] != config.hash():
        raise UsageError("machine 0 trains with another configuration; give the same to all")
    plan = TrainingPlan.from_plain(json.loads((work / PLAN).read_text(encoding="utf-8")))
    if options.reporter is not None:
        options.reporter(plan)
    launch(Precision.from_plain(plan.precision).applied(config), out)
    return Trained(plan)


def _check_out(config: TrainConfig, out: Path, options: TrainOptions) -> None:
    """Check that the folder is new, or holds the run that is to be resumed."""
    # A run that was killed at its very beginning left no more than these.
    first = {out / WORK, out / WORK / f"{JOB}.tmp"}
    there = set(out.iterdir()) - {out / DATA} if out.exists() else set()
    if not there - first and set((out / WORK).glob("*")) <= first:
        return
    if not options.resume:
        hint = "; --resume goes on with the run that it holds" if (out / WORK).exists() else ""
        raise OutputExistsError(f"{out} is there already{hint or '; choose another name'}")
    if (out / RECORD).exists():
        raise OutputExistsError(f"the run in {out} is finished; choose another name for a new one")
    try:
        job = json.loads((out / WORK / JOB).read_text(encoding="utf-8"))
        old = TrainConfig.model_validate(job["config"])
    except (OSError, ValueError, KeyError):
        raise UsageError(f"{out} holds no run that could be resumed") from None
    if old.hash() != config.hash():
        names = ", ".join(_differences(old.plain(), config.plain()))
        raise UsageError(f"the run in {out} was started with another {names}; give the same again")


def _differences(old: dict[str, Any], new: dict[str, Any], above: str = "") -> list[str]:
    """Paths at which two configurations differ."""
    differences: list[str] = []
    for name in sorted({*old, *new}):
        result, other = old.get(name), new.get(name)
        if isinstance(result, dict) and isinstance(other, dict):
            differences += _differences(result, other, f"{above}{name}.")
        elif result != other:
            differences.append(f"{above}{name}")
    return differences


def _rows(config: TrainConfig, work: Path, progress: Progress) -> TrainingPlan:
    """The rows of a run: those that are there, when it is resumed and the store is the same."""
    plan_file, rows = work / PLAN, work / ROWS
    old = None
    if plan_file.exists():
        old = TrainingPlan.from_plain(json.loads(plan_file.read_text(encoding="utf-8")))
        if rows.exists():
            return old
    shutil.rmtree(rows, ignore_errors=True)
    staged = work / "staged"
    shutil.rmtree(staged, ignore_errors=True)
    staged.mkdir()
    plan = _prepare(config, staged, progress)
    if config.is_tiny:
        with quiet():
            build_tiny(staged / "base", config.model.tiny)
    if old is not None and old.facts != plan.facts:
        what = (
            "environment or the tasks are others"
            if "tasks" in plan.facts
            else "store is another one"
        )
        raise UsageError(f"the {what} now; start a new run in another folder")
    if old is not None:
        # A run does not change its number format where it goes on on another machine.
        plan.precision = old.precision
    write_atomic(plan_file, json.dumps(plan.plain()) + "\n")
    staged.rename(rows)
    return plan


def _prepare(config: TrainConfig, folder: Path, progress: Progress) -> TrainingPlan:
    plan = METHODS.get(config.method).prepare(config, folder, progress)
    plan.steps = _steps(config, plan.sequences)
    plan.precision = choose(config).plain()
    plan.warnings += cautions(config, this_machine())
    room = context_length(config)
    if room is not None and plan.longest > room:
        plan.notes[f"tokens beyond the {room:,} that the model was made for (longest row)"] = (
            plan.longest - room
        )
    return plan


def _steps(config: TrainConfig, sequences: int) -> int:
    """Optimiser steps, counted as transformers does."""
    training = config.training
    if training.max_steps > 0:
        return training.max_steps
    batches = math.ceil(sequences / training.per_device_train_batch_size)
    steps = math.ceil(batches / config.launch.processes)
    updates = max(math.ceil(steps / training.gradient_accumulation_steps), 1)
    return math.ceil(training.num_train_epochs * updates)


__all__ = ["CHECKPOINTS", "DATA", "TrainOptions", "Trained", "last_checkpoint", "plan_run", "train"]
