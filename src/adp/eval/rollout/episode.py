"""One episode: a policy, or a policy and an expert, in an environment, until it ends.

Nothing that goes wrong in an episode is lost or stops others. What breaks is written into the
trajectory as ``error_type`` (`recorder.INFRASTRUCTURE`: no answer could be had from the model;
`recorder.ENVIRONMENT`, `recorder.POLICY`: their code raised), with ``success`` null. Only an error
of the call itself (`UsageError`, `MissingExtraError`) is raised, since every episode would meet it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from adp.eval.environment import AsyncEnvironment, Environment, as_async
from adp.eval.policy import AgentLimitError, InfrastructureError, Request
from adp.eval.rollout.actor import Acted, Actor, Past, View
from adp.eval.rollout.limits import Limits
from adp.eval.rollout.recorder import (
    ENVIRONMENT,
    INFRASTRUCTURE,
    POLICY,
    About,
    Recorder,
    verdict_columns,
)
from adp.eval.turns import Outcome, Tool, Turn
from adp_schema.errors import MissingExtraError, UsageError
from adp_schema.ids import digest
from adp_schema.model import Trajectory

CUT = ("length", "max_tokens", "max_output_tokens")
"""Words of servers for a turn that ended because the limit of its tokens was reached."""


class _Broken(Exception):
    """Something broke that is no fault of the agent's."""

    def __init__(self, kind: str, reason: str, stop: str | None = None) -> None:
        super().__init__(reason)
        self.kind, self.stop = kind, stop or kind


@dataclass
class _Ending:
    terminated: bool = False
    truncated: bool = False
    reason: str | None = None


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
        actor: who acts; `adp.eval.rollout.actor.Alone` for a policy alone.
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
        self._view = View(environment, self._past)
        self._calls = self._tokens = 0
        self._started = time.monotonic()

    async def run(self) -> Trajectory:
        try:
            return await self._judged(await self._ended())
        finally:
            await _guarded(POLICY, self._actor.close, quiet=True)
            await _guarded(ENVIRONMENT, self._environment.close, quiet=True)

    async def _ended(self) -> dict[str, Any]:
        """Play to the end; return the columns that say how it ended."""
        try:
            async with asyncio.timeout(self._limits.max_seconds):
                ending = await self._play()
        except TimeoutError:
            ending = _Ending(truncated=True, reason="max_seconds")
        except AgentLimitError as error:
            ending = _Ending(truncated=True, reason=error.reason)
        except _Broken as broken:
            return {
                "terminated": False,
                "error_type": broken.kind,
                "error_message": str(broken),
                "stop_reason": broken.stop,
            }
        return {
            "terminated": ending.terminated,
            "truncated": ending.truncated,
            "stop_reason": ending.reason,
        }

    async def _judged(self, columns: dict[str, Any]) -> Trajectory:
        self._recorder.note(self._actor.summary())
        trajectory = self._recorder.end(**columns)
        if "error_type" in columns:
            return trajectory
        try:
            verdict = await _guarded(ENVIRONMENT, self._environment.score, trajectory)
        except _Broken as broken:
            found = {"error_type": broken.kind, "error_message": f"scoring: {broken}"}
        else:
            found = verdict_columns(verdict)
        for name, value in found.items():
            setattr(trajectory, name, value)
        return trajectory

    async def _play(self) -> _Ending:
        about = self._about
        try:
            start = await _guarded(
                ENVIRONMENT, self._environment.reset, about.task, seed=about.seed
            )
        except UsageError as error:
            if about.task is None:
                raise
            # One task that cannot be done does not stop the others.
            raise _Broken(ENVIRONMENT, str(error), "task") from error
        self._recorder.begin(start)
        while True:
            used = self._reached()
            if used is not None:
                return _Ending(truncated=True, reason=used)
            ending = await self._turn()
            if ending is not None:
                return ending

    async def _turn(self) -> _Ending | None:
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
        given = await _guarded(POLICY, self._actor.act, request, self._view)
        acted = replace(given, turn=self._recorder.numbered(given.turn))
        outcome = await _guarded(ENVIRONMENT, self._environment.step, acted.turn)
        self._count(acted)
        before = self._recorder.steps
        self._recorder.turn(given.turn, acted, outcome)
        self._past.append(Past(acted, outcome))
        reflection = await _guarded(POLICY, self._actor.reflect, request, self._view)
        self._recorder.reflect(before, reflection)
        if outcome.terminated or outcome.truncated:
            return _ending(acted.turn, outcome)
        return None

    def _offered(self) -> list[Tool]:
        try:
            tools = list(self._environment.tools())
            self._recorder.offer(tools)
        except Exception as error:
            raise _Broken(ENVIRONMENT, f"tools: {type(error).__name__}: {error}") from error
        return tools

    def _count(self, acted: Acted) -> None:
        self._calls += len(acted.turn.calls)
        self._tokens += acted.turn.usage.tokens_out or 0

    def _reached(self) -> str | None:
        seconds = time.monotonic() - self._started
        return self._limits.reached(len(self._past), self._calls, self._tokens, seconds)


def _ending(last: Turn, outcome: Outcome) -> _Ending:
    """How the environment ended the episode.

    An answer that the model's own limit of tokens cut is an answer that was not finished.
    """
    if last.stop_reason in CUT and not last.calls and not outcome.truncated:
        return _Ending(truncated=True, reason="length")
    return _Ending(outcome.terminated, outcome.truncated, outcome.stop_reason)


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
    except Exception as error:
        if quiet:
            return None
        raise _Broken(kind, f"{type(error).__name__}: {error}") from error
