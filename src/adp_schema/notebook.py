"""Stores and rows as tables in notebooks. All text of a trace is escaped and cut.

It takes them as they come, since the classes of rows and stores call it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from itertools import islice
from typing import Any

ROWS, CHARACTERS = 20, 300
"""Rows of a table, and characters of a cell."""

_STEPS = ("step", "source", "text", "calls", "results")


def store_html(store: Any) -> str:
    """A store: how many trajectories it holds, and the first of them."""
    facts = ("trajectory_id", "agent_model", "success", "reward")
    rows = (
        [*(getattr(trajectory, name) for name in facts), len(trajectory.steps)]
        for trajectory in islice(store.trajectories(), ROWS)
    )
    return _table(repr(store), (*facts, "steps"), rows, len(store))


def row_html(row: Any) -> str:
    """A trajectory or a step as its steps; any other row as names and values."""
    steps = getattr(row, "steps", [row] if hasattr(row, "calls") else None)
    if steps is not None:
        return _table(repr(row), _STEPS, map(_cells, steps[:ROWS]), len(steps))
    values = [(name, value) for name, value in row if value is not None]
    return _table(type(row).__name__, ("column", "value"), values, len(values))


def _cells(step: Any) -> Sequence[Any]:
    calls = [f"{call.name or call.kind}({call.arguments or ''})" for call in step.calls]
    results = [observation.text or "" for observation in step.observations]
    return step.step, step.source, step.text, "\n".join(calls), "\n".join(results)


def _table(title: str, heads: Sequence[str], rows: Iterable[Sequence[Any]], count: int) -> str:
    head = "".join(f"<th>{name}</th>" for name in heads)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    more = f"<p>and {count - ROWS:,} more</p>" if count > ROWS else ""
    return f"<p>{escape(title)}</p><table><tr>{head}</tr>{body}</table>{more}"


def _cell(value: Any) -> str:
    text = "" if value is None else str(value)
    cut = text if len(text) <= CHARACTERS else text[:CHARACTERS] + "…"
    return f'<td style="text-align:left;white-space:pre-wrap">{escape(cut)}</td>'
