"""The numbers of a comparison: figures with intervals, and paired differences to the baseline."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from adp.eval.metrics import Difference, mean_figures, paired_difference
from adp.eval.scorer import Figure, Score, Scored
from adp.eval.scoring import ScoreSet, read_scores
from adp.workflows.compare.comparison import MethodComparison, PlannedRun
from adp.workflows.compare.tokens import train_record, trained_tokens
from adp.workflows.loop.records import read_record
from adp.workflows.loop.report import SHOWN, Shown
from adp_schema.errors import InputError
from adp_schema.manifest import write_atomic
from adp_schema.store import Store

RESULTS = "all_results.json"

LOSS = Shown("loss", "training", "eval_loss", False)
"""What is shown where models are measured on a store."""


@dataclass(frozen=True)
class SeedRun:
    """A method with one seed.

    Attributes:
        seed: the seed.
        failed: why it failed; None: it is done.
        trajectories: trajectories that were trained on; of several parts together.
        rows: rows that came of them.
        trained_tokens: tokens under the loss, in all passes.
        steps: optimiser steps.
        loss: training loss of the last step.
        seconds: time of training and evaluation, since their last start.
        values: figure -> mean.
    """

    seed: int
    failed: str | None = None
    trajectories: int | None = None
    rows: int | None = None
    trained_tokens: int | None = None
    steps: int | None = None
    loss: float | None = None
    seconds: float = 0.0
    values: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class ComparedMethod:
    """What came of a method.

    Attributes:
        name: its name.
        about: what it does.
        seeds: a run for each seed.
        figures: figure -> mean over the episodes of all seeds, with an interval over tasks; of a
            loss: over seeds.
        over_seeds: figure -> mean of the seeds, with an interval over them.
        differences: figure -> this method minus the baseline, paired by task (of a loss: by seed).
        differences_over_seeds: the same, paired by seed.
    """

    name: str
    about: str
    seeds: tuple[SeedRun, ...]
    figures: dict[str, Figure]
    over_seeds: dict[str, Figure]
    differences: dict[str, Difference]
    differences_over_seeds: dict[str, Difference]

    @property
    def failed(self) -> str | None:
        """Why it failed; None: every seed is done."""
        return next((run.failed for run in self.seeds if run.failed), None)


@dataclass(frozen=True)
class ComparisonResult:
    """What came of a comparison.

    Attributes:
        baseline: the method that the others are compared with.
        measured: name of the suite, or of the store.
        model: the model that all began with.
        tokens: tokens under the loss that were asked for; None: each method by its epochs.
        shown: the figures of the table, the first one is what it is about.
        methods: the methods, in the order of the call.
    """

    baseline: str
    measured: str
    model: str
    tokens: int | None
    shown: tuple[Shown, ...]
    methods: tuple[ComparedMethod, ...]

    @property
    def failures(self) -> dict[str, str]:
        """Method -> why it failed."""
        return {method.name: method.failed for method in self.methods if method.failed}

    def plain(self) -> dict[str, Any]:
        """As JSON."""
        plain = asdict(self)
        for method, given in zip(plain["methods"], self.methods, strict=True):
            method["failed"] = given.failed
        return plain


def collect_results(
    comparison: MethodComparison,
    runs: Sequence[PlannedRun],
    root: Path,
    failed: Mapping[str, str],
    tokens: int | None,
) -> ComparisonResult:
    """Collect what the stages of a comparison have left.

    Args:
        comparison: what was compared.
        runs: its runs.
        root: its folder.
        failed: stage -> why it failed.
        tokens: tokens under the loss that were asked for.
    """
    measured = comparison.measured
    shown = (LOSS,) if measured.store is not None else SHOWN
    rows: dict[str, dict[int, dict[str, list[Scored]]]] = {}
    seeds: dict[str, list[SeedRun]] = {}
    for run in runs:
        scores = _rows(run, root, shown)
        reason = next((failed[key] for key in run.keys if key in failed), None)
        rows.setdefault(run.method, {})[run.seed] = scores
        seeds.setdefault(run.method, []).append(_seed_run(run, root, reason, scores, shown))
    first = comparison.first.name
    methods = tuple(
        _method(method.name, method.about, seeds[method.name], rows[method.name],
                None if method.name == first else rows[first], shown)
        for method in comparison.methods
    )  # fmt: skip
    name = measured.suite if measured.store is None else Path(measured.store).name
    what = str(name.get("name", "suite") if isinstance(name, Mapping) else name)
    model = comparison.model
    return ComparisonResult(first, Path(what).name, model, tokens, tuple(shown), methods)


def _seed_run(
    run: PlannedRun,
    root: Path,
    reason: str | None,
    scores: Mapping[str, list[Scored]],
    shown: Sequence[Shown],
) -> SeedRun:
    records = [train_record(root, key) for key in run.trains]
    done = [record for record in records if record is not None]
    seconds = [record.seconds for key in run.keys if (record := read_record(root, key)) is not None]
    values = {item.metric: _mean(scores.get(item.metric, []), item) for item in shown}
    stores = [_trajectories(root, store) for store in run.stores]
    return SeedRun(
        seed=run.seed,
        failed=reason,
        trajectories=None if None in stores else sum(count or 0 for count in stores),
        rows=sum(record["plan"]["rows"] for record in done) if done else None,
        trained_tokens=trained_tokens(root, run),
        steps=sum(record["result"]["steps"] for record in done) if done else None,
        loss=done[-1]["result"].get("last_loss") if done else None,
        seconds=round(sum(seconds), 1),
        values={name: value for name, value in values.items() if value is not None},
    )


def _trajectories(root: Path, store: str) -> int | None:
    place = root / store
    if not place.exists():
        return None
    return Store.open(str(place)).manifest.counts.trajectories


def _rows(run: PlannedRun, root: Path, shown: Sequence[Shown]) -> dict[str, list[Scored]]:
    """Figure -> its scores."""
    if run.measured is None:
        record = train_record(root, run.trains[-1])
        loss = None if record is None else record["result"].get("eval_loss")
        return {} if loss is None else {LOSS.metric: [_of_seed(run.seed, LOSS.metric, loss)]}
    folder = root / run.measured.replace(".", "/", 1)
    if not folder.exists():
        return {}
    sets: dict[str, ScoreSet] = {}
    for item in read_scores(Store.open(str(folder))):
        sets.setdefault(item.scorer, item)
    return {
        item.metric: [row for row in sets[item.scorer].rows if row.score.metric == item.metric]
        for item in shown
        if item.scorer in sets
    }


def _of_seed(seed: int, metric: str, value: float) -> Scored:
    """A number about one seed, as a score: seeds are then paired as tasks are."""
    return Scored(f"seed-{seed}", f"seed-{seed}", None, Score(metric, value))


def _mean(rows: Sequence[Scored], shown: Shown) -> float | None:
    return _figure(rows, shown).value


def _figure(rows: Sequence[Scored], shown: Shown) -> Figure:
    amounts = () if shown.share else (shown.metric,)
    return mean_figures(rows, [shown.metric], amounts=amounts)[0]


def _method(
    name: str,
    about: str,
    seeds: Sequence[SeedRun],
    rows: Mapping[int, Mapping[str, list[Scored]]],
    base: Mapping[int, Mapping[str, list[Scored]]] | None,
    shown: Sequence[Shown],
) -> ComparedMethod:
    pooled = {item.metric: _pooled(rows, item.metric) for item in shown}
    seed_means = {item.metric: list(_seed_means(rows, item)) for item in shown}
    differences: dict[str, Difference] = {}
    by_seed: dict[str, Difference] = {}
    for item in shown if base is not None else ():
        assert base is not None
        for kept, first, second in (
            (differences, _pooled(base, item.metric), pooled[item.metric]),
            (by_seed, list(_seed_means(base, item)), seed_means[item.metric]),
        ):
            difference = paired_difference(first, second, item.metric, amounts=not item.share)
            kept[item.metric] = difference
    return ComparedMethod(
        name=name,
        about=about,
        seeds=tuple(seeds),
        figures={item.metric: _figure(pooled[item.metric], item) for item in shown},
        over_seeds={item.metric: _amount(seed_means[item.metric], item.metric) for item in shown},
        differences=differences,
        differences_over_seeds=by_seed,
    )


def _amount(rows: Sequence[Scored], metric: str) -> Figure:
    """The mean of means: an amount, even where it is one of shares of 0 and 1."""
    return replace(mean_figures(rows, [metric], amounts=[metric])[0], amount=False)


def _pooled(rows: Mapping[int, Mapping[str, list[Scored]]], metric: str) -> list[Scored]:
    """The scores of all seeds."""
    return [row for seed in sorted(rows) for row in rows[seed].get(metric, [])]


def _seed_means(rows: Mapping[int, Mapping[str, list[Scored]]], shown: Shown) -> Iterator[Scored]:
    """The mean of each seed, as a score."""
    for seed in sorted(rows):
        value = _mean(rows[seed].get(shown.metric, []), shown)
        if value is not None:
            yield _of_seed(seed, shown.metric, value)


def write_results(result: ComparisonResult, root: Path) -> Path:
    """Write ``all_results.json``; it replaces an older one.

    Args:
        result: the numbers.
        root: folder of the comparison.
    """
    path = root / RESULTS
    write_atomic(path, json.dumps(result.plain(), indent=2, ensure_ascii=False) + "\n")
    return path


def read_results(root: Path) -> dict[str, Any]:
    """What stands in ``all_results.json`` of a comparison.

    Args:
        root: its folder.

    Raises:
        InputError: there is none, or it is damaged.
    """
    path = root / RESULTS
    try:
        plain: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"{root} holds no comparison; adp compare -o makes one") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{path} is damaged: {error}; compare again") from None
    return plain
