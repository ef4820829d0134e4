"""The section of a report that shows what runs are able to: tool use, planning, reasoning, ...

Its numbers are those of the scorer ``capability``; without scores of it there is no section.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from adp.core.json_values import json_object
from adp.eval.scorer import Figure
from adp.eval.scorers.capability import ASSIGNED, CAPABILITIES, OVERALL
from adp.rollouts.trajectory_reading import number_or_none
from adp.workflows.report_eval.cells import (
    note_of,
    number_and_ends,
    plain_number,
    run_cell,
    run_table,
)
from adp.workflows.report_eval.model import (
    CapabilityFigure,
    CapabilityProfile,
    EvaluatedRun,
    Evaluation,
    RadarAxis,
    ScorerFigures,
)
from adp.workflows.report_page.model import Row, Section
from adp.workflows.report_page.words import MISSING, name, number

SCORER = "capability"


def capability_profiles(runs: Sequence[EvaluatedRun]) -> tuple[CapabilityProfile, ...]:
    """The capabilities of each run, once for each set of settings of the scorer.

    Args:
        runs: the runs.
    """
    return tuple(
        _profile(run, scorer) for run in runs for scorer in run.scorers if scorer.name == SCORER
    )


def _profile(run: EvaluatedRun, scorer: ScorerFigures) -> CapabilityProfile:
    figures = {figure.name: figure for figure in scorer.figures}
    given = json_object(scorer.settings).get("weights")
    given = given if isinstance(given, dict) else {}
    known = {n: number_or_none(given.get(n)) or 0.0 for n in CAPABILITIES}
    total = sum(known.values())
    weights = {n: weight / total if total else 0.0 for n, weight in known.items()}
    listed = [
        CapabilityFigure(n, weights.get(n), figures[n])
        for n in (OVERALL, *CAPABILITIES)
        if n in figures
    ]
    assigned = figures.get(ASSIGNED, Figure(ASSIGNED, None))
    whole = assigned.count + assigned.unscored
    unassigned = round(assigned.count * (1 - assigned.value)) if assigned.value is not None else 0
    return CapabilityProfile(run.name, scorer.label, tuple(listed), unassigned, whole)


def capability_axes(evaluation: Evaluation) -> tuple[RadarAxis, ...]:
    """The axes of the picture: each capability that a run has, by the first settings.

    Args:
        evaluation: the numbers.

    Returns:
        Three axes or more; none where fewer capabilities were scored.
    """
    if not evaluation.capabilities:
        return ()
    label = evaluation.capabilities[0].scorer
    values = {
        profile.run: {item.name: item.figure.value for item in profile.figures}
        for profile in evaluation.capabilities
        if profile.scorer == label
    }
    axes = []
    for capability in CAPABILITIES:
        row = tuple(values.get(run.name, {}).get(capability) for run in evaluation.runs)
        if any(value is not None for value in row):
            title = capability.replace("_", " ")
            axes.append(RadarAxis(title, f"{SCORER}.{capability}", False, True, row, row))
    return tuple(axes) if len(axes) >= _FEWEST else ()


_FEWEST = 3


def capability_section(evaluation: Evaluation) -> Section:
    """The capabilities of the runs: a table for each set of settings, and a picture."""
    profiles = evaluation.capabilities
    if not profiles:
        return Section("capabilities", "Capabilities")
    runs = {run.name: run for run in evaluation.runs}
    heads = ["capability", "run", "#score", "#95 % interval", "#weight", "#samples", "#tasks",
             "#unscored", "#broken", "note"]  # fmt: skip
    tables = []
    for label in dict.fromkeys(profile.scorer for profile in profiles):
        rows = [
            row
            for profile in profiles
            if profile.scorer == label
            for row in _rows(profile, runs[profile.run])
        ]
        order = {row[0]: place for place, row in reversed(list(enumerate(rows)))}
        rows.sort(key=lambda row: order[row[0]])
        tables.append(run_table(evaluation, name(label, 300), heads, rows))
    line = (
        "Each task is about one capability, by what it says of itself, and counts there alone. "
        "Overall is the mean by weight; its interval is that of a stratified mean, clustered by "
        "task."
    )
    return Section(
        "capabilities", "Capabilities", (line, *_unassigned(profiles)), ("capabilities",),
        tuple(tables),
    )  # fmt: skip


def _unassigned(profiles: Sequence[CapabilityProfile]) -> Iterator[str]:
    counts = [(item.run, item.unassigned, item.episodes) for item in profiles if item.unassigned]
    for run, unassigned, episodes in dict.fromkeys(counts):
        yield (
            f"Of {number(episodes)} episodes of {name(run)}, {number(unassigned)} belong to tasks "
            "that name no capability; they count in none."
        )


def _rows(profile: CapabilityProfile, run: EvaluatedRun) -> Iterator[Row]:
    for item in profile.figures:
        figure = item.figure
        counts = (figure.count, figure.tasks, figure.unscored, figure.infrastructure)
        weight = MISSING if item.weight is None else plain_number(item.weight)
        label = name(item.name.replace("_", " "))
        yield (label, run_cell(run), *number_and_ends(figure), weight, *map(number, counts),
               note_of(figure))  # fmt: skip
