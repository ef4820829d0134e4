"""The section of a report that shows the profile of its runs."""

from __future__ import annotations

from adp.workflows.report_eval.cells import plain_number, run_cell, run_table
from adp.workflows.report_eval.model import Evaluation, RadarAxis
from adp.workflows.report_page.model import Row, Section
from adp.workflows.report_page.words import name, percent


def radar_section(evaluation: Evaluation) -> Section:
    """The profile: a picture, and its numbers."""
    if not evaluation.radar:
        return Section("radar", "Profile")
    rows = [row for axis in evaluation.radar for row in _rows(evaluation, axis)]
    heads = ["axis", "figure", "run", "#value", "#place", "better"]
    line = (
        "Each axis goes from the centre to the rim. A share lies where it is, 100 % on the rim. Of "
        "other figures the best of these runs lies on the rim and the rest in proportion to it, so "
        "their places depend on which runs are compared. A polygon is open where a run has no such "
        "figure."
    )
    made = run_table(evaluation, "Profile", heads, rows)
    return Section("radar", "Profile", (line,), ("radar",), (made,))


def _rows(evaluation: Evaluation, axis: RadarAxis) -> list[Row]:
    return [
        (
            name(axis.label, 60),
            name(axis.figure, 60),
            run_cell(run),
            percent(value) if axis.share else plain_number(value),
            plain_number(place),
            "less" if axis.less else "more",
        )
        for run, value, place in zip(evaluation.runs, axis.values, axis.places, strict=True)
    ]
