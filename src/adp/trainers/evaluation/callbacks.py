"""Callbacks of the trainer: trying the model on tasks, keeping the best one, stopping early."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

from transformers import Trainer, TrainerCallback  # noqa: TID253 - only imported by a training

from adp.core.progress import Progress
from adp.trainers.config import TrainConfig
from adp.trainers.evaluation.history import gain, stops_early
from adp.trainers.evaluation.tasks import EVALUATIONS, TaskEvaluation
from adp_schema.errors import RolloutError

BEST = "best"
"""Folder of the best model; in ``work`` those that may become it."""


class EvaluationCallback(TrainerCallback):  # type: ignore[misc]
    """Tries the model every so many steps, and once more at the end.

    The first process tries it; the others wait, and hear the figures.

    Args:
        evaluation: the tasks.
        out: folder of the run.
        work: folder for what only a run that is under way needs.
        progress: told about it.
    """

    def __init__(
        self, evaluation: TaskEvaluation, out: Path, work: Path, progress: Progress
    ) -> None:
        self._evaluation = evaluation
        self._out, self._kept = out, work / BEST
        self._progress = progress
        self.trainer: Any = None

    def on_train_begin(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        """Forget what was tried after the checkpoint that the run goes on from."""
        if state.is_world_process_zero:
            _forget_later((self._out / EVALUATIONS, self._kept), state.global_step)
        if state.global_step == 0 and self._evaluation.section.at_start:
            self._evaluate(state, control)

    def on_step_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        """Try the model when it is time to."""
        if state.global_step % self._evaluation.section.every_steps == 0:
            self._evaluate(state, control)

    def on_train_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        """Try the model as it is saved, unless that was done."""
        log = state.log_history
        if not any(
            "eval_episodes" in entry and entry["step"] == state.global_step for entry in log
        ):
            self._evaluate(state, control)

    def on_save(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        """Drop models that cannot become the best any more: the checkpoint knows a better one."""
        best = gain(state.log_history, self._evaluation.section.metric).best
        if best is not None and state.is_world_process_zero:
            for folder in self._kept.glob("step-*"):
                if folder.name != f"step-{best.step}":
                    shutil.rmtree(folder, ignore_errors=True)

    def _evaluate(self, state: Any, control: Any) -> None:
        from accelerate.utils import broadcast_object_list

        step = state.global_step
        shared = [self._figures(step) if state.is_world_process_zero else None]
        figures = broadcast_object_list(shared)[0]
        # Logging takes back the wish for the line of the step itself.
        wanted = control.should_log
        # TRL's own `log` would close the averages of the steps since its last line.
        Trainer.log(self.trainer, {f"eval_{name}": value for name, value in figures.items()})
        control.should_log = wanted
        best = gain(state.log_history, self._evaluation.section.metric).best
        keeps = self._evaluation.section.keep_best and best is not None and best.step == step
        if keeps and state.is_world_process_zero:
            _save(self.trainer, self._kept / f"step-{step}")

    def _figures(self, step: int) -> dict[str, float]:
        self._progress.status(f"trying the model of step {step:,}")
        model = self.trainer.accelerator.unwrap_model(self.trainer.model)
        out = self._out / EVALUATIONS / f"step-{step}"
        try:
            figures = self._evaluation.run(model, self.trainer.processing_class, out)
        except RolloutError as error:
            # A world that is broken for now must not cost a training of hours.
            self._progress.note(f"step {step:,} could not be evaluated: {error}")
            return {"episodes": 0.0, "broken": float(len(self._evaluation.tasks))}
        if figures["broken"]:
            self._progress.note(
                f"step {step:,}: {figures['broken']:,.0f} of {figures['episodes']:,.0f} episodes "
                "broke, and are in no figure"
            )
        return figures


class StoppingCallback(TrainerCallback):  # type: ignore[misc]
    """Ends the training when its figure gains nothing more.

    Args:
        config: the run.
        progress: told why.
    """

    def __init__(self, config: TrainConfig, progress: Progress) -> None:
        self._config = config
        self._progress = progress

    def on_log(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        """Look at a new measurement."""
        if not any(name.startswith("eval_") for name in state.log_history[-1]):
            return
        reason = stops_early(self._config, state.log_history)
        if reason is not None and not control.should_training_stop:
            control.should_training_stop = True
            if state.is_world_process_zero:
                self._progress.note(f"stopped at step {state.global_step:,}: {reason}")


def keep_best(config: TrainConfig, log: Any, out: Path, work: Path) -> None:
    """Put the best model to its place, at the end of a run.

    Args:
        config: the run.
        log: of the whole training.
        out: folder of the run.
        work: as for the callback.
    """
    section = config.evaluate
    if section is None or not section.keep_best:
        return
    best = gain(log, section.metric).best
    if best is None:
        return
    kept = work / BEST / f"step-{best.step}"
    if kept.exists():
        shutil.rmtree(out / BEST, ignore_errors=True)
        kept.rename(out / BEST)


def _save(trainer: Any, target: Path) -> None:
    """Save the model as it is; a folder is there as a whole or not at all."""
    part = target.with_name(f"{target.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    trainer.save_model(str(part))
    for name in ("training_args.bin", "README.md"):
        (part / name).unlink(missing_ok=True)
    shutil.rmtree(target, ignore_errors=True)
    part.rename(target)


def _forget_later(folders: tuple[Path, ...], step: int) -> None:
    for folder in folders:
        for path in folder.glob("step-*"):
            number = re.fullmatch(r"step-(\d+)", path.name)
            if number is None or int(number[1]) > step:
                shutil.rmtree(path, ignore_errors=True)
