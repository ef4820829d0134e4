"""One process of a training: builds the trainer, trains, and the first one saves.

Under a launcher it is ``python -m adp.trainers.training_process FOLDER``.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from adp.core.progress import ConsoleProgress, Progress, Silent
from adp.trainers.config import TrainConfig
from adp.trainers.evaluation.history import stops_early
from adp.trainers.library_output import quiet
from adp.trainers.method import METHODS
from adp.trainers.precision import Precision
from adp.trainers.replay import write_buffer
from adp_schema.errors import AdpError, MissingExtraError, TrainingError
from adp_schema.manifest import write_atomic

JOB, PLAN, ROWS, FAULT, RESULT = "job.json", "plan.json", "rows", "fault.json", "result.json"
"""Files of a run that is under way, and the folder of its rows, in ``work``."""

WORK, CHECKPOINTS, ADAPTER, MODEL = "work", "checkpoints", "adapter", "model"
"""Folders of a run."""


def train_here(
    config: TrainConfig, out: Path, progress: Progress, scoring: str | None = None
) -> None:
    """Train in this process.

    Args:
        config: checked, with the number format written out.
        out: folder of the run, with its rows; a checkpoint in it is gone on from.
        progress: told about each step.
        scoring: what gives the figures of ``evaluate.scorers``, as ``module:function``.

    Raises:
        TrainingError: it stopped on an error.
    """
    progress.status("loading the libraries")
    from transformers import enable_full_determinism, set_seed

    from adp.trainers.arguments import common_arguments
    from adp.trainers.metrics import Metrics

    _tensorboard(config, out)
    seed = config.training.seed
    if config.training.full_determinism:
        enable_full_determinism(seed)
    else:
        set_seed(seed)
    rows = out / WORK / ROWS
    with _error_text(), quiet():
        callbacks = [Metrics(out, progress), *_evaluation(config, out, progress, scoring)]
        args = common_arguments(config, out)
        progress.status("loading the model")
        trainer = METHODS.get(config.method).trainer(config, rows, args, callbacks)
        for callback in callbacks:
            callback.trainer = trainer
        for callback in list(trainer.callback_handler.callbacks):
            if type(callback).__name__ in ("PrinterCallback", "ProgressCallback"):
                trainer.remove_callback(callback)
        before = last_checkpoint(out)
        if before is not None and _stopped(config, before):
            # It was stopped between its end and its record: not a step more is trained.
            trainer.args.max_steps = _state(before)["global_step"]
        trainer.train(resume_from_checkpoint=None if before is None else str(before))
        _save(trainer, config, out)
    if trainer.is_world_process_zero():
        if config.evaluate is not None:
            _keep_best(trainer, config, out)
        _write_result(trainer, out)


def _evaluation(
    config: TrainConfig, out: Path, progress: Progress, scoring: str | None
) -> list[Any]:
    """The callbacks that try the model on tasks, and that stop early."""
    callbacks: list[Any] = []
    if config.evaluate is not None:
        from adp.trainers.evaluation.callbacks import EvaluationCallback
        from adp.trainers.evaluation.tasks import task_evaluation

        tasks = task_evaluation(config, scoring)
        assert tasks is not None
        callbacks.append(EvaluationCallback(tasks, out, out / WORK, progress))
    if config.early_stopping is not None:
        from adp.trainers.evaluation.callbacks import StoppingCallback

        callbacks.append(StoppingCallback(config, progress))
    return callbacks


def _keep_best(trainer: Any, config: TrainConfig, out: Path) -> None:
    """Put the best model to its place, with the tokenizer and the name of its base."""
    from adp.trainers.evaluation.callbacks import BEST, keep_best

    keep_best(config, trainer.state.log_history, out, out / WORK)
    _name_base(out / BEST / "adapter_config.json", config)


def _state(checkpoint: Path) -> dict[str, Any]:
    """What transformers wrote of the state of a training."""
    text = (checkpoint / "trainer_state.json").read_text(encoding="utf-8")
    state: dict[str, Any] = json.loads(text)
    return state


def _stopped(config: TrainConfig, checkpoint: Path) -> bool:
    """Whether the training was to end at a checkpoint, by early stopping."""
    return stops_early(config, _state(checkpoint).get("log_history", [])) is not None


def last_checkpoint(out: Path) -> Path | None:
    """The newest whole checkpoint; what a kill left half written is not one."""
    results = []
    for path in (out / CHECKPOINTS).glob("checkpoint-*"):
        number = path.name.rpartition("-")[2]
        # transformers writes this file last.
        if number.isdigit() and _parses(path / "trainer_state.json"):
            results.append((int(number), path))
    return max(results)[1] if results else None


def _parses(path: Path) -> bool:
    try:
        json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return True


def _save(trainer: Any, config: TrainConfig, out: Path) -> None:
    """Save the adapter, or the whole model, and the tokenizer."""
    from adp.trainers.lora import save_adapter

    adapter = config.lora is not None or config.model.adapter_name_or_path is not None
    target = out / (ADAPTER if adapter else MODEL)
    converts = config.lora is not None and config.lora.changes_base
    if converts and config.model.adapter_name_or_path is None:
        if trainer.is_world_process_zero():
            model = trainer.accelerator.unwrap_model(trainer.model)
            save_adapter(model, target, out / WORK / ROWS)
            trainer.processing_class.save_pretrained(str(target))
    else:
        trainer.save_model(str(target))
    if trainer.is_world_process_zero():
        # One holds the arguments as a pickle, with paths; the other is an empty form.
        for name in ("training_args.bin", "README.md"):
            (target / name).unlink(missing_ok=True)
        _name_base(target / "adapter_config.json", config)


def _name_base(path: Path, config: TrainConfig) -> None:
    """Let an adapter name its base as the configuration does, not by a folder of this run."""
    if path.exists():
        plain = json.loads(path.read_text(encoding="utf-8"))
        name = config.model.model_name_or_path
        # A folder is found again from anywhere only by its whole path.
        place = Path(name)
        local = not config.is_tiny and place.is_dir()
        plain["base_model_name_or_path"] = str(place.resolve()) if local else name
        plain["revision"] = config.model.model_revision
        write_atomic(path, json.dumps(plain, indent=2) + "\n")


def _write_result(trainer: Any, out: Path) -> None:
    import torch

    state = trainer.state
    peak = torch.cuda.max_memory_allocated() if torch.cuda.is_available() else None
    results = {
        "steps": state.global_step,
        "epochs": state.epoch,
        "log": state.log_history,
        "peak_gpu_bytes": peak,
        "parameters": sum(parameter.numel() for parameter in trainer.model.parameters()),
        "trained_parameters": sum(
            parameter.numel() for parameter in trainer.model.parameters() if parameter.requires_grad
        ),
    }
    write_buffer(out / WORK / ROWS, out, state.global_step)
    write_atomic(out / WORK / RESULT, json.dumps(results) + "\n")


def _tensorboard(config: TrainConfig, out: Path) -> None:
    import importlib.util

    if not config.report.tensorboard:
        return
    if not any(importlib.util.find_spec(name) for name in ("tensorboard", "tensorboardX")):
        raise MissingExtraError("tensorboard", "tensorboard")
    os.environ["TENSORBOARD_LOGGING_DIR"] = str(out / "tensorboard")


@contextmanager
def _error_text() -> Iterator[None]:
    """Say what stops a training in one sentence."""
    import torch

    try:
        yield
    except AdpError:
        raise
    except torch.OutOfMemoryError as error:
        raise TrainingError(
            "the memory of the GPU is full; use a smaller render.max_length or "
            "training.per_device_train_batch_size, model.load_in_4bit, or --launch N --zero 3 "
            f"({str(error).splitlines()[0]})"
        ) from error
    except (ValueError, RuntimeError, OSError) as error:
        text = " ".join(str(error).split())
        raise TrainingError(f"the training stopped: {text or repr(error)}") from error


def main(arguments: list[str]) -> int:
    """Train as one of several processes. The first one tells the progress and the fault.

    Args:
        arguments: the folder of the run.
    """
    warnings.filterwarnings("ignore", category=FutureWarning)
    out = Path(arguments[0])
    first = os.environ.get("RANK", "0") == "0"
    job = json.loads((out / WORK / JOB).read_text(encoding="utf-8"))
    plan = json.loads((out / WORK / PLAN).read_text(encoding="utf-8"))
    config = Precision.from_plain(plan["precision"]).applied(
        TrainConfig.model_validate(job["config"])
    )
    try:
        with (
            ConsoleProgress("training", "steps") if first and job["shown"] else Silent() as progress
        ):
            train_here(config, out, progress, job.get("scoring"))
    except AdpError as error:
        plain = {"error": str(error), "exit_code": error.exit_code}
        write_atomic(out / WORK / FAULT, json.dumps(plain) + "\n")
        return error.exit_code
    finally:
        _leave_group()
    return 0


def _leave_group() -> None:
    import torch.distributed as group

    if group.is_available() and group.is_initialized():
        group.destroy_process_group()


def clear(out: Path) -> None:
    """Remove what only a run that is under way needs."""
    shutil.rmtree(out / WORK, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
