"""M3's report about an agent: how runs end, its errors, its actions, its recoveries, its help.

Source: m3-train-eval, ``agent_perf_analysis.py`` and ``metrics/utils.py``. The figures come out of
converted runs of M3 and of our own rollouts, by the same code.

- ``run_length``, ``completion``, ``truncation``, ``termination``: steps, and how runs end.
- ``errors``: observations that are errors, by their mark or by their first word, as in M3.
  ``errors:prefix:NAME`` and ``errors:type:NAME`` are counts over all runs. M3 has the first; the
  first word may be a long one where a text has no colon.
- ``actions_api``, ``_retrieve``, ``_final``, ``_other``: steps of each kind; ``:std`` is the
  population's standard deviation, ``:successful`` looks at successful runs alone.
- ``scenario_followed``: whether the kinds of actions stand in the order of the scenario.
- ``first_help``, ``helps``: index of the first step of the expert, and how many there are.
  ``unaided_stretch``: mean length of the stretches without help, over all of them.
- ``recoveries``: streaks of errors that a valid step ended; ``steps_to_recover``: their length.

M3 does not count a good call as valid, because the category has another name since; so each
ordinary call is an error there. ``m3_recovery=true`` gives those figures.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from adp.eval.metrics import mean_figures, ratio_figure
from adp.eval.metrics.metric_scores import task_of
from adp.eval.scorer import Figure, Item, Score, Scored, ScorerKind
from adp.eval.scorers.base import PerTrajectory, scored, unscored
from adp.eval.scorers.m3_reading import (
    KINDS,
    M3Action,
    actions_of,
    recoveries,
    scenario_of,
    tracker_of,
    unaided,
)
from adp.rollouts.collecting.attempts import is_attempt
from adp.rollouts.environment import Settings
from adp.rollouts.environments.m3_scenario import RETRIEVE, followed
from adp_schema.model import Trajectory

ENDS = {"completion": "success", "truncation": "truncated", "termination": "terminated"}
ACTIONS = tuple(f"actions_{kind.lower()}" for kind in KINDS)
HELP = ("first_help", "helps", "unaided_steps", "unaided_stretches")
RECOVERY = ("recoveries", "recovery_steps")


class M3ScorerSettings(Settings):
    """Settings of the scorer ``m3``."""

    scenario: str | None = None
    """Scenario of all runs; none: what each run says."""
    retrievers: tuple[str, ...] = (RETRIEVE,)
    """Tools that retrieve documents."""
    m3_recovery: bool = False
    """As in M3's code, a good call does not end a streak of errors."""


class M3Scorer(PerTrajectory):
    """M3's figures.

    Args:
        settings: its settings.
    """

    name = "m3"
    metrics = (
        *("run_length", *ENDS, "errors", *ACTIONS),
        *("scenario_followed", *HELP, *RECOVERY),
    )
    amounts = frozenset({"run_length", "errors", *ACTIONS, *HELP, *RECOVERY})

    def __init__(self, settings: M3ScorerSettings | None = None) -> None:
        self.settings = settings or M3ScorerSettings()

    def measure(self, item: Item) -> Sequence[Score]:
        """Score a run; a turn that was not taken is none."""
        run = item.trajectory
        if run.branch_kind is not None and not is_attempt(run):
            return unscored(self.metrics, f"a branch ({run.branch_kind}) is no run by itself")
        valid = not self.settings.m3_recovery
        actions = actions_of(run, self.settings.retrievers, calls_are_valid=valid)
        if not actions:
            return unscored(self.metrics, "nobody acted")
        return [
            scored("run_length", len(actions)),
            *(_truth(name, getattr(run, column), column) for name, column in ENDS.items()),
            _errors(actions),
            *_actions(actions),
            self._scenario(run, actions),
            *_help(run, actions),
            *_recovery(actions),
        ]

    def _scenario(self, run: Trajectory, actions: Sequence[M3Action]) -> Score:
        scenario = self.settings.scenario or scenario_of(run)
        if scenario is None:
            return Score("scenario_followed", None, "the run names no scenario")
        kinds = [action.kind for action in actions]
        return scored("scenario_followed", followed(scenario, kinds), {"scenario": scenario})

    def figures(self, rows: Sequence[Scored]) -> Sequence[Figure]:
        """Means with intervals, and what is counted over all runs."""
        solved = {
            row.trajectory_id
            for row in rows
            if row.score.metric == "completion" and row.score.value == 1
        }
        good = [row for row in rows if row.trajectory_id in solved]
        figures = list(super().figures(rows))
        for name in ACTIONS:
            figures.append(_deviation(rows, name, _value))
            (mean,) = mean_figures(good, [name], self.intervals, self.amounts)
            figures.append(_renamed(mean, "successful"))
            figures.append(_renamed(_deviation(good, name, _value), "successful"))
        (followed_by_good,) = mean_figures(good, ["scenario_followed"], self.intervals)
        figures.append(_renamed(followed_by_good, "successful"))
        figures.append(
            ratio_figure(
                rows,
                "unaided_steps",
                "unaided_stretches",
                "unaided_stretch",
                self.intervals,
                amount=True,
            )
        )
        for some, ending in ((rows, None), (good, "successful")):
            mean = ratio_figure(
                some,
                "recovery_steps",
                "recoveries",
                "steps_to_recover",
                self.intervals,
                amount=True,
            )
            spread = _deviation(some, "recoveries", _lengths, "steps_to_recover")
            figures += [_renamed(mean, ending), _renamed(spread, ending)]
        return [*figures, *_profile(rows)]


# ---- one run -------------------------------------------------------------------------------


def _truth(metric: str, value: bool | None, column: str) -> Score:
    if value is None:
        return Score(metric, None, f"the run does not tell whether it is '{column}'")
    return scored(metric, value)


def _errors(actions: Sequence[M3Action]) -> Score:
    prefixes = Counter(name for action in actions for name in action.prefixes)
    types = Counter(name for action in actions for name in action.types)
    evidence = {"prefix": dict(sorted(prefixes.items())), "type": dict(sorted(types.items()))}
    return scored("errors", sum(action.errors for action in actions), evidence)


def _actions(actions: Sequence[M3Action]) -> list[Score]:
    counts = Counter(action.kind for action in actions)
    return [scored(name, counts[kind]) for name, kind in zip(ACTIONS, KINDS, strict=True)]


def _help(run: Trajectory, actions: Sequence[M3Action]) -> list[Score]:
    tracker, recovered = tracker_of(run, actions)
    if tracker is None:
        return unscored(HELP, recovered)
    stretches = unaided(tracker)
    evidence = {"tracker": tracker, "from": recovered}
    first = Score("first_help", None, "the expert did not help", evidence)
    if 1 in tracker:
        first = scored("first_help", tracker.index(1), evidence)
    return [
        first,
        scored("helps", sum(tracker), evidence),
        scored("unaided_steps", sum(stretches)),
        scored("unaided_stretches", len(stretches), {"lengths": stretches}),
    ]


def _recovery(actions: Sequence[M3Action]) -> list[Score]:
    lengths = recoveries(actions)
    return [
        scored("recoveries", len(lengths), {"lengths": lengths}),
        scored("recovery_steps", sum(lengths)),
    ]


# ---- all runs ------------------------------------------------------------------------------


def _value(row: Scored) -> Iterable[float]:
    return [] if row.score.value is None else [row.score.value]


def _lengths(row: Scored) -> Iterable[float]:
    lengths = row.score.evidence.get("lengths")
    return lengths if isinstance(lengths, list) else []


def _deviation(
    rows: Sequence[Scored],
    metric: str,
    values: Callable[[Scored], Iterable[float]],
    name: str | None = None,
) -> Figure:
    """The standard deviation of the population, as M3 gives it."""
    ours = [row for row in rows if row.score.metric == metric and row.score.value is not None]
    results = [value for row in ours for value in values(row)]
    tasks = len({task_of(row) for row in ours})
    title = f"{name or metric}:std"
    if not results:
        reason = "there is nothing to add up"
        return Figure(title, None, count=len(ours), tasks=tasks, reason=reason, amount=True)
    mean = math.fsum(results) / len(results)
    square = math.fsum((value - mean) ** 2 for value in results) / len(results)
    return Figure(title, math.sqrt(square), count=len(ours), tasks=tasks, amount=True)


def _renamed(figure: Figure, ending: str | None) -> Figure:
    return figure if ending is None else replace(figure, name=f"{figure.name}:{ending}")


def _profile(rows: Sequence[Scored]) -> list[Figure]:
    """How often each error occurs in all runs, by the name before it and by its type."""
    ours = [row for row in rows if row.score.metric == "errors" and row.score.value is not None]
    tasks = len({task_of(row) for row in ours})
    profile = []
    for sort in ("prefix", "type"):
        counts: Counter[str] = Counter()
        for row in ours:
            evidence = row.score.evidence.get(sort)
            counts.update(evidence if isinstance(evidence, dict) else {})
        profile += [
            Figure(f"errors:{sort}:{name}", float(count), count=len(ours), tasks=tasks, amount=True)
            for name, count in sorted(counts.items())
        ]
    return profile


KIND = ScorerKind(
    name="m3",
    about="M3's report: how runs end, errors, actions, scenarios, recoveries and the expert's "
    "help (m3-train-eval, agent_perf_analysis).",
    settings=M3ScorerSettings,
    make=M3Scorer,
)
