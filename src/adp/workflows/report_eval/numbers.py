"""Collecting the numbers of a report about evaluations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from adp.core.progress import Progress, Silent
from adp.eval.metrics import mean_figures, paired_difference, pass_figures
from adp.eval.metrics.metric_scores import task_of
from adp.eval.scorer import Figure, Scored
from adp.eval.scoring import ScoreSet, label, read_scores
from adp.rollouts.collecting.attempts import BROKEN
from adp.rollouts.experts.history import EXPERT
from adp.stores.composition.examples import clipped
from adp.stores.composition.model import Count
from adp.stores.composition.questions import short
from adp.workflows.report_eval import episodes as ask
from adp.workflows.report_eval.capabilities import capability_profiles
from adp.workflows.report_eval.episodes import GROUPINGS, Episodes, Row
from adp.workflows.report_eval.model import (
    Comparison,
    Costs,
    EvaluatedRun,
    Evaluation,
    FailedEpisode,
    Outcomes,
    ScorerFigures,
    TaskGroup,
)
from adp.workflows.report_eval.radar import radar
from adp_schema.errors import UsageError, unknown_name
from adp_schema.store import Store

RUNS, GROUPS = 12, 40
"""Runs of a report, groups of a breakdown."""


@dataclass(frozen=True)
class EvaluationOptions:
    """How a report is made.

    Attributes:
        name: its title; None takes the names of the stores.
        examples: failures to show of each run.
        baseline: the run that the others are compared with; None: the first one.
        scores: folders of the scores of each store; none: they are in the stores.
        radar: figures of the profile, see `adp.workflows.report_eval.radar`.
    """

    name: str | None = None
    examples: int = 3
    baseline: str | None = None
    scores: Sequence[str] = ()
    radar: Sequence[str] = ()


@dataclass(frozen=True)
class _Given:
    """What is known of a run before anything is added up."""

    name: str
    episodes: Episodes
    scores: list[ScoreSet]


def evaluation(
    stores: Sequence[Store],
    options: EvaluationOptions | None = None,
    progress: Progress | None = None,
) -> Evaluation:
    """Collect the numbers of evaluations.

    Each store is a run; one that holds the episodes of several policies is a run for each.

    Args:
        stores: the stores.
        options: how the report is made.
        progress: told how many runs are done.

    Raises:
        UsageError: there are folders of scores but not one for each store, or the baseline is no
            run; or no run has a figure of the profile.
        StoreError: a store or a file of scores is damaged.
    """
    options = options or EvaluationOptions()
    if options.scores and len(options.scores) != len(stores):
        raise UsageError("give --scores FOLDER once for each store, in their order")
    progress = progress or Silent()
    given = _named(list(_given(stores, options)))
    progress.total(len(given))
    if options.baseline is not None:
        given = _first(given, options.baseline)
    shown = given[:RUNS]
    runs = []
    for item in shown:
        runs.append(_run(item, options.examples))
        progress.advance(1)
    comparisons = [entry for other in shown[1:] for entry in _compare(shown[0], other)]
    name = options.name or ", ".join(dict.fromkeys(store.name for store in stores))
    profile = radar(runs, options.radar)
    able = capability_profiles(runs)
    left_out = len(given) - len(shown)
    return Evaluation(name, tuple(runs), tuple(comparisons), left_out, profile, able)


def _given(stores: Sequence[Store], options: EvaluationOptions) -> Iterator[_Given]:
    for index, store in enumerate(stores):
        sets = read_scores(store, options.scores[index] if options.scores else None)
        for episodes in ask.read_episodes(store):
            rows = {row["trajectory_id"] for row in episodes.rows}
            parts = [_part(item, rows) for item in sets]
            yield _Given(_name(episodes), episodes, [item for item in parts if item.rows])


def _name(episodes: Episodes) -> str:
    name = episodes.agent or episodes.store.name
    # The policy `expert` is nothing else, and its name says so.
    by_policy = episodes.mode is None or episodes.agent == EXPERT
    return name if by_policy else f"{name} with expert, {episodes.mode}"


def _part(scores: ScoreSet, ours: set[str]) -> ScoreSet:
    return replace(scores, rows=tuple(row for row in scores.rows if row.trajectory_id in ours))


def _named(given: list[_Given]) -> list[_Given]:
    """Names that differ: the store is named where policies have the same name."""
    often = Counter(entry.name for entry in given)
    longer = [
        replace(entry, name=f"{entry.name} ({entry.episodes.store.name})")
        if often[entry.name] > 1
        else entry
        for entry in given
    ]
    seen: Counter[str] = Counter()
    named = []
    for item in longer:
        seen[item.name] += 1
        more = f" #{seen[item.name]}" if seen[item.name] > 1 else ""
        named.append(replace(item, name=(short(item.name) or "") + more))
    return named


def _first(given: list[_Given], baseline: str) -> list[_Given]:
    names = [item.name for item in given]
    stores = [item.episodes.store.name for item in given]
    for known in (names, stores):
        if known.count(baseline) == 1:
            place = known.index(baseline)
            return [given[place], *given[:place], *given[place + 1 :]]
    raise UsageError(unknown_name("run", baseline, names))


def _run(given: _Given, examples: int) -> EvaluatedRun:
    episodes = given.episodes
    tasks, attempts = ask.attempts(episodes.rows)
    success = episodes.scored("success")
    errors, results, wrong = ask.errors(episodes)
    return EvaluatedRun(
        name=given.name,
        store=episodes.store.name,
        growing=episodes.store.journal is not None,
        agent=short(episodes.agent),
        models=episodes.counts("model"),
        environments=episodes.counts("environment"),
        datasets=episodes.counts("dataset"),
        splits=episodes.counts("split"),
        episodes=len(episodes.rows),
        tasks=tasks,
        attempts=attempts,
        seeds=len({row["seed"] for row in episodes.rows} - {None}),
        versions=_versions(episodes.store),
        outcomes=_outcomes(episodes.rows, episodes.again),
        assisted=episodes.assisted,
        success=mean_figures(success, ["success"])[0],
        reward=mean_figures(episodes.scored("reward"), ["reward"])[0],
        passes=tuple(_passes(success)),
        groups=tuple(_groups(episodes, success)),
        scorers=tuple(_scorer(score) for score in given.scores),
        errors=errors,
        results=results,
        wrong=wrong,
        tools=ask.tools(episodes),
        costs=_costs(episodes),
        failures=tuple(_failures(episodes, examples)),
    )


def _passes(success: Sequence[Scored]) -> Iterator[Figure]:
    """pass@k and pass^k; where most tasks have k scored attempts, without those that do not."""
    attempts = Counter(task_of(row) for row in success if row.score.value is not None)
    strict = pass_figures(success, "success")
    partial = pass_figures(success, "success", partial=True)
    for result, other in zip(strict, partial, strict=True):
        enough = sum(count >= int(result.name[5:]) for count in attempts.values())
        yield other if result.value is None and 2 * enough > len(attempts) else result


def _versions(store: Store) -> dict[str, str]:
    versions = [act.versions["adp"] for act in store.manifest.lineage if "adp" in act.versions]
    return {"adp": versions[-1]} if versions else {}


def _outcomes(rows: Sequence[Row], again: int) -> Outcomes:
    broken = [row for row in rows if row["error_type"] in BROKEN]
    full = [row for row in rows if row["error_type"] not in BROKEN]
    return Outcomes(
        solved=sum(row["success"] is True for row in full),
        failed=sum(row["success"] is False for row in full),
        unscored=sum(row["success"] is None for row in full),
        by_reward=sum(row["success"] is not None and row["by_reward"] for row in full),
        broken=len(broken),
        truncated=sum(bool(row["truncated"]) for row in full),
        superseded=again,
        kinds=ask.ranked(_kind(row) for row in broken),
        stops=ask.ranked(row["stop_reason"] for row in full),
    )


def _kind(row: Row) -> str:
    stop, error = row["stop_reason"], row["error_type"]
    return f"{error}: {stop}" if stop and stop != error else error


def _groups(episodes: Episodes, success: Sequence[Scored]) -> Iterator[TaskGroup]:
    for column in GROUPINGS:
        parts: dict[str | None, list[Scored]] = {}
        for row, scored in zip(episodes.rows, success, strict=True):
            parts.setdefault(row[column], []).append(scored)
        names = sorted(parts, key=lambda name: (name is None, name or ""))
        for name in names[:GROUPS]:
            figure = mean_figures(parts[name], ["success"])[0]
            yield TaskGroup(column, short(name), len(parts[name]), figure)


def _scorer(scores: ScoreSet) -> ScorerFigures:
    unscored = [Count(short(reason), count) for reason, count in scores.unscored().items()]
    return ScorerFigures(
        scores.scorer,
        scores.version,
        scores.settings,
        scores.settings_hash,
        label(scores.scorer, scores.settings),
        tuple(scores.figures()),
        tuple(unscored[: ask.LIMIT]),
    )


def _costs(episodes: Episodes) -> Costs:
    names = ("turns", "calls", "tokens_in", "tokens_cached", "tokens_out", "cost", "seconds")
    return Costs(**{name: episodes.recorded(name) for name in names})


def _failures(episodes: Episodes, most: int) -> Iterator[FailedEpisode]:
    """Failures of different kinds: of each reason for stopping the first, the frequent first."""
    failed = [
        row for row in episodes.rows if row["success"] is False and row["error_type"] not in BROKEN
    ]
    kinds: dict[str | None, list[Row]] = {}
    for row in failed:
        kinds.setdefault(row["stop_reason"], []).append(row)
    order = sorted(kinds.values(), key=lambda rows: (-len(rows), rows[0]["seq"]))
    depth = max(map(len, order), default=0)
    turns = [rows[place] for place in range(depth) for rows in order if place < len(rows)]
    for row in turns[:most]:
        text, cut = clipped(episodes.store.get(row["trajectory_id"]))
        yield FailedEpisode(short(row["trajectory_id"]) or "", _why(row), text, cut)


def _why(row: Row) -> str:
    return "This episode failed: a limit cut it." if row["truncated"] else "This episode failed."


def _compare(first: _Given, second: _Given) -> Iterator[Comparison]:
    """Every metric that both runs have, by columns and by scorers of the same settings."""
    helped = tuple(item.name for item in (first, second) if item.episodes.mode is not None)
    compared: list[list[float | None]] = []
    for metric in ("success", "reward"):
        both = [item.episodes.scored(metric) for item in (first, second)]
        values = _values(both)
        if values != compared and all(any(value is not None for value in run) for run in values):
            difference = paired_difference(both[0], both[1], metric)
            yield Comparison(metric, None, first.name, second.name, difference, helped)
            compared = values
    others = {(item.scorer, item.settings_hash): item for item in second.scores}
    for score in first.scores:
        other = others.get((score.scorer, score.settings_hash))
        if other is None:
            continue
        metrics = dict.fromkeys(row.score.metric for row in score.rows)
        theirs = {row.score.metric for row in other.rows}
        for metric in metrics:
            told_already = metric in ("success", "reward") and _values(
                [_of(score.rows, metric), _of(other.rows, metric)]
            ) == _values([item.episodes.scored(metric) for item in (first, second)])
            if metric in theirs and not told_already:
                amounts = metric in score.amounts()
                difference = paired_difference(score.rows, other.rows, metric, amounts=amounts)
                scorer = label(score.scorer, score.settings)
                yield Comparison(metric, scorer, first.name, second.name, difference, helped)


def _values(runs: Sequence[Sequence[Scored]]) -> list[list[float | None]]:
    return [[row.score.value for row in rows] for rows in runs]


def _of(rows: Sequence[Scored], metric: str) -> list[Scored]:
    return [row for row in rows if row.score.metric == metric]
