"""What the log of a training says of its figures: which was the best, and whether to go on.

All of it is read from the log, which a checkpoint holds: a run that is resumed decides as one that
was never stopped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from adp.trainers.config import TrainConfig

Log = Sequence[dict[str, Any]]
"""Entries with ``step`` and values by name."""


@dataclass(frozen=True)
class Measured:
    """A figure at a step.

    Attributes:
        step: steps that were trained before.
        value: the figure.
    """

    step: int
    value: float


@dataclass(frozen=True)
class Gain:
    """How a figure went.

    Attributes:
        best: the best measurement; of equal ones the first.
        without: measurements since the last one that gained enough.
    """

    best: Measured | None
    without: int


FALLING = frozenset({"truncated", "broken", "error"})


def falls(metric: str) -> bool:
    """Whether less of a figure is better."""
    return metric.endswith("loss") or metric in FALLING


def measured(log: Log, metric: str) -> list[Measured]:
    """The measurements of a figure, a single one for each step."""
    name = f"eval_{metric}"
    values = {entry["step"]: float(entry[name]) for entry in log if name in entry}
    return [Measured(step, value) for step, value in sorted(values.items())]


def gain(log: Log, metric: str, min_delta: float = 0.0) -> Gain:
    """How a figure went over the steps.

    Args:
        log: of the training.
        metric: name of the figure.
        min_delta: what must be gained to count.
    """
    sign = -1.0 if falls(metric) else 1.0
    best: Measured | None = None
    reference: float | None = None
    without = 0
    for item in measured(log, metric):
        if best is None or sign * item.value > sign * best.value:
            best = item
        if reference is None or sign * (item.value - reference) > min_delta:
            reference, without = item.value, 0
        else:
            without += 1
    return Gain(best, without)


def stopping_metric(config: TrainConfig) -> str:
    """The figure that early stopping watches."""
    section = config.early_stopping
    if section is not None and section.metric is not None:
        return section.metric
    return config.evaluate.metric if config.evaluate is not None else "loss"


def stops_early(config: TrainConfig, log: Log) -> str | None:
    """Why a training is to end now; None when it goes on.

    Args:
        config: the run.
        log: of the training so far.
    """
    section = config.early_stopping
    if section is None:
        return None
    metric = stopping_metric(config)
    state = gain(log, metric, section.min_delta)
    if state.best is None or state.without < section.patience:
        return None
    more = f" by more than {section.min_delta:g}" if section.min_delta else ""
    return (
        f"{metric} has not become better{more} in {state.without} measurements; the best is "
        f"{state.best.value:.4g} at step {state.best.step:,}"
    )


def summary(config: TrainConfig, log: Log) -> dict[str, Any]:
    """What the record of a run says of its figures: each evaluation, the best one, the stop."""
    result: dict[str, Any] = {}
    section = config.evaluate
    if section is not None:
        steps = sorted({entry["step"] for entry in log if "eval_episodes" in entry})
        result["evaluations"] = [
            {"step": step, **_figures(log, step)} for step in steps
        ]  # fmt: skip
        best = gain(log, section.metric).best
        if best is not None:
            folder = {"folder": "best"} if section.keep_best else {}
            result["best"] = {"metric": section.metric, **vars(best), **folder}
    reason = stops_early(config, log)
    if reason is not None:
        result["stopped_early"] = reason
    return result


def _figures(log: Log, step: int) -> dict[str, float]:
    """The figures of an evaluation."""
    figures: dict[str, float] = {}
    for entry in log:
        if entry["step"] == step and "eval_episodes" in entry:
            figures = {
                name.removeprefix("eval_"): value
                for name, value in entry.items()
                if name.startswith("eval_")
            }
    return figures
