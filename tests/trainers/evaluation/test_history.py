"""How a figure went, compared with a slow reading of the rule."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adp.trainers.config import TrainConfig
from adp.trainers.evaluation.history import gain, stops_early, summary

VALUES = st.lists(st.integers(0, 8).map(lambda n: n / 8), max_size=12)


def _log(values: list[float], name: str = "eval_success") -> list[dict[str, Any]]:
    log: list[dict[str, Any]] = []
    for place, value in enumerate(values):
        log += [{"step": 10 * place, "loss": 1.0}, {"step": 10 * place, name: value}]
    return log


@given(VALUES, st.sampled_from([0.0, 0.1, 0.25]))
def test_a_gain_is_what_the_rule_says(values: list[float], delta: float) -> None:
    result = gain(_log(values), "success", delta)
    if not values:
        assert (result.best, result.without) == (None, 0)
        return
    assert result.best is not None
    assert result.best.value == max(values)
    assert result.best.step == 10 * values.index(max(values))
    # The measurements after the last one that was better than all that counted before it.
    counted = [0]
    for place in range(1, len(values)):
        if values[place] > values[counted[-1]] + delta:
            counted.append(place)
    assert result.without == len(values) - 1 - counted[-1]


@given(VALUES, st.sampled_from([0.0, 0.25]))
def test_a_loss_is_the_figure_the_other_way_round(values: list[float], delta: float) -> None:
    up = gain(_log(values), "success", delta)
    down = gain(_log([-value for value in values], "eval_loss"), "loss", delta)
    assert (up.best is None) == (down.best is None)
    assert up.without == down.without
    if up.best is not None and down.best is not None:
        assert (up.best.step, up.best.value) == (down.best.step, -down.best.value)


def test_a_training_ends_after_as_many_measurements_without_a_gain() -> None:
    config = TrainConfig.model_validate(
        {"early_stopping": {"patience": 2, "min_delta": 0.1}, "evaluate": {"env": "calculator"}}
    )
    assert stops_early(config, _log([0.2, 0.5, 0.55])) is None
    reason = stops_early(config, _log([0.2, 0.5, 0.55, 0.4]))
    assert reason == (
        "success has not become better by more than 0.1 in 2 measurements; the best is 0.55 at "
        "step 20"
    )
    assert stops_early(config, _log([0.2, 0.5, 0.55, 0.7])) is None


def test_a_record_names_the_evaluations_and_the_best() -> None:
    config = TrainConfig.model_validate({"evaluate": {"env": "calculator"}})
    log = [
        {"step": 0, "eval_episodes": 4.0, "eval_success": 0.25},
        {"step": 5, "loss": 1.0},
        {"step": 5, "eval_episodes": 4.0, "eval_success": 0.75},
        {"step": 9, "eval_episodes": 0.0},
    ]
    assert summary(config, log) == {
        "evaluations": [
            {"step": 0, "episodes": 4.0, "success": 0.25},
            {"step": 5, "episodes": 4.0, "success": 0.75},
            {"step": 9, "episodes": 0.0},
        ],
        "best": {"metric": "success", "step": 5, "value": 0.75, "folder": "best"},
    }


@pytest.mark.parametrize("name", ["loss", "outcome.loss", "truncated", "broken"])
def test_of_some_figures_less_is_better(name: str) -> None:
    best = gain(_log([0.5, 0.25, 0.75], f"eval_{name}"), name).best
    assert best is not None
    assert best.step == 10
