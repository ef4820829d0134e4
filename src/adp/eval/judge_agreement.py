"""How far a judge can be trusted: its scores of a store against what is known of the runs.

It reads the scores that ``adp score --with judge:...`` kept, and asks nobody.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from adp.core.frame_files import SUFFIXES, read_frame
from adp.eval.metrics import wilson
from adp.eval.metrics.agreement import (
    brier,
    calibration_error,
    cohen_kappa,
    coincidences,
    krippendorff_alpha,
    resampled,
    spearman,
)
from adp.eval.metrics.intervals import DEFAULT, Ends, mean_ends
from adp.eval.scorer import Figure, Scored
from adp.eval.scorers.judge import METRICS
from adp.eval.scoring.read import ScoreSet, read_scores
from adp.rollouts.judging.rubrics import RUBRICS, Rubric
from adp.rollouts.turns import is_success
from adp_schema.errors import InputError, UsageError
from adp_schema.store import Store

_TRUTHS = {
    **dict.fromkeys(("1", "1.0", "true", "yes", "y", "correct", "success"), True),
    **dict.fromkeys(("0", "0.0", "false", "no", "n", "incorrect", "failure"), False),
}
Places = npt.NDArray[np.int64]


@dataclass(frozen=True)
class VerdictShare:
    """How often runs of one verdict are a success.

    Attributes:
        verdict: the number of the verdict.
        runs: runs that have it and a known label.
        share: share of successes among them.
        low: lower end of Wilson's interval.
        high: upper end.
    """

    verdict: float
    runs: int
    share: float
    low: float
    high: float


@dataclass(frozen=True)
class AgreementReport:
    """What is known of the scores of one judge.

    Attributes:
        settings: settings of the scorer, JSON text.
        labels: where the labels come from.
        judged: runs with a verdict and a label.
        states: runs that were scored, are tied, or are unscored.
        unlabelled: scored runs without a label.
        figures: accuracy, kappa, alpha, Brier's score, calibration error, correlations.
        confusion: what the judge says and what is known -> runs.
        shares: the calibration of each verdict.
        wrong: ids of runs of which judge and label say different things, at most 20.
    """

    settings: str
    labels: str
    judged: int
    states: dict[str, int]
    unlabelled: int
    figures: tuple[Figure, ...]
    confusion: dict[str, int]
    shares: tuple[VerdictShare, ...]
    wrong: tuple[str, ...] = field(default=())


@dataclass(frozen=True)
class _Known:
    """A run with a verdict and a label."""

    row: Scored
    says: bool
    label: bool
    chance: float | None


def judge_agreement(
    store: Store, labels: str | None = None, scores: str | None = None
) -> list[AgreementReport]:
    """Compare the verdicts that a store has with what is known.

    Args:
        store: the store.
        labels: a file with the columns trajectory_id and label; None: the column ``success``, else
            a reward near 1 for a success.
        scores: folder of the scores; None: in the store.

    Returns:
        A report for each settings of the scorer ``judge``.

    Raises:
        UsageError: there are no scores of a judge.
        InputError: the labels cannot be read.
    """
    truths = _from_store(store) if labels is None else _from_file(Path(labels))
    sets = [
        item
        for item in read_scores(store, scores)
        if item.scorer == "judge" and _asks(json.loads(item.settings))
    ]
    if not sets:
        raise UsageError(
            f"{store.root} has no scores of a judge; "
            "run adp score STORE --with \"judge:policy='openai:model=...'\""
        )
    return [_report(item, truths, labels or "success") for item in sets]


def _asks(settings: Mapping[str, Any]) -> bool:
    return bool((settings.get("policy") or settings.get("panel")) and settings.get("rubric"))


def _report(given: ScoreSet, truths: Mapping[str, bool], labels: str) -> AgreementReport:
    rubric = RUBRICS[json.loads(given.settings)["rubric"]]
    value = METRICS[rubric.name][0]
    rows = [row for row in given.rows if row.score.metric == value]
    scored = [row for row in rows if row.score.value is not None]
    missing = [row for row in rows if row.score.value is None]
    tied = sum(not row.score.infrastructure for row in missing)
    known = [
        _known(row, rubric, truths[row.trajectory_id])
        for row in scored
        if row.trajectory_id in truths
    ]
    words = {True: "success", False: "failure"}
    confusion = Counter(f"says {words[item.says]}, is {words[item.label]}" for item in known)
    return AgreementReport(
        given.settings,
        labels,
        len(known),
        {"scored": len(scored), "tie": tied, "unscored": len(missing) - tied},
        len(scored) - len(known),
        tuple([*_figures(known), *_panel(rows, rubric)]),
        dict(sorted(confusion.items())),
        tuple(_shares(known)),
        tuple(item.row.trajectory_id for item in known if item.says != item.label)[:20],
    )


def _known(row: Scored, rubric: Rubric, label: bool) -> _Known:
    value, best = row.score.value or 0.0, rubric.labels[rubric.success]
    votes = [name for name in row.score.evidence.get("labels", ()) if name is not None]
    chance = votes.count(rubric.success) / len(votes) if len(votes) > 1 else None
    says = 2 * value > best if rubric.name == "binary" else value == best
    return _Known(row, says, label, chance)


def _figures(known: Sequence[_Known]) -> list[Figure]:
    """Figures of the verdicts against the labels."""
    says = np.array([item.says for item in known], bool)
    label = np.array([item.label for item in known], bool)
    value = np.array([item.row.score.value for item in known], float)
    length = np.array([item.row.score.evidence.get("length") or 0 for item in known], float)
    tasks = [item.row.task or item.row.task_id or item.row.trajectory_id for item in known]
    right = [float(item.says == item.label) for item in known]
    ends = mean_ends(right, tasks, DEFAULT)
    mean = sum(right) / len(right) if right else None
    figures = [named_figure("accuracy", mean, ends, tasks)]

    def kappa(at: Places) -> float | None:
        return cohen_kappa(says[at].tolist(), label[at].tolist())

    def with_value(at: Places) -> float | None:
        return spearman(length[at], value[at])

    def with_error(at: Places) -> float | None:
        return spearman(length[at], says[at].astype(float) - label[at])

    figures.append(drawn_figure("kappa", kappa, tasks))
    figures.append(drawn_figure("length_with_verdict", with_value, tasks))
    figures.append(drawn_figure("length_with_error", with_error, tasks))
    voted = [place for place, item in enumerate(known) if item.chance is not None]
    if voted:
        chances = np.array([known[place].chance for place in voted], float)
        truths = label[voted].astype(float)
        of_votes = [tasks[place] for place in voted]
        figures.append(drawn_figure("brier", lambda at: brier(chances[at], truths[at]), of_votes))

        def gap(at: Places) -> float | None:
            return calibration_error(chances[at], truths[at])

        figures.append(drawn_figure("calibration_error", gap, of_votes))
    return figures


def _panel(rows: Sequence[Scored], rubric: Rubric) -> list[Figure]:
    """Krippendorff's alpha among the votes, where there are several."""
    units = [row.score.evidence.get("labels") or [] for row in rows]
    if max(map(len, units), default=0) < 2:
        return []
    table = coincidences(units, sorted(rubric.labels, key=lambda label: rubric.labels[label]))
    level: Any = "nominal" if rubric.name == "binary" else "ordinal"
    tasks = [row.task or row.task_id or row.trajectory_id for row in rows]
    name = f"alpha:{level}"
    return [drawn_figure(name, lambda at: krippendorff_alpha(table[at].sum(axis=0), level), tasks)]


def drawn_figure(
    name: str, statistic: Callable[[Places], float | None], tasks: Sequence[Any]
) -> Figure:
    """A figure whose interval comes from draws of whole tasks.

    Args:
        name: its name.
        statistic: makes the number of the places of some rows.
        tasks: the task of each row.
    """
    value = statistic(np.arange(len(tasks))) if tasks else None
    ends: Ends = (None, None, None) if value is None else resampled(statistic, tasks)
    return named_figure(name, value, ends, tasks)


def named_figure(
    name: str, value: float | None, ends: Ends, tasks: Sequence[Any], unscored: int = 0
) -> Figure:
    """A figure of a number and its interval; it says why there is none."""
    low, high, method = ends
    undefined = "the verdicts or the labels do not vary" if tasks else "nothing was scored"
    reason = f"it is undefined: {undefined}" if value is None else None
    if low is None and value is not None:
        method, reason = None, method
    count = len(tasks)
    return Figure(name, value, low, high, method, count, len(set(tasks)), unscored, reason=reason)


def _shares(known: Sequence[_Known]) -> list[VerdictShare]:
    """The share of successes at each verdict; means of votes are put together by quarters."""
    groups: dict[float, list[bool]] = {}
    for item in known:
        verdict = round(4 * (item.row.score.value or 0.0)) / 4
        groups.setdefault(verdict, []).append(item.label)
    return [
        VerdictShare(verdict, len(run), sum(run) / len(run), *wilson(sum(run), len(run)))
        for verdict, run in sorted(groups.items())
    ]


def _from_store(store: Store) -> dict[str, bool]:
    frame = store.scan("trajectories").select("trajectory_id", "success", "reward").collect()
    truths = {}
    for name, success, reward in frame.iter_rows():
        if success is not None or reward is not None:
            truths[name] = success if success is not None else is_success(reward)
    return truths


def _from_file(path: Path) -> dict[str, bool]:
    try:
        if path.suffix not in SUFFIXES:
            raise InputError(f"labels are read from {', '.join(SUFFIXES)}, not {path.name}")
        frame = read_frame(path)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise InputError(f"the labels {path} cannot be read: {error}") from None
    for column in ("trajectory_id", "label"):
        if column not in frame.columns:
            raise InputError(f"the labels {path} have no column {column}; add it")
    truths: dict[str, bool] = {}
    for number, (name, label) in enumerate(frame.select("trajectory_id", "label").iter_rows(), 1):
        if label is None:
            continue
        word = str(label).strip().lower()
        if word not in _TRUTHS:
            raise InputError(
                f"{path}, row {number}: the label {label!r} is no truth; write true or false"
            )
        if truths.setdefault(str(name), _TRUTHS[word]) != _TRUTHS[word]:
            raise InputError(f"{path}, row {number}: {name} has two labels; keep one of them")
    return truths
