"""What an episode may use up."""

from __future__ import annotations

from pydantic import Field

from adp.eval.environment import Settings


class Limits(Settings):
    """Budgets of one episode. The one that is reached first cuts it: it is *truncated*."""

    max_turns: int | None = Field(default=30, ge=1, description="Turns of the agent.")
    max_calls: int | None = Field(default=None, ge=1, description="Calls of tools.")
    max_tokens: int | None = Field(default=None, ge=1, description="Tokens that the agent writes.")
    max_seconds: float | None = Field(default=None, gt=0, description="Wall time, in seconds.")

    def reached(self, turns: int, calls: int, tokens: int, seconds: float) -> str | None:
        """The name of the budget that is used up; None when there is some of each left."""
        used = {
            "max_turns": (turns, self.max_turns),
            "max_calls": (calls, self.max_calls),
            "max_tokens": (tokens, self.max_tokens),
            "max_seconds": (seconds, self.max_seconds),
        }
        for name, (value, limit) in used.items():
            if limit is not None and value >= limit:
                return name
        return None
