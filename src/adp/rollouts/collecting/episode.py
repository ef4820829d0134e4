"""One episode: a policy, or a policy and an expert, in an environment, until it ends.

Nothing that goes wrong in an episode is lost or stops others. What breaks is written into the
trajectory as ``error_type`` (`recorder.INFRASTRUCTURE`: no answer could be had from the model;
`recorder.ENVIRONMENT`, `recorder.POLICY`: their code raised, or answered what is no answer), with
``success`` null; the steps until then are kept. Only an error of the call itself (`UsageError` of
the policy or for an episode without a task, `MissingExtraError`) is raised, since every episode
would meet it.

When ``max_seconds`` run out, it matters who used them. The agent did when its turns were answered:
the episode is truncated. While one request to the policy or one call of the environment has taken
more than half of the time, nothing is known about the agent: the episode broke, with the reason
`TIMEOUT`. Judging has as much time of its own.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any, Self, TypeVar

from adp.rollouts.collecting.actor import Acted, Actor, ActorView, Past
from adp.rollouts.collecting.contract import (
    checked_outcome,
    checked_start,
    checked_turn,
    checked_verdict,
)
from adp.rollouts.collecting.foreign_code import BrokenEpisodeError, checked, guarded
from adp.rollouts.collecting.limits import Limits
from adp.rollouts.collecting.recorder import (
    ENVIRONMENT,
    INFRASTRUCTURE,
    POLICY,
    About,
    Recorder,
)
from adp.rollouts.collecting.rows import verdict_columns
from adp.rollouts.collecting.storable_values import mend_columns
from adp.rollouts.environment import AsyncEnvironment, Environment, as_async
from adp.rollouts.plugin_errors import error_text, stops
from adp.rollouts.policy import AgentLimitError, Request
from adp.rollouts.turns import ErrorType, Outcome, Result, Tool, Turn
from adp_schema.errors import UsageError
from adp_schema.ids import digest
from adp_schema.model import Trajectory

_T = TypeVar("_T")

TIMEOUT = "timeout"
"""The ``stop_reason`` of an episode whose time ran out while it waited for others."""

_CLOSE_SECONDS = 10.0
"""How long an environment may take to close when one of its calls does not return."""

CUT = ("length", "max_tokens", "max_output_tokens")
"""Words of servers for a turn that ended because the limit of its tokens was reached."""


def _cut(reason: str) -> dict[str, Any]:
    """The columns of an episode that a limit has cut."""
    return {"terminated": False, "truncated": True, "stop_reason": reason}


async def run_episode(
    about: About,
    environment: Environment | AsyncEnvironment,
    actor: Actor,
    limits: Limits | None = None,
) -> Trajectory:
    """Run one episode to its end and judge it.

    Args:
        about: the task, the attempt, the seed.
        environment: a fresh one; it is closed at the end.
        actor: who acts; `adp.rollouts.collecting.actor.Alone` for a policy alone.
        limits: budgets of the episode.

    Returns:
        The trajectory, with its alternates as ``branches``.

    Raises:
        UsageError: the environment cannot do the task, or the policy cannot be called like this.
        MissingExtraError: a package is missing.
    """
    return await RunningEpisode(about, as_async(environment), actor, limits or Limits()).run()


def turn_seed(seed: int, turn: int) -> int:
    """Seed of a turn, 31 bits: a hash, so that neighbours have nothing in common."""
    return int(digest(f"{seed}/{turn}".encode())[:8], 16) >> 1


class RunningEpisode:
    """An episode that is played: in one go by `run`, or turn by turn.

    Args:
        about: the task, the attempt, the seed.
        environment: a fresh one.
        actor: who acts.
        limits: budgets of the episode.
        call_limit: a turn that asks for more calls than these, all turns together, ends the
            episode, and its calls are not carried out; None: there is no such limit.

    Attributes:
        about: what is known of it.
        past: the turns that were carried out.
    """

    def __init__(
        self,
        about: About,
        environment: AsyncEnvironment,
        actor: Actor,
        limits: Limits,
        call_limit: int | None = None,
    ) -> None:
        self.about = about
        self.past: list[Past] = []
        self._environment = environment
        self._actor = actor
        self._limits, self._call_limit = limits, call_limit
        self._recorder = Recorder(about)
        self._view = ActorView(environment, self.past)
        self._calls = self._tokens = 0
        self._begun = False
        self._used = 0.0
        """Seconds that it was played before it was taken up last."""
        self._started = time.monotonic()
        self._waits: tuple[str, float] | None = None
        """For whom the episode waits, and since when."""
        self._late: BrokenEpisodeError | None = None

    async def run(self) -> Trajectory:
        """Play to the end and judge it."""
        try:
            return await self.judged(await self._ended(self._play))
        finally:
            await self.close()

    async def advance(self) -> dict[str, Any] | None:
        """Play one turn.

        Returns:
            The columns that say how it ended, for `judged`; None when it goes on.
        """
        self._started = time.monotonic()
        try:
            return await self._ended(self._next)
        finally:
            self._used = self._seconds()

    def fork(self, about: About, actor: Actor) -> Self:
        """An episode that goes on from here by itself.

        Raises:
            CannotForkError: the environment cannot be copied.
        """
        return self.gone_on_in(self._environment.fork(), about, actor)

    def gone_on_in(self, environment: AsyncEnvironment, about: About, actor: Actor) -> Self:
        """An episode that goes on from here in an environment that is in the same state."""
        branch = type(self)(about, environment, actor, self._limits, self._call_limit)
        branch._recorder = self._recorder.fork(about)
        branch.past += self.past
        branch._calls, branch._tokens = self._calls, self._tokens
        branch._begun, branch._used = self._begun, self._used
        return branch

    def note(self, info: Mapping[str, Any]) -> None:
        """Keep further keys in the column ``extra``."""
        self._recorder.note(info)

    async def close(self) -> None:
        """Free what it holds."""
        await guarded(POLICY, self._actor.close, quiet=True)
        await guarded(ENVIRONMENT, self._close, quiet=True)

    async def _close(self) -> None:
        hangs = self._waits is not None
        await asyncio.wait_for(self._environment.close(), _CLOSE_SECONDS if hangs else None)

    async def _ended(self, play: Callable[[], Awaitable[_T]]) -> _T | dict[str, Any]:
        """Play; where that ends it, return the columns that say how."""
        try:
            return await self._timed(play)
        except AgentLimitError as error:
            return _cut(error.reason)
        except BrokenEpisodeError as broken:
            return {
                "terminated": False,
                "error_type": broken.kind,
                "error_message": str(broken),
                "stop_reason": broken.stop,
            }

    def _seconds(self) -> float:
        """How long it was played."""
        return self._used + time.monotonic() - self._started

    async def _timed(self, play: Callable[[], Awaitable[_T]]) -> _T | dict[str, Any]:
        """Play until the time of the episode runs out."""
        limit = self._limits.max_seconds
        try:
            async with asyncio.timeout(None if limit is None else limit - self._used):
                return await play()
        except TimeoutError:
            if self._waits is not None:
                self._note_late(*self._waits)
            if self._late is not None:
                raise self._late from None
            return _cut("max_seconds")

    def _note_late(self, kind: str, began: float) -> None:
        """Note whom it waited for when the time ran out, if that took more than half of it."""
        now, limit = time.monotonic(), self._limits.max_seconds
        if limit is None or self._seconds() < limit:
            return
        if now - began > limit / 2 or (not self.past and kind == ENVIRONMENT):
            whom = "the environment" if kind == ENVIRONMENT else "an answer of the policy"
            text = (
                f"the {limit:g} s of the episode (max_seconds) ran out while it waited for {whom}"
            )
            self._late = BrokenEpisodeError(
                kind if kind == ENVIRONMENT else INFRASTRUCTURE, text, TIMEOUT
            )

    async def _asked(self, kind: str, method: Callable[..., Any], *args: Any, **given: Any) -> Any:
        """Call foreign code whose time counts."""
        began = time.monotonic()
        self._waits = (kind, began)
        try:
            result = await guarded(kind, method, *args, **given)
        except Exception:  # not when it is cut: then the call may still be under way
            self._waits = None
            raise
        self._waits = None
        self._note_late(kind, began)  # what runs in this thread cannot be cut
        return result

    async def judged(self, columns: dict[str, Any]) -> Trajectory:
        """The trajectory, judged by the environment.

        Args:
            columns: how it ended, as `advance` says.
        """
        self._recorder.note(self._actor.summary())
        trajectory = self._recorder.end(**columns)
        if "error_type" in columns:
            return trajectory
        results: dict[str, Any]
        dropped: dict[str, str] = {}
        try:
            given = await self._score(trajectory)
            verdict = checked(ENVIRONMENT, checked_verdict, given)
        except UsageError as error:
            results = {"error_type": ENVIRONMENT, "error_message": f"scoring: {error}"}
        except BrokenEpisodeError as broken:
            results = {"error_type": broken.kind, "error_message": f"scoring: {broken}"}
            if broken.stop == TIMEOUT:
                results["stop_reason"] = TIMEOUT
        else:
            results, dropped = checked(ENVIRONMENT, verdict_columns, verdict)
        for name, value in results.items():
            setattr(trajectory, name, value)
        mend_columns(trajectory, dropped)
        return trajectory

    async def _score(self, trajectory: Trajectory) -> Any:
        """What the environment says; a judge that never returns costs one episode, not the run."""
        limit = self._limits.max_seconds
        try:
            async with asyncio.timeout(limit):
                return await guarded(ENVIRONMENT, self._environment.score, trajectory)
        except TimeoutError:
            self._waits = (ENVIRONMENT, time.monotonic())  # it may still be under way
            text = f"it took more than {limit:g} s, as long as the episode may take (max_seconds)"
            raise BrokenEpisodeError(ENVIRONMENT, text, TIMEOUT) from None

    async def _play(self) -> dict[str, Any]:
        columns = None
        while columns is None:
            columns = await self._next()
        return columns

    async def _next(self) -> dict[str, Any] | None:
        """Play one turn, the first one with what comes before it."""
        if not self._begun:
            await self._begin()
            self._begun = True
            used = self._used_up()
            if used is not None:
                return used
        return await self._turn() or self._used_up()

    def _used_up(self) -> dict[str, Any] | None:
        """The columns of an episode whose budget is used up; None when there is some left."""
        used = self._reached()
        if used is None:
            return None
        if used == "max_seconds" and self._late is not None:
            raise self._late
        return _cut(used)

    async def _begin(self) -> None:
        about = self.about
        try:
            given = await self._asked(
                ENVIRONMENT, self._environment.reset, about.task, seed=about.seed
            )
        except UsageError as error:
            if about.task is None:
                raise
            # One task that cannot be done does not stop the others.
            raise BrokenEpisodeError(ENVIRONMENT, str(error), "task") from error
        start = checked(ENVIRONMENT, checked_start, given)
        checked(ENVIRONMENT, self._recorder.begin, start)

    async def _turn(self) -> dict[str, Any] | None:
        tools = self._offered()
        number = len(self.past)
        request = Request(
            messages=self._recorder.messages,
            tools=tools,
            task=self.about.task,
            attempt=self.about.attempt,
            turn=number,
            seed=turn_seed(self.about.seed, number),
        )
        given = await self._asked(POLICY, self._actor.act, request, self._view)
        given = replace(given, turn=checked(POLICY, checked_turn, given.turn))
        acted = replace(given, turn=self._recorder.numbered(given.turn))
        outcome = self._refused(acted.turn) or await self._step(acted.turn)
        self._count(acted)
        before = self._recorder.steps
        checked(ENVIRONMENT, self._recorder.turn, given.turn, acted, outcome)
        self.past.append(Past(acted, outcome))
        reflection = await self._asked(POLICY, self._actor.reflect, request, self._view)
        checked(POLICY, self._recorder.reflect, before, reflection)
        if outcome.terminated or outcome.truncated:
            return _ending(acted.turn, outcome)
        return None

    async def _step(self, turn: Turn) -> Outcome:
        try:
            given = await self._asked(ENVIRONMENT, self._environment.step, turn)
        except UsageError as error:
            # The episode is under way, so the call itself was right.
            raise BrokenEpisodeError(ENVIRONMENT, str(error), "refused") from error
        return checked(ENVIRONMENT, checked_outcome, given, turn)

    def _refused(self, turn: Turn) -> Outcome | None:
        """The end of an episode that asks for too many calls; None when it does not."""
        limit = self._call_limit
        if limit is None or not turn.calls or self._calls + len(turn.calls) <= limit:
            return None
        text = f"Error: this is no more carried out; an episode has {limit} calls"
        results = tuple(
            Result(text, call_id=call.call_id, name=call.name, error=ErrorType.LIMIT)
            for call in turn.calls
        )
        return Outcome(results=results, truncated=True, stop_reason="call_limit")

    def _offered(self) -> list[Tool]:
        try:
            tools = list(self._environment.tools())
            self._recorder.offer(tools)
        except BaseException as error:
            if stops(error):
                raise
            raise BrokenEpisodeError(ENVIRONMENT, f"tools: {error_text(error)}") from error
        return tools

    def _count(self, acted: Acted) -> None:
        self._calls += len(acted.turn.calls)
        written = acted.turn.usage.tokens_out
        self._tokens += written if isinstance(written, int) and written > 0 else 0

    def _reached(self) -> str | None:
        seconds = self._seconds()
        return self._limits.reached(len(self.past), self._calls, self._tokens, seconds)


def _ending(last: Turn, outcome: Outcome) -> dict[str, Any]:
    """How the environment ended the episode.

    An answer that the model's own limit of tokens cut is an answer that was not finished.
    """
    if last.stop_reason in CUT and not last.calls and not outcome.truncated:
        return _cut("length")
    return {
        "terminated": outcome.terminated,
        "truncated": outcome.truncated,
        "stop_reason": outcome.stop_reason,
    }
