"""Running a suite: collect episodes, score them, and look whether the figures are good enough."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from adp.core.progress import Progress
from adp.eval.bounds import BROKEN, check_bounds
from adp.eval.scoring import ChosenScorer, ScoreOptions, ScoreReport, choose_named, score_store
from adp.eval.suite import Suite
from adp.rollouts.collecting.collect import Environments, Watch, alone, collect_now
from adp.rollouts.collecting.counts import CollectReport
from adp.rollouts.collecting.limits import limits_in
from adp.rollouts.collecting.offered_tools import closed, made
from adp.rollouts.collecting.run_file import kind_facts
from adp.rollouts.collecting.settings import CollectSettings
from adp.rollouts.collecting.tasks import read_tasks
from adp.rollouts.policy import POLICIES, Policy
from adp.rollouts.spec import Named, load, load_environment, split_named
from adp_schema.errors import UsageError
from adp_schema.model import Task
from adp_schema.store import Store


@dataclass(frozen=True)
class Gate:
    """A bound of a figure, and whether it holds.

    Attributes:
        figure: name of the figure, ``scorer.figure`` where several scorers have it.
        bound: ``at least`` or ``at most``.
        limit: the bound.
        value: the figure; None when it is undefined.
        holds: whether it is within the bound; False when it is undefined.
        reason: why it is undefined.
    """

    figure: str
    bound: str
    limit: float
    value: float | None
    holds: bool
    reason: str | None = None


@dataclass(frozen=True)
class EvaluateOptions:
    """How a suite is run, besides what the suite says.

    Attributes:
        limit: only so many tasks, the first ones.
        collect: settings of `adp.rollouts.collecting.collect`, over those of the suite.
        scorers: further scorers, as people write them.
        minimum: bounds besides those of the suite: figure -> the least that it must be.
        maximum: figure -> the most that it may be.
        unsafe_python: let the environment ``python`` run programs without a sandbox.
    """

    limit: int | None = None
    collect: Mapping[str, Any] = field(default_factory=dict)
    scorers: Sequence[str] = ()
    minimum: Mapping[str, float] = field(default_factory=dict)
    maximum: Mapping[str, float] = field(default_factory=dict)
    unsafe_python: bool = False


@dataclass(frozen=True)
class Evaluated:
    """What running a suite brought.

    Attributes:
        suite: name of the suite.
        policy: name of the policy.
        tasks: number of tasks.
        refused: records of a file of tasks that are none, and why.
        collected: what became of the episodes.
        scores: what the scorers gave.
        gates: the bounds.
    """

    suite: str
    policy: str
    tasks: int
    refused: Sequence[str]
    collected: CollectReport
    scores: ScoreReport
    gates: tuple[Gate, ...]


def evaluate(
    suite: Suite,
    policy: Named,
    out: str,
    options: EvaluateOptions | None = None,
    *,
    watch: Watch | None = None,
    progress: Progress | None = None,
) -> Evaluated:
    """Run a suite: collect the episodes that are missing, then score all.

    A run that was stopped goes on with the same call; what was done and scored is not done again.

    Args:
        suite: the suite.
        policy: the policy, as people write it, or an object with name and settings.
        out: folder of the store.
        options: everything else.
        watch: told how far the collecting is.
        progress: told how far the scoring is.

    Raises:
        UsageError: a name or a setting is unknown, or a bound can never hold.
        InputError: there are no tasks, or they cannot be read.
        RolloutError: one episode after the other broke for the same reason.
        StoreError: the store cannot be written to, or was begun with other settings.
    """
    prepared = prepare_suite(suite, policy, options)
    collected = prepared.collect(out, watch)
    return prepared.score(out, collected, progress)


@dataclass(frozen=True)
class PreparedSuite:
    """A suite that can be run: its episodes, then its scores.

    Attributes:
        suite: the suite.
        policy: the policy, made.
        tasks: the tasks.
        refused: records of a file of tasks that are none, and why.
        scorers: the scorers.
        bounds: the least and the most that figures may be.
        environments: makes the environment of an episode.
        settings: settings of the episodes.
    """

    suite: Suite
    policy: Policy
    tasks: Sequence[Task]
    refused: Sequence[str]
    scorers: Sequence[ChosenScorer]
    bounds: tuple[dict[str, float], dict[str, float]]
    environments: Environments
    settings: CollectSettings

    def collect(self, out: str, watch: Watch | None = None) -> CollectReport:
        """Run the episodes that are missing.

        Args:
            out: folder of the store.
            watch: told how far it is.
        """
        return collect_now(
            *(out, self.environments, alone(self.policy), self.tasks, self.settings),
            watch=watch,
            policies=[self.policy],
        )

    def figures(self, out: str, progress: Progress | None = None) -> ScoreReport:
        """Score the episodes of a store, and add the scores up.

        Args:
            out: folder of the store.
            progress: told how far it is.
        """
        scoring = ScoreOptions(concurrency=self.settings.concurrency)
        return score_store(Store.open(out), self.scorers, scoring, progress)

    def score(
        self, out: str, collected: CollectReport, progress: Progress | None = None
    ) -> Evaluated:
        """Score the episodes of a store, and compare the figures with their bounds.

        Args:
            out: folder of the store.
            collected: what became of the episodes.
            progress: told how far it is.
        """
        scores = self.figures(out, progress)
        return Evaluated(
            self.suite.name,
            self.policy.name,
            len(self.tasks),
            tuple(self.refused),
            collected,
            scores,
            gates(scores, *self.bounds),
        )


def check_suite(suite: Suite, policy: Named, options: EvaluateOptions) -> None:
    """Check names, settings and bounds; no model is loaded and no task is read.

    Raises:
        UsageError: one of them is wrong.
        InputError: a file of settings cannot be read.
    """
    _environment(suite, options.unsafe_python)
    spec, more = split_named(policy)
    load(POLICIES, spec, **more)
    _scorers(suite, options)


def _scorers(
    suite: Suite, options: EvaluateOptions
) -> tuple[list[ChosenScorer], tuple[dict[str, float], dict[str, float]]]:
    scorers = choose_named([*map(split_named, suite.scorers)], options.scorers)
    bounds = (
        dict(suite.minimum) | dict(options.minimum),
        dict(suite.maximum) | dict(options.maximum),
    )
    check_bounds(bounds, scorers)
    return scorers, bounds


def prepare_suite(
    suite: Suite, policy: Named, options: EvaluateOptions | None = None
) -> PreparedSuite:
    """Read the tasks of a suite and make the policy; see `evaluate`."""
    options = options or EvaluateOptions()
    environment, settings = _environment(suite, options.unsafe_python)
    spec, more = split_named(policy)
    policy_kind, policy_settings = load(POLICIES, spec, **more)
    scorers, bounds = _scorers(suite, options)
    result = read_tasks(suite.tasks, environment, settings, split=suite.split)
    first = made(environment, settings)
    closed(first)
    actor = policy_kind.make(policy_settings)
    facts = {
        "environment": kind_facts(environment.name, settings),
        "policy": kind_facts(policy_kind.name, policy_settings),
    }
    suite_settings = {"seed": suite.seed, "n": suite.n, "limits": limits_in(first, suite.limits)}
    collecting = CollectSettings.model_validate(
        suite_settings
        | dict(options.collect)
        | {"environment": environment.name, "policy": actor.name, "facts": {"made_with": facts}}
    )
    return PreparedSuite(
        suite,
        actor,
        result.tasks[: options.limit],
        tuple(result.reasons),
        scorers,
        bounds,
        lambda: environment.make(settings),
        collecting,
    )


def _environment(suite: Suite, unsafe_python: bool) -> tuple[Any, Any]:
    spec, more = split_named(suite.environment)
    return load_environment(spec, unsafe_python=unsafe_python, **more)


def gates(
    scores: ScoreReport, minimum: Mapping[str, float], maximum: Mapping[str, float]
) -> tuple[Gate, ...]:
    """Compare figures with their bounds.

    Args:
        scores: what the scorers gave.
        minimum: figure -> the least that it must be.
        maximum: figure -> the most that it may be.

    Returns:
        The bounds. A figure that no scorer gives, or that several give, is undefined.
    """
    figures = _figures(scores)
    made = []
    for bound, limits in (("at least", minimum), ("at most", maximum)):
        for name, limit in limits.items():
            value, reason = _single_store(figures, name)
            if value is None:
                made.append(Gate(name, bound, limit, None, False, reason))
                continue
            holds = value >= limit if bound == "at least" else value <= limit
            made.append(Gate(name, bound, limit, value, holds))
    return tuple(made)


def failed_bounds(compared: Sequence[Gate]) -> str | None:
    """Which figures are not within their bounds, in words; None when all are.

    Args:
        compared: the bounds.
    """
    return (
        ", ".join(
            f"{gate.figure} is undefined ({gate.reason})"
            if gate.value is None
            else f"{gate.figure} is {gate.value:.4g}, not {gate.bound} {gate.limit:g}"
            for gate in compared
            if not gate.holds
        )
        or None
    )


Value = tuple[float | None, str | None]
"""A figure, and why it is undefined."""


def _figures(scores: ScoreReport) -> dict[str, list[Value]]:
    broken = sum(scores.broken.values())
    share = broken / scores.trajectories if scores.trajectories else None
    figures: dict[str, list[Value]] = {BROKEN: [(share, "there are no episodes")]}
    for scorer in scores.scorers:
        for figure in scorer.figures:
            value = (figure.value, figure.reason or "it is undefined")
            figures.setdefault(figure.name, []).append(value)
            figures.setdefault(f"{scorer.scorer}.{figure.name}", []).append(value)
    return figures


def _single_store(items: Mapping[str, list[Value]], name: str) -> Value:
    values = items.get(name, [])
    if not values:
        known = ", ".join(key for key in items if "." not in key)
        return None, f"no scorer gives it; there are {known}"
    if len(values) > 1:
        return None, f"several scorers give it; write SCORER.{name}"
    return values[0]


def read_bounds(bounds: Sequence[str]) -> dict[str, float]:
    """Read bounds as people write them: ``success=0.9``.

    Raises:
        UsageError: one is not ``FIGURE=NUMBER``.
    """
    results = {}
    for text in bounds:
        name, equals, value = text.rpartition("=")
        try:
            results[name.strip()] = float(value)
        except ValueError:
            equals = ""
        if not equals or not name.strip():
            raise UsageError(f"'{text}' is not FIGURE=NUMBER, such as success=0.9")
    return results
