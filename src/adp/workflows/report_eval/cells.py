"""How the numbers of a report about evaluations are written in its cells."""

from __future__ import annotations

from collections.abc import Sequence

from adp.eval.scorer import Figure
from adp.stores.stats import Recorded
from adp.workflows.report_eval.model import EvaluatedRun, Evaluation
from adp.workflows.report_page.model import Row, TextTable, table
from adp.workflows.report_page.words import (
    MISSING,
    cut_middle,
    name,
    number,
    percent,
    percents,
)

RUN = 28
"""Characters of the name of a run in a cell."""

_NOTHING, _TINY = 1e-9, 0.001


def run_cell(run: EvaluatedRun) -> str:
    """The name of a run in a cell."""
    return cut_middle(name(run.name), RUN)


def run_table(
    evaluation: Evaluation, title: str, heads: Sequence[str], rows: Sequence[Row]
) -> TextTable:
    """A table that does not name the run when there is one."""
    return table(title, heads, rows, left_out=["run"] if len(evaluation.runs) == 1 else [])


def span(attempts: tuple[int, int] | None) -> str:
    """``4``, or ``3 to 4``."""
    if attempts is None:
        return MISSING
    low, high = attempts
    return number(low) if low == high else f"{number(low)} to {number(high)}"


def plain_number(value: float | None) -> str:
    """A number with three digits after the point; fewer when it is large, more when it is tiny."""
    if value is None:
        return MISSING
    if _NOTHING < abs(value) < _TINY:
        return f"{value:.2g}"
    return f"{value:.3f}" if abs(value) < 100 else f"{value:,.1f}"


def number_and_ends(figure: Figure) -> tuple[str, str]:
    """A figure and its interval."""
    known = figure.low is not None and figure.high is not None
    ends = f"{plain_number(figure.low)} to {plain_number(figure.high)}" if known else MISSING
    return plain_number(figure.value), ends


def share_cells(figure: Figure) -> tuple[str, str]:
    """A share and its interval, in percent."""
    return percent(figure.value), percents(figure.low, figure.high)


def note_of(figure: Figure) -> str:
    """Why there is no number."""
    return name(figure.reason, 300) if figure.reason else MISSING


def signed(value: float | None) -> str:
    """A difference."""
    if value is None:
        return MISSING
    if _NOTHING < abs(value) < _TINY:
        return f"{value:+.2g}"
    # What is 0 but for rounding is +0.000.
    value = value if abs(value) > _NOTHING else 0.0
    return f"{value:+.3f}" if abs(value) < 100 else f"{value:+,.1f}"


def signed_ends(figure: Figure) -> str:
    """The interval of a difference."""
    if figure.low is None or figure.high is None:
        return MISSING
    return f"{signed(figure.low)} to {signed(figure.high)}"


def p_value(value: float | None) -> str:
    """A p-value."""
    if value is None:
        return MISSING
    return f"{value:.3f}" if value >= 0.001 else "< 0.001"


def mean_of(value: Recorded) -> str:
    """The mean of what is recorded."""
    return _amount(value.mean)


def per(value: Recorded, count: int) -> str:
    """A sum over a count."""
    return _amount(value.total / count if value.total is not None and count else None)


def _amount(value: float | None) -> str:
    if value is None:
        return MISSING
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"
