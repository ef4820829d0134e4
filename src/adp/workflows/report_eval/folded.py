"""Rows of tables, those that miss for one reason as one row."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from adp.eval.metrics.folding import groups, together
from adp.eval.scorer import Figure
from adp.workflows.report_eval.cells import note_of, run_cell, share_cells
from adp.workflows.report_eval.model import Comparison, EvaluatedRun, TaskGroup
from adp.workflows.report_page.model import Row
from adp.workflows.report_page.words import name, number

_LISTED = 12
_OFTEN = re.compile(r" \(\d+ of \d+\)$")


def reasons(missing: Sequence[tuple[str, str, str, int]]) -> list[Row]:
    """Why scores are missing: a row for each reason and run, whatever number of scorers say it.

    Args:
        missing: scorer, run, reason, number of scores.
    """
    results: dict[tuple[str, str], list[tuple[str, int]]] = {}
    for scorer, run, reason, count in missing:
        results.setdefault((run, reason), []).append((scorer, count))
    return [
        (together(list(dict.fromkeys(scorer for scorer, _ in result))), run, reason,
         number(sum(count for _, count in result)))
        for (run, reason), result in results.items()
    ]  # fmt: skip


def unchanged(comparisons: Sequence[Comparison]) -> set[tuple[str | None, str]]:
    """Scorer and metric of what is the same in every task of all runs; never success itself."""
    known = [
        comparison for comparison in comparisons if comparison.difference.figure.value is not None
    ]
    kept = {
        (item.scorer, item.metric)
        for item in known
        if item.scorer is None or item.difference.better or item.difference.worse
    }
    return {(item.scorer, item.metric) for item in known} - kept


def alike(names: Sequence[str]) -> Iterator[str]:
    """A sentence about figures that are unchanged, if there are any."""
    figures = list(dict.fromkeys(names))
    more = f" and {len(figures) - _LISTED:,} more" if len(figures) > _LISTED else ""
    listed = ", ".join(figures[:_LISTED])
    if figures:
        yield f"No run differs from the baseline in any task in: {listed}{more}."


def group_rows(parts: Sequence[tuple[EvaluatedRun, TaskGroup]]) -> list[Row]:
    """Success by parts of the tasks; parts of a run without a number for one reason together."""
    kinds = [
        (run_cell(run), _why(group.success)) if group.success.value is None else None
        for run, group in parts
    ]
    rows = []
    for same in groups(parts, kinds):
        run, first = same[0]
        figures = [group.success for _, group in same]
        counts = (
            number(sum(getattr(figure, what) for figure in figures))
            for what in ("count", "tasks", "unscored")
        )
        names = together([name(group.name) for _, group in same])
        note = note_of(first.success) if len(same) == 1 else name(_why(first.success), 300)
        rows.append((names, run_cell(run), *share_cells(first.success), *counts, note))
    return rows


def pass_rows(run: EvaluatedRun) -> Iterator[Row]:
    """pass@k and pass^k of a run, a row for each k; those undefined for one reason together."""
    figures = {figure.name: figure for figure in run.passes}
    shown = [item for item in run.passes if item.name.startswith("pass@")]
    kinds = [item.reason if item.value is None else None for item in shown]
    for same in groups(shown, kinds):
        first = same[0]
        both = (first, figures.get(first.name.replace("@", "^"), first))
        cells = [cell for item in both for cell in share_cells(item)]
        ks = together([item.name.removeprefix("pass@") for item in same])
        yield (run_cell(run), ks, *cells, note_of(first))


def _why(figure: Figure) -> str:
    """Why there is no number, without how often."""
    return _OFTEN.sub("", figure.reason or "")
