"""What an episode may use up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field, ValidationError

from adp.rollouts.environment import Settings
from adp_schema.errors import UsageError


class Limits(Settings):
    """Budgets of one episode. The one that is reached first cuts it: it is *truncated*."""

    max_turns: int | None = Field(default=30, ge=1)
    """Turns of the agent."""
    max_calls: int | None = Field(default=None, ge=1)
    """Calls of tools."""
    max_tokens: int | None = Field(default=None, ge=1)
    """Tokens that the agent writes."""
    max_seconds: float | None = Field(default=None, gt=0)
    """Wall time, in seconds."""

    def reached(self, turns: int, calls: int, tokens: int, seconds: float) -> str | None:
        """The name of the budget that is used up; None when there is some of each left."""
        used = {
            "max_turns": (turns, self.max_turns),
            "max_calls": (calls, self.max_calls),
            "max_tokens": (tokens, self.max_tokens),
            "max_seconds": (seconds, self.max_seconds),
        }
        return first_reached(used)


def first_reached(used: Mapping[str, tuple[float, float | None]]) -> str | None:
    """The first budget that is used up; None when there is some of each left.

    Args:
        used: what was used of a budget, and how much there is, by the name of the budget; None:
            there is no limit.
    """
    for name, (value, limit) in used.items():
        if limit is not None and value >= limit:
            return name
    return None


def limits_in(environment: Any, given: Limits) -> Limits:
    """The limits of episodes in an environment: those that are given, else its own.

    Args:
        environment: its attribute ``max_turns``, where it has one, is the default of that limit.
        given: limits; what was not set is free for the environment to say.

    Raises:
        UsageError: the attribute is no number of turns.
    """
    environment_limit = getattr(environment, "max_turns", None)
    if (
        environment_limit is None
        or callable(environment_limit)
        or "max_turns" in given.model_fields_set
    ):
        return given
    try:
        return Limits.model_validate(
            {**given.model_dump(exclude_unset=True), "max_turns": environment_limit}
        )
    except ValidationError as error:
        raise UsageError(
            f"max_turns of {type(environment).__name__} is {environment_limit!r}; "
            "it must be a number from 1"
        ) from error
