"""The profile of runs: a few figures side by side, each as a place between centre and rim.

Without a choice these are ET-Agent's five (arXiv 2601.06860, ``radar/run.py``), as far as the
scores of the runs have them: correctness, efficiency, conciseness, successful execution, and the
length of reasoning, of which less is better.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from adp.eval.scorer import Figure
from adp.workflows.report_eval.model import EvaluatedRun, RadarAxis
from adp_schema.errors import UsageError

FEWEST, MOST = 3, 12
"""Axes of a profile."""

_LESS = ":less"
_NEAR = 3
"""Figures that are named in the place of an unknown one."""

_DEFAULT = (
    ("correctness", ("et_agent.headline", "et_agent.accuracy", "efficiency.correctness")),
    ("efficiency", ("et_agent.efficiency", "efficiency.efficiency")),
    ("conciseness", ("conciseness.judged_concise", "conciseness.concise")),
    ("execution", ("execution.execution_success:calls",)),
    (
        "reasoning length",
        tuple(
            f"reasoning_length.reasoning_{unit}{_LESS}"
            for unit in ("tokens", "recorded_tokens", "words", "chars")
        ),
    ),
)


@dataclass(frozen=True)
class _Wanted:
    """An axis that is asked for: its label, its figure, and whether less of it is better."""

    label: str
    figure: str
    less: bool


def radar(runs: Sequence[EvaluatedRun], chosen: Sequence[str] = ()) -> tuple[RadarAxis, ...]:
    """The axes of a profile.

    Args:
        runs: the runs.
        chosen: axes, ``[LABEL=][SCORER.]FIGURE[:less]`` each; none: ET-Agent's five, and nothing
            when the runs have fewer than three of them.

    Raises:
        UsageError: no run has such a figure, or there are too few or too many.
    """
    if chosen:
        if not FEWEST <= len(chosen) <= MOST:
            raise UsageError(
                f"a profile has {FEWEST} to {MOST} figures, not {len(chosen)}; give --radar FIGURE "
                "once for each"
            )
        known = {name for run in runs for name, _ in _named(run)}
        return tuple(_axis(_wanted(text, known), runs, strict=True) for text in chosen)
    axes = []
    for label, figures in _DEFAULT:
        for figure in figures:
            axis = _axis(_wanted(f"{label}={figure}", ()), runs, strict=False)
            if any(value is not None for value in axis.values):
                axes.append(axis)
                break
    return tuple(axes) if len(axes) >= FEWEST else ()


def _wanted(text: str, known: Collection[str]) -> _Wanted:
    less = text.endswith(_LESS)
    figure = text.removesuffix(_LESS).strip()
    label, equals, named = figure.partition("=")
    if figure in known or not equals:
        # Settings in the name of a scorer hold such signs, too.
        label, named = figure, figure
    if not named.strip():
        raise UsageError(f"--radar {text} names no figure; write [LABEL=][SCORER.]FIGURE[:less]")
    return _Wanted(label.strip() or named.strip(), named.strip(), less)


def _axis(wanted: _Wanted, runs: Sequence[EvaluatedRun], *, strict: bool) -> RadarAxis:
    figures = [_figure(run, wanted.figure) for run in runs]
    if strict and not any(figures):
        raise UsageError(_unknown(wanted.figure, {name for run in runs for name, _ in _named(run)}))
    known_figures = [figure for figure in figures if figure is not None]
    values = [None if figure is None else figure.value for figure in figures]
    share = not wanted.less and all(_is_share(figure) for figure in known_figures)
    places = tuple(_places(values, share=share, less=wanted.less))
    return RadarAxis(wanted.label, wanted.figure, wanted.less, share, tuple(values), places)


def _unknown(figure: str, known: Collection[str]) -> str:
    """The sentence for a figure that no run has: near ones, and where all of them are."""
    names = sorted(known)
    # The name may be right and its scorer wrong, or the other way round.
    metric = figure.rpartition(".")[2].lower()
    near = [name for name in names if metric == name.lower().rpartition(".")[2]]
    near += difflib.get_close_matches(figure, names, n=_NEAR)
    near += [name for name in names if metric and metric in name.lower()]
    listed = list(dict.fromkeys(near))[:_NEAR]
    hint = f"did you mean {' or '.join(listed)}? All" if listed else "all"
    return (
        f"--radar: these runs have no figure '{figure}'; {hint} stand in the section Scores of the "
        "report without --radar, and adp score computes others"
    )


def _figure(run: EvaluatedRun, name: str) -> Figure | None:
    """The figure of a run by its name, or by ``SCORER.NAME``; the first with a value."""
    matches = [figure for known, figure in _named(run) if known == name]
    return next(
        (figure for figure in matches if figure.value is not None), next(iter(matches), None)
    )


def _named(run: EvaluatedRun) -> Iterator[tuple[str, Figure]]:
    yield "success", run.success
    yield "reward", run.reward
    for scorer in run.scorers:
        for figure in scorer.figures:
            yield figure.name, figure
            for name in dict.fromkeys((scorer.name, scorer.label)):
                yield f"{name}.{figure.name}", figure


def _is_share(figure: Figure) -> bool:
    return not figure.amount and (figure.value is None or 0 <= figure.value <= 1)


def _places(values: Sequence[float | None], *, share: bool, less: bool) -> Iterator[float | None]:
    """Where values lie between the centre, 0, and the rim, 1.

    A share lies where it is. Of others the best run lies on the rim, and the rest in proportion to
    it: half of the most at half of the way, twice the least, where less is better, too.
    """
    known = [value for value in values if value is not None]
    for value in values:
        if value is None:
            yield None
        elif share:
            yield value
        elif less:
            best = max(min(known), 0.0)
            yield 1.0 if value <= best else best / value
        else:
            most = max(known)
            yield max(value, 0.0) / most if most > 0 else 0.0
