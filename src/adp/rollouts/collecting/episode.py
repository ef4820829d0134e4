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
`TIMEOUT`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from adp.rollouts.collecting.actor import Acted, Actor, ActorView, Past
from adp.rollouts.collecting.contract import (
    WrongAnswerError,
    checked_outcome,
    checked_start,
    checked_turn,
    checked_verdict,
)
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
from adp.rollouts.policy import AgentLimitError, InfrastructureError, Request
from adp.rollouts.turns import Outcome, Tool, Turn
from adp_schema.errors import MissingExtraError, UsageError
from adp_schema.ids import digest
from adp_schema.model import Trajectory

_T = TypeVar("_T")

TIMEOUT = "timeout"
"""The ``stop_reason`` of an episode whose time ran out while it waited for others."""

_CLOSE_SECONDS = 10.0
"""How long an environment may take to close when one of its calls does not return."""

CUT = ("length", "max_tokens", "max_output_tokens")
"""Words of servers for a turn that ended because the limit of its tokens was reached."""


class _Broken(Exception):
    """Something broke that is no fault of the agent's."""

    def __init__(self, kind: str, reason: str, stop: str | None = None) -> None:
        super().__init__(reason)
        self.kind, self.stop = kind, stop or kind


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
    return await _Episode(about, as_async(environment), actor, limits or Limits()).run()


def turn_seed(seed: int, turn: int) -> int:
    """Seed of a turn, 31 bits: a hash, so that neighbours have nothing in common."""
    return int(digest(f"{seed}/{turn}".encode())[:8], 16) >> 1


class _Episode:
    def __init__(
        self, about: About, environment: AsyncEnvironment, actor: Actor, limits: Limits
    ) -> None:
        self._about = about
        self._environment = environment
        self._actor = actor
        self._limits = limits
        self._recorder = Recorder(about)
        self._past: list[Past] = []
        self._view = ActorView(environment, self._past)
        self._calls = self._tokens = 0
        self._started = time.monotonic()
        self._waits: tuple[str, float] | None = None
        """For whom the episode waits, and since when."""
        self._late: _Broken | None = None

    async def run(self) -> Trajectory:
        try:
            return await self._judged(await self._ended())
        finally:
            await _guarded(POLICY, self._actor.close, quiet=True)
            await _guarded(ENVIRONMENT, self._close, quiet=True)

    async def _close(self) -> None:
        hangs = self._waits is not None
        await asyncio.wait_for(self._environment.close(), _CLOSE_SECONDS if hangs else None)

    async def _ended(self) -> dict[str, Any]:
        """Play to the end; return the columns that say how it ended."""
        try:
            return await self._timed()
        except AgentLimitError as error:
            return _cut(error.reason)
        except _Broken as broken:
            return {
                "terminated": False,
                "error_type": broken.kind,
                "error_message": str(broken),
                "stop_reason": broken.stop,
            }

    async def _timed(self) -> dict[str, Any]:
        """Play until the time of the episode runs out."""
        try:
            async with asyncio.timeout(self._limits.max_seconds):
                return await self._play()
        except TimeoutError:
            if self._waits is not None:
                self._note_late(*self._waits)
            if self._late is not None:
                raise self._late from None
            return _cut("max_seconds")

    def _note_late(self, kind: str, began: float) -> None:
        """Note whom it waited for when the time ran out, if that took more than half of it."""
        now, limit = time.monotonic(), self._limits.max_seconds
        if limit is None or now - self._started < limit:
            return
        if now - began > limit / 2 or (not self._past and kind == ENVIRONMENT):
            whom = "the environment" if kind == ENVIRONMENT else "an answer of the policy"
            text = (
                f"the {limit:g} s of the episode (max_seconds) ran out while it waited for {whom}"
            )
            self._late = _Broken(kind if kind == ENVIRONMENT else INFRASTRUCTURE, text, TIMEOUT)

    async def _asked(self, kind: str, method: Callable[..., Any], *args: Any, **given: Any) -> Any:
        """Call foreign code whose time counts."""
        began = time.monotonic()
        self._waits = (kind, began)
        try:
            result = await _guarded(kind, method, *args, **given)
        except Exception:  # not when it is cut: then the call may still be under way
            self._waits = None
            raise
        self._waits = None
        self._note_late(kind, began)  # what runs in this thread cannot be cut
        return result

    async def _judged(self, columns: dict[str, Any]) -> Trajectory:
        self._recorder.note(self._actor.summary())
        trajectory = self._recorder.end(**columns)
        if "error_type" in columns:
            return trajectory
        results: dict[str, Any]
        dropped: dict[str, str] = {}
        try:
            given = await _guarded(ENVIRONMENT, self._environment.score, trajectory)
            verdict = _checked(ENVIRONMENT, checked_verdict, given)
        except UsageError as error:
            results = {"error_type": ENVIRONMENT, "error_message": f"scoring: {error}"}
        except _Broken as broken:
            results = {"error_type": broken.kind, "error_message": f"scoring: {broken}"}
        else:
            results, dropped = _checked(ENVIRONMENT, verdict_columns, verdict)
        for name, value in results.items():
            setattr(trajectory, name, value)
        mend_columns(trajectory, dropped)
        return trajectory

    async def _play(self) -> dict[str, Any]:
        about = self._about
        try:
            given = await self._asked(
                ENVIRONMENT, self._environment.reset, about.task, seed=about.seed
            )
        except UsageError as error:
            if about.task is None:
                raise
            # One task that cannot be done does not stop the others.
            raise _Broken(ENVIRONMENT, str(error), "task") from error
        start = _checked(ENVIRONMENT, checked_start, given)
        _checked(ENVIRONMENT, self._recorder.begin, start)
        while True:
            used = self._reached()
            if used is not None:
                if used == "max_seconds" and self._late is not None:
                    raise self._late
                return _cut(used)
            columns = await self._turn()
            if columns is not None:
                return columns

    async def _turn(self) -> dict[str, Any] | None:
        tools = self._offered()
        number = len(self._past)
        request = Request(
            messages=self._recorder.messages,
            tools=tools,
            task=self._about.task,
            attempt=self._about.attempt,
            turn=number,
            seed=turn_seed(self._about.seed, number),
        )
        given = await self._asked(POLICY, self._actor.act, request, self._view)
        given = replace(given, turn=_checked(POLICY, checked_turn, given.turn))
        acted = replace(given, turn=self._recorder.numbered(given.turn))
        outcome = await self._step(acted.turn)
        self._count(acted)
        before = self._recorder.steps
        _checked(ENVIRONMENT, self._recorder.turn, given.turn, acted, outcome)
        self._past.append(Past(acted, outcome))
        reflection = await self._asked(POLICY, self._actor.reflect, request, self._view)
        _checked(POLICY, self._recorder.reflect, before, reflection)
        if outcome.terminated or outcome.truncated:
            return _ending(acted.turn, outcome)
        return None

    async def _step(self, turn: Turn) -> Outcome:
        try:
            given = await self._asked(ENVIRONMENT, self._environment.step, turn)
        except UsageError as error:
            # The episode is under way, so the call itself was right.
            raise _Broken(ENVIRONMENT, str(error), "refused") from error
        return _checked(ENVIRONMENT, checked_outcome, given, turn)

    def _offered(self) -> list[Tool]:
        try:
            tools = list(self._environment.tools())
            self._recorder.offer(tools)
        except BaseException as error:
            if stops(error):
                raise
            raise _Broken(ENVIRONMENT, f"tools: {error_text(error)}") from error
        return tools

    def _count(self, acted: Acted) -> None:
        self._calls += len(acted.turn.calls)
        written = acted.turn.usage.tokens_out
        self._tokens += written if isinstance(written, int) and written > 0 else 0

    def _reached(self) -> str | None:
        seconds = time.monotonic() - self._started
        return self._limits.reached(len(self._past), self._calls, self._tokens, seconds)


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


async def _guarded(
    kind: str, method: Callable[..., Any], *args: Any, quiet: bool = False, **options: Any
) -> Any:
    """Call foreign code; what it raises becomes a broken episode."""
    try:
        return await method(*args, **options)
    except (UsageError, MissingExtraError, AgentLimitError):
        raise
    except InfrastructureError as error:
        raise _Broken(INFRASTRUCTURE, str(error), error.kind) from error
    except BaseException as error:
        inside = isinstance(error, asyncio.CancelledError) and not _is_cancelled()
        if stops(error) and not inside:
            raise
        if quiet:
            return None
        raise _Broken(kind, error_text(error)) from error


def _checked(kind: str, function: Callable[..., _T], *args: Any) -> _T:
    """Take in what foreign code answered; what cannot be taken becomes a broken episode."""
    try:
        return function(*args)
    except WrongAnswerError as error:
        raise _Broken(kind, str(error)) from error
    except Exception as error:
        raise _Broken(kind, error_text(error)) from error


def _is_cancelled() -> bool:
    """Whether the episode is being stopped, and not just something inside it."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0
