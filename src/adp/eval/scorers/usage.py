"""What a run used: calls, tokens, seconds, dollars."""

from __future__ import annotations

from collections.abc import Iterable

from adp.rollouts.trajectory_reading import agent_steps, number_or_none
from adp_schema.model import Trajectory


def tokens_of(trajectory: Trajectory) -> float | None:
    """Tokens of prompts and answers; None when nothing is recorded."""
    totals = (trajectory.total_tokens_in, trajectory.total_tokens_out)
    if any(value is not None for value in totals):
        return _sum(totals)
    steps = [step.row for step in agent_steps(trajectory)]
    return _sum(value for step in steps for value in (step.tokens_in, step.tokens_out))


def written_tokens(trajectory: Trajectory) -> float | None:
    """Tokens that the model wrote; None when nothing is recorded."""
    steps = _sum(step.row.tokens_out for step in agent_steps(trajectory))
    return steps if steps is not None else _sum([trajectory.total_tokens_out])


def cost_of(trajectory: Trajectory) -> float | None:
    """Cost in US dollars; None when nothing is recorded."""
    if trajectory.total_cost_usd is not None:
        return _sum([trajectory.total_cost_usd])
    return _sum(step.row.cost_usd for step in agent_steps(trajectory))


def seconds_of(trajectory: Trajectory) -> float | None:
    """How long the run took; else how long its steps and calls took; None when unknown."""
    start, end = trajectory.started_at, trajectory.ended_at
    if start is not None and end is not None and (start.tzinfo is None) == (end.tzinfo is None):
        seconds = (end - start).total_seconds()
        if seconds >= 0:
            return seconds
    times = [step.duration_ms for step in trajectory.steps]
    times += [result.duration_ms for step in trajectory.steps for result in step.observations]
    total = _sum(times)
    return None if total is None else total / 1000


def _sum(values: Iterable[float | None]) -> float | None:
    """The sum of what is known and not negative; None when nothing is."""
    known = [number for value in values if (number := number_or_none(value)) is not None]
    known = [number for number in known if number >= 0]
    return number_or_none(sum(known)) if known else None
