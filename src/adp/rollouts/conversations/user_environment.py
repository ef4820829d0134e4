"""An environment in which a person says what comes next: an answer does not end the episode."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from adp.rollouts.environment import AsyncEnvironment, Start, Verdict
from adp.rollouts.turns import ErrorType, Outcome, Result, Tool, Turn
from adp_schema.model import Task, Trajectory

STOPPED = "Error: the user stopped this call before it ended"


class UserEnvironment:
    """The tools of another environment, whose calls a person watches.

    Nothing is judged: whether an answer was right is not known.

    Args:
        inner: the environment whose calls are carried out.
        watch: told each turn before its calls are carried out.
    """

    def __init__(self, inner: AsyncEnvironment, watch: Callable[[Turn], None]) -> None:
        self._inner, self._watch = inner, watch

    def tools(self) -> Sequence[Tool]:
        """The tools on offer now."""
        return self._inner.tools()

    async def reset(self, task: Task | None = None, *, seed: int | None = None) -> Start:
        """Begin with what the user says first."""
        return await self._inner.reset(task, seed=seed)

    async def step(self, turn: Turn) -> Outcome:
        """Carry out the calls of a turn; after an answer it is the user's turn."""
        self._watch(turn)
        if turn.malformed is None and not turn.calls:
            return Outcome(answer=turn.text)
        try:
            return await self._inner.step(turn)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.uncancel() > 0 or not turn.calls:
                raise
        # What the calls have done by then stays done, so they are written down.
        return Outcome(
            tuple(
                Result(STOPPED, call.call_id, call.name, ErrorType.EXECUTION) for call in turn.calls
            ),
            stop_reason="stopped",
        )

    async def score(self, trajectory: Trajectory) -> Verdict:
        """Nothing is known."""
        return Verdict()

    def fork(self) -> UserEnvironment:
        """An independent copy.

        Raises:
            CannotForkError: the environment cannot be copied.
        """
        return UserEnvironment(self._inner.fork(), self._watch)

    async def close(self) -> None:
        """Close the environment."""
        await self._inner.close()
