"""Rows of scores for tests."""

from __future__ import annotations

from adp.eval.scorer import Score, Scored


def scored(value, task="t", attempt=0, metric="success", name=None):
    """A row; its trajectory is named by task and attempt."""
    reason = None if value is not None else "not known"
    return Scored(name or f"{task}/{attempt}", task, attempt, Score(metric, value, reason))
