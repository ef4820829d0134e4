"""More combinations that go wrong: trials during the training, FSDP, several machines, kernels.

As those of `adp.trainers.incompatible`: each rule is one sentence, or nothing.
"""

from __future__ import annotations

from collections.abc import Callable

from adp.trainers.config import TrainConfig
from adp.trainers.evaluation.history import stopping_metric
from adp.trainers.machine import Machine


def _evaluate(config: TrainConfig, machine: Machine) -> str | None:
    section, launch = config.evaluate, config.launch
    if section is None:
        return None
    if launch.zero or launch.fsdp:
        return (
            "evaluate tries the model in one process, and ZeRO and FSDP split it over all; leave "
            "out evaluate, or train with --launch alone"
        )
    if section.keep_best and config.lora is not None and config.lora.changes_base:
        return (
            f"{config.lora.init_lora_weights} converts its adapter at the end of a run, so no "
            "other one can be kept; set evaluate.keep_best: false"
        )
    if section.suite is None and section.env is None:
        return "evaluate says nothing to try the model on; give evaluate.env or evaluate.suite"
    return None


def _early_stopping(config: TrainConfig, machine: Machine) -> str | None:
    if config.early_stopping is None:
        return None
    metric = stopping_metric(config)
    if metric != "loss" and config.evaluate is None:
        return (
            f"early_stopping watches {metric}, which nothing measures; give the section evaluate, "
            "or watch the loss of held-out rows: early_stopping.metric: loss"
        )
    if metric == "loss" and (not config.evaluates or config.training.eval_strategy == "no"):
        return (
            "early_stopping watches the loss of held-out rows, and there are none to measure; give "
            "data.eval_store or data.eval_share"
        )
    return None


RUN_RULES: tuple[Callable[[TrainConfig, Machine], str | None], ...] = (_evaluate, _early_stopping)
"""These rules, in the order in which they are told."""
