"""Suites of `adp.eval` for trials during a training: their tasks, and the figures of scorers.

config = with_suite(config)
train(config, out, TrainOptions(scoring=SCORING))
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from adp.eval.scoring import ScoreOptions, choose_named, score_store
from adp.eval.suite import Suite, read_suite
from adp.rollouts.spec import split_named
from adp.trainers.config import TrainConfig
from adp.trainers.config_run import EvaluateSection
from adp_schema.errors import UsageError
from adp_schema.store import Store

SCORING = "adp.workflows.training_suite:scorer_figures"
"""What the processes of a training call for the figures of scorers."""


def with_suite(config: TrainConfig) -> TrainConfig:
    """The configuration in which the suite of ``evaluate`` is written out, and scorers are known.

    Raises:
        UsageError: there is no such suite or scorer, or the suite cannot be used here.
        InputError: its file cannot be read.
    """
    section = config.evaluate
    if section is None:
        return config
    if section.suite is not None:
        section = _filled(section, read_suite(section.suite))
    if section.scorers:
        choose_named([], section.scorers)
    return config.model_copy(update={"evaluate": section})


def _filled(section: EvaluateSection, suite: Suite) -> EvaluateSection:
    """The section, with what it leaves to the suite."""
    given: dict[str, Any] = {
        "env": _spec(suite.environment),
        "tasks": suite.tasks,
        "split": suite.split,
        "n": suite.n,
        "seed": suite.seed,
        "limits": suite.limits,
        "scorers": tuple(_spec(scorer) for scorer in suite.scorers),
    }
    stated = section.model_fields_set
    more = {
        name: value
        for name, value in given.items()
        if name not in stated or getattr(section, name) is None
    }
    return section.model_copy(update=more)


def _spec(named: Any) -> str:
    """A named thing as people write it in one word."""
    name, more = split_named(named)
    if not more:
        return name
    if ":" in name:
        raise UsageError(f"write the settings of {name} in one place, for evaluate")
    parts = []
    for key, value in more.items():
        if isinstance(value, str | int | float) and "," not in str(value):
            parts.append(f"{key}={str(value).lower() if isinstance(value, bool) else value}")
        else:
            raise UsageError(
                f"{name}: {key} cannot be given to evaluate; write the suite's "
                f"{name} as {name}:key=value"
            )
    return f"{name}:{','.join(parts)}"


def scorer_figures(place: Path, scorers: Sequence[str]) -> dict[str, float]:
    """The figures of scorers over a store, as far as they have a value.

    A figure that several scorers give is named ``scorer.figure`` but for the first one.

    Args:
        place: folder of the store.
        scorers: as people write them.
    """
    report = score_store(Store.open(str(place)), choose_named([], scorers), ScoreOptions())
    figures: dict[str, float] = {}
    for scorer in report.scorers:
        for figure in scorer.figures:
            if figure.value is not None:
                taken = figure.name in figures
                name = f"{scorer.scorer}.{figure.name}" if taken else figure.name
                figures[name] = float(figure.value)
    return figures
