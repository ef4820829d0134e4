"""The numbers of evaluations, as plain data: what their report shows."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from adp.eval.metrics import Difference
from adp.eval.scorer import Figure
from adp.rollouts.collecting.assisted import Assisted
from adp.stores.composition.model import Count, Rate, as_plain
from adp.stores.stats import Recorded

__all__ = [
    "CapabilityFigure",
    "CapabilityProfile",
    "Comparison",
    "Costs",
    "EvaluatedRun",
    "Evaluation",
    "FailedEpisode",
    "Outcomes",
    "RadarAxis",
    "Rate",
    "ScorerFigures",
    "TaskGroup",
    "ToolUse",
]  # fmt: skip


@dataclass(frozen=True)
class Outcomes:
    """How the episodes of a run ended; each one is in one of the first four.

    Attributes:
        solved: success is true.
        failed: success is false.
        unscored: nobody knows, and nothing broke.
        by_reward: of the solved and failed ones, those of which only a reward is known; 1 is a
            success.
        broken: something else than the agent failed.
        truncated: cut by a limit.
        superseded: tries that broke and were made again; they are in none of the others, and in no
            figure.
        kinds: what broke, and how often.
        stops: why episodes stopped, those that broke left out.
    """

    solved: int
    failed: int
    unscored: int
    by_reward: int
    broken: int
    truncated: int
    superseded: int
    kinds: tuple[Count, ...]
    stops: tuple[Count, ...]


@dataclass(frozen=True)
class ToolUse:
    """How a tool was used.

    Attributes:
        name: its name.
        calls: calls.
        results: calls with a result that says whether it is an error.
        errors: of these, those that are errors.
        episodes: episodes that call it.
        solved_calls: its calls in episodes that succeeded.
    """

    name: str | None
    calls: int
    results: int
    errors: int
    episodes: int
    solved_calls: int


@dataclass(frozen=True)
class Costs:
    """What a run used up: sums over the episodes that record it.

    Attributes:
        turns: turns of the agent.
        calls: calls of tools.
        tokens_in: prompt tokens.
        tokens_cached: of these, tokens from a cache.
        tokens_out: tokens that the model wrote.
        cost: US dollars.
        seconds: time from start to end.
    """

    turns: Recorded
    calls: Recorded
    tokens_in: Recorded
    tokens_cached: Recorded
    tokens_out: Recorded
    cost: Recorded
    seconds: Recorded


@dataclass(frozen=True)
class TaskGroup:
    """A part of the tasks, such as those of one difficulty.

    Attributes:
        by: what they are grouped by.
        name: the group.
        episodes: episodes.
        success: their success.
    """

    by: str
    name: str | None
    episodes: int
    success: Figure


@dataclass(frozen=True)
class ScorerFigures:
    """What a scorer says about a run.

    Attributes:
        name: the scorer.
        version: its version.
        settings: its settings, JSON text.
        settings_hash: their hash.
        label: its name with the settings that are not the default ones.
        figures: the scores added up.
        unscored: why scores are missing.
    """

    name: str
    version: str
    settings: str
    settings_hash: str
    label: str
    figures: tuple[Figure, ...]
    unscored: tuple[Count, ...]


@dataclass(frozen=True)
class FailedEpisode:
    """An episode that failed, to look at."""

    trajectory_id: str
    why: str
    text: str
    cut: bool


@dataclass(frozen=True)
class EvaluatedRun:
    """One model, or policy, in one store.

    Attributes:
        name: what to call it; different for each run of a report.
        store: name of the store.
        growing: whether the store still grows.
        agent: name of the policy or agent.
        models: models behind it.
        environments: environments.
        datasets: data sets.
        splits: splits.
        episodes: episodes, which are main lines.
        tasks: tasks.
        attempts: fewest and most episodes of a task.
        seeds: how many different seeds are recorded.
        versions: packages that made the store.
        outcomes: how the episodes ended.
        assisted: how much an expert did beside the policy; None when it was alone.
        success: share of the scored episodes that succeeded.
        reward: mean reward.
        passes: pass@k and pass^k.
        groups: success by difficulty, split, ...
        scorers: what scorers say.
        errors: types of the errors that calls met.
        results: results of calls.
        wrong: of these, errors.
        tools: tools, the most used first.
        costs: what it used up.
        failures: episodes that failed.
    """

    name: str
    store: str
    growing: bool
    agent: str | None
    models: tuple[Count, ...]
    environments: tuple[Count, ...]
    datasets: tuple[Count, ...]
    splits: tuple[Count, ...]
    episodes: int
    tasks: int
    attempts: tuple[int, int] | None
    seeds: int
    versions: dict[str, str]
    outcomes: Outcomes
    assisted: Assisted | None
    success: Figure
    reward: Figure
    passes: tuple[Figure, ...]
    groups: tuple[TaskGroup, ...]
    scorers: tuple[ScorerFigures, ...]
    errors: tuple[Count, ...]
    results: int
    wrong: int
    tools: tuple[ToolUse, ...]
    costs: Costs
    failures: tuple[FailedEpisode, ...]


@dataclass(frozen=True)
class Comparison:
    """Two runs over the tasks that both did.

    Attributes:
        metric: what is compared.
        scorer: label of the scorer that gives it; None for columns of the trajectories.
        first: name of the first run, the baseline.
        second: name of the second run.
        difference: second minus first.
        assisted: those of the two runs in which an expert acted.
    """

    metric: str
    scorer: str | None
    first: str
    second: str
    difference: Difference
    assisted: tuple[str, ...] = ()


@dataclass(frozen=True)
class RadarAxis:
    """A figure in the profile of the runs.

    Attributes:
        label: what to call it.
        figure: its name.
        less: whether less of it is better.
        share: whether it lies between 0 and 1 by itself.
        values: its value in each run; None where a run has none.
        places: where these lie between the centre, 0, and the rim, 1.
    """

    label: str
    figure: str
    less: bool
    share: bool
    values: tuple[float | None, ...]
    places: tuple[float | None, ...]


@dataclass(frozen=True)
class CapabilityFigure:
    """A capability of a run.

    Attributes:
        name: the capability, such as ``planning``; ``overall`` is their weighted mean.
        weight: its weight in the mean; None for the mean itself.
        figure: its score, over the runs of the tasks that are about it.
    """

    name: str
    weight: float | None
    figure: Figure


@dataclass(frozen=True)
class CapabilityProfile:
    """The capabilities of one run, as the scorer ``capability`` measured them.

    Attributes:
        run: name of the run.
        scorer: label of the scorer, with its settings.
        figures: the mean and the capabilities.
        unassigned: episodes of tasks that are about none of them.
        episodes: episodes that were looked at.
    """

    run: str
    scorer: str
    figures: tuple[CapabilityFigure, ...]
    unassigned: int
    episodes: int


@dataclass(frozen=True)
class Evaluation:
    """All numbers that a report of evaluations shows.

    Attributes:
        name: its title.
        runs: the runs.
        comparisons: each run against the first one.
        left_out: runs that there was no room for.
        radar: figures of their profile; none: there is no profile.
        capabilities: capabilities of each run, where the scorer ``capability`` scored it.
    """

    name: str
    runs: tuple[EvaluatedRun, ...]
    comparisons: tuple[Comparison, ...]
    left_out: int = 0
    radar: tuple[RadarAxis, ...] = ()
    capabilities: tuple[CapabilityProfile, ...] = ()

    def plain(self) -> dict[str, Any]:
        """The numbers as JSON has them: lists for tuples, null for numbers that are not finite."""
        return dict(as_plain(asdict(self)))
