"""What an environment is: the one page that an author of environments reads.

    environment.reset(task, seed=7)      -> the first messages
    environment.tools()                  -> the tools on offer now
    environment.step(turn)               -> results, and whether the episode has ended
    environment.score(trajectory)        -> success and rewards, apart from stepping
    environment.fork()                   -> an independent copy in the same state

An environment serves one episode at a time; a rollout makes one for each. `AsyncEnvironment` is
the same with coroutines. `adp.rollouts.tool_environment.ToolEnvironment` is a base class for those
whose tools are functions, and `adp.rollouts.environments.from_object` makes one of any object with
public typed methods.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeVar, runtime_checkable

from pydantic import ConfigDict

from adp.core.options import OptionsModel
from adp.core.registry import Registry
from adp.rollouts.turns import Message, Outcome, Tool, Turn
from adp_schema.errors import UsageError
from adp_schema.model import Task, Trajectory

_T = TypeVar("_T")


class CannotForkError(UsageError):
    """An environment cannot be copied in the state that it is in."""


@dataclass(frozen=True, slots=True)
class Start:
    """How an episode begins.

    Attributes:
        messages: messages of system and user, in the OpenAI shape.
        info: everything else; JSON. It is kept with the trajectory.
        policies: what the run was told, as columns of the trajectory: ``policy_tool_availability``,
            ``policy_tool_usage``, ``policy_final_answer``.
    """

    messages: tuple[Message, ...]
    info: Mapping[str, Any] = field(default_factory=dict)
    policies: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Verdict:
    """How an episode went. None is *not scored*, never a failure.

    Attributes:
        success: whether the task was solved.
        reward: reward of the whole run.
        rewards: further rewards by name.
        judge: why, as JSON: what was expected and what was found.
    """

    success: bool | None = None
    reward: float | None = None
    rewards: Mapping[str, float] = field(default_factory=dict)
    judge: Any = None


@runtime_checkable
class Environment(Protocol):
    """A world with tools that an agent acts in, one episode at a time.

    It may have an attribute ``max_turns``: turns of the agent after which an episode is cut, unless
    the user says another number; without it that is 30.
    """

    def tools(self) -> Sequence[Tool]:
        """The tools on offer now. They may change between turns."""
        ...

    def reset(self, task: Task | None = None, *, seed: int | None = None) -> Start:
        """Begin an episode.

        Args:
            task: what is to be done; None: a task of the environment's own, chosen by the seed.
            seed: fixes everything that is drawn.

        Raises:
            UsageError: the environment cannot do this task.
        """
        ...

    def step(self, turn: Turn) -> Outcome:
        """Carry out a turn. What the agent does wrong is a result with an error, no exception."""
        ...

    def score(self, trajectory: Trajectory) -> Verdict:
        """Judge the finished episode. It may look at its own state and at the trajectory."""
        ...

    def fork(self) -> Environment:
        """An independent copy in the same state.

        Raises:
            CannotForkError: it has a state that cannot be copied.
        """
        ...

    def close(self) -> None:
        """Free what it holds. It may be called twice."""
        ...


@runtime_checkable
class AsyncEnvironment(Protocol):
    """The same with coroutines. ``tools`` and ``fork`` return at once."""

    def tools(self) -> Sequence[Tool]:
        """See `Environment.tools`."""
        ...

    async def reset(self, task: Task | None = None, *, seed: int | None = None) -> Start:
        """See `Environment.reset`."""
        ...

    async def step(self, turn: Turn) -> Outcome:
        """See `Environment.step`."""
        ...

    async def score(self, trajectory: Trajectory) -> Verdict:
        """See `Environment.score`."""
        ...

    def fork(self) -> AsyncEnvironment:
        """See `Environment.fork`."""
        ...

    async def close(self) -> None:
        """See `Environment.close`."""
        ...


class InThread:
    """An environment as an asynchronous one.

    Args:
        inner: the environment. When it has a true attribute ``blocking``, because its tools wait
            for a disk, a process or a network, its methods run in a thread; else they run at once,
            which costs less than a thread.
    """

    def __init__(self, inner: Environment) -> None:
        self.inner = inner
        self._blocking = bool(getattr(inner, "blocking", False))

    async def _run(self, method: Callable[..., _T], *args: Any, **options: Any) -> _T:
        if self._blocking:
            return await asyncio.to_thread(method, *args, **options)
        return method(*args, **options)

    def tools(self) -> Sequence[Tool]:
        """The tools on offer now."""
        return self.inner.tools()

    async def reset(self, task: Task | None = None, *, seed: int | None = None) -> Start:
        """Begin an episode."""
        return await self._run(self.inner.reset, task, seed=seed)

    async def step(self, turn: Turn) -> Outcome:
        """Carry out a turn."""
        return await self._run(self.inner.step, turn)

    async def score(self, trajectory: Trajectory) -> Verdict:
        """Judge the finished episode."""
        return await self._run(self.inner.score, trajectory)

    def fork(self) -> InThread:
        """An independent copy in the same state."""
        return InThread(self.inner.fork())

    async def close(self) -> None:
        """Free what it holds."""
        await self._run(self.inner.close)


def as_async(environment: Environment | AsyncEnvironment) -> AsyncEnvironment:
    """Any environment as an asynchronous one."""
    if inspect.iscoroutinefunction(environment.step):
        return environment  # type: ignore[return-value]
    return InThread(environment)  # type: ignore[arg-type]


@dataclass(frozen=True)
class LeftOut:
    """An operation of a file that is not offered as a tool.

    Attributes:
        operation: what it is called, such as its method and path.
        place: JSON path of what the reason is about.
        reason: why.
        wrong: whether the file is wrong, or asks for what is not supported; else a setting would
            offer it.
    """

    operation: str
    place: str
    reason: str
    wrong: bool = True


CONTENT: dict[str, Any] = {"resume": "content"}
"""``json_schema_extra`` of a setting that may be a folder of data: a run notes what it holds, and
is not gone on with when that has changed."""


POLICY: dict[str, Any] = {"resume": "policy"}
"""``json_schema_extra`` of a setting that names a policy: a run may be gone on with when that is
reached elsewhere."""


class Settings(OptionsModel):
    """Settings of an environment, a policy or a scorer; unknown names are refused."""

    model_config = ConfigDict(coerce_numbers_to_str=True)

    made_in: ClassVar[Path | None] = None
    """File of the user's that defines what is set; a run notes the hash of its bytes."""


@dataclass(frozen=True)
class EnvironmentKind:
    """An environment that can be named on the command line.

    Attributes:
        name: its name.
        about: what it is, one sentence.
        settings: its settings, a class with defaults.
        make: makes one for an episode; called from the thread of the event loop.
        tasks: makes tasks: ``tasks(settings, split, count, seed)``; None: it has none of its own.
        stored: reads the tasks of a store, given its path, where the table of tasks alone does not
            say enough; None: that table.
        left_out: operations of the settings' file that are no tools, with the reasons; None: the
            environment has no such file.
    """

    name: str
    about: str
    settings: type[Settings]
    make: Callable[[Any], Environment | AsyncEnvironment]
    tasks: Callable[[Any, str, int | None, int], Sequence[Task]] | None = None
    stored: Callable[[str], Sequence[Task]] | None = None
    left_out: Callable[[Any], Sequence[LeftOut]] | None = None


ENVIRONMENTS: Registry[EnvironmentKind] = Registry(
    "environment",
    "adp.environments",
    {
        "calculator": "adp.rollouts.environments.calculator:KIND",
        "candidate_tools": "adp.rollouts.environments.candidate_tools:KIND",
        "configured": "adp.rollouts.environments.configured:KIND",
        "et_agent": "adp.rollouts.environments.et_agent:KIND",
        "gymnasium": "adp.rollouts.environments.from_gymnasium:KIND",
        "m3": "adp.rollouts.environments.m3:KIND",
        "mcp": "adp.rollouts.environments.from_mcp:KIND",
        "openapi": "adp.rollouts.environments.openapi.environment:KIND",
        "python": "adp.rollouts.environments.python:KIND",
        "retrieve_documents": "adp.rollouts.environments.retrieve_documents:KIND",
        "search": "adp.rollouts.environments.search:KIND",
        "sql": "adp.rollouts.environments.sql:KIND",
        "toolworld": "adp.rollouts.environments.toolworld:KIND",
        "verifiers": "adp.rollouts.environments.from_verifiers:KIND",
        "weather": "adp.rollouts.environments.weather:KIND",
    },
    made_by="adp.rollouts.wrapped_code:environment_kind",
)
