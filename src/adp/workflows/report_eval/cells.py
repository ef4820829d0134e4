"""How the numbers of a report about evaluations are written in its cells."""

from __future__ import annotations

from collections.abc import Sequence

from adp.eval.scorer import Figure
from adp.stores.composition.model import Count
from adp.stores.stats import Recorded
from adp.workflows.report_data.layout import TextTable, table
from adp.workflows.report_data.words import MISSING, cut_middle, name, number
from adp.workflows.report_eval.model import EvaluatedRun, Evaluation

RUN = 28
"""Characters of the name of a run in a cell."""

_NOTHING, _TINY = 1e-9, 0.001


def run_cell(run: EvaluatedRun) -> str:
    """The name of a run in a cell."""
    return cut_middle(name(run.name), RUN)


def run_table(
    evaluation: Evaluation, title: str, heads: Sequence[str], rows: Sequence[tuple[str, ...]]
) -> TextTable:
    """A table without the columns that say nothing: the run when there is one, empty notes."""
    idle = {
        place
        for place, head in enumerate(heads)
        if (head == "run" and len(evaluation.runs) == 1)
        or (head == "note" and all(row[place] == MISSING for row in rows))
    }
    kept = [place for place in range(len(heads)) if place not in idle] if len(heads) > 1 else [0]
    return table(
        title, [heads[place] for place in kept], [tuple(row[at] for at in kept) for row in rows]
    )


def name_list(counts: Sequence[Count], most: int = 3) -> str:
    """``a, b and 2 more``."""
    if not counts:
        return MISSING
    listed = ", ".join(name(count.name, 60) for count in counts[:most])
    return f"{listed} and {len(counts) - most} more" if len(counts) > most else listed


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


def percent_ends(figure: Figure) -> str:
    """An interval in percent."""
    if figure.low is None or figure.high is None:
        return MISSING
    return f"{100 * figure.low:.1f} to {100 * figure.high:.1f} %"


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
    if value.total is None or not value.recorded:
        return MISSING
    mean = value.total / value.recorded
    return f"{mean:,.0f}" if mean >= 1000 else f"{mean:.3g}"


def total_of(value: Recorded) -> str:
    """The sum of what is recorded."""
    if value.total is None:
        return MISSING
    return f"{value.total:,.0f}" if value.total >= 1000 else f"{value.total:.4g}"


def per(value: Recorded, count: int) -> str:
    """A sum over a count."""
    if value.total is None or not count:
        return MISSING
    result = value.total / count
    return f"{result:,.0f}" if result >= 1000 else f"{result:.3g}"
