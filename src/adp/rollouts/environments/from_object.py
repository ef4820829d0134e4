"""Any object as an environment: its public typed methods are the tools.

    class Shop:
        def reset(self, budget: int = 10, **columns) -> str | None:
            self.budget = budget
            return f"You have {budget} coins."

        def buy(self, item: str, price: int) -> str:
            '''Buys something.

            Args:
                item: what.
                price: its price in coins.
            '''
            self.budget -= price
            return f"You bought {item}; {self.budget} coins are left."

        def get_reward(self) -> float:
            return float(self.budget == 0)

    environment = from_object(Shop)

This is the contract of ``environment_factory`` of TRL's GRPOTrainer (TRL 1.16):

- ``reset(**columns)`` gets the columns of the task, and may return a text that is put behind the
  instruction.
- Public methods are tools; they may be coroutine functions. An exception is told to the agent.
- ``get_reward()`` gives the reward, or None.

and a little more: an attribute ``done`` that is True ends the episode; ``fork()`` makes a copy,
where a deep copy will not do; ``close()`` frees what the object holds; an attribute ``blocking``
that is True lets its methods run in threads, since they wait.
"""  # noqa: D214

from __future__ import annotations

import copy
import inspect
import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from adp.rollouts.answer_match import judged
from adp.rollouts.environment import CannotForkError, EnvironmentKind, Settings, Start, Verdict
from adp.rollouts.environments.signatures import Signature, signature_of
from adp.rollouts.tool_environment import AsyncToolEnvironment, ToolEnvironment
from adp_schema.errors import UsageError
from adp_schema.model import Task, Trajectory

RESERVED = frozenset(
    {"reset", "get_reward", "close", "state", "step", "tools", "score", "fork", "done"}
)
"""Names of methods that are no tools."""

_SIGNATURES: WeakKeyDictionary[type, Mapping[frozenset[str], Mapping[str, Signature]]] = (
    WeakKeyDictionary()
)


class ObjectEnvironment(ToolEnvironment):
    """An object as an environment; `from_object` makes it.

    Args:
        subject: the object.
        solved_at: reward from which on the task counts as solved; None: the task's ``answers``
            decide.
        reserved: names of methods that are no tools.

    Attributes:
        subject: the object.
        max_turns: turns of an episode, unless the user says others; None: the usual number.
    """

    def __init__(
        self,
        subject: Any,
        solved_at: float | None = None,
        reserved: frozenset[str] = RESERVED,
    ) -> None:
        super().__init__()
        self._solved_at, self._reserved = solved_at, reserved
        self._hold(subject)

    def _hold(self, subject: Any) -> None:
        self.subject = subject
        signatures = signatures_of(subject, self._reserved)
        self.functions = {
            name: signature.bound(getattr(subject, name)) for name, signature in signatures.items()
        }
        self.max_turns = None if "max_turns" in signatures else getattr(subject, "max_turns", None)

    def reset(self, task: Task | None = None, *, seed: int | None = None) -> Start:
        """Begin an episode.

        Raises:
            UsageError: neither the task nor ``reset`` of the object says what is to be done.
        """
        return self._begun(task, seed, _called(self.subject, "reset", columns_of(task, seed)))

    def _begun(self, task: Task | None, seed: int | None, observation: Any) -> Start:
        if observation is not None and not isinstance(observation, str):
            kind = type(self.subject).__name__
            raise UsageError(f"reset of {kind} must return a text or None")
        self.task, self.seed, self.answer = task, seed, None
        text = ((task.instruction if task else None) or "") + (observation or "")
        if not text:
            raise UsageError(
                "nobody says what is to be done: give tasks with an instruction, or let reset "
                "return a text"
            )
        return Start(({"role": "user", "content": text},))

    def is_over(self) -> bool:
        """Whether the object says that the episode is over."""
        return getattr(self.subject, "done", False) is True

    def score(self, trajectory: Trajectory) -> Verdict:
        """The object's reward; without ``get_reward``, the task's answers decide."""
        if not hasattr(self.subject, "get_reward"):
            return super().score(trajectory)
        return self._verdict(trajectory, self.subject.get_reward())

    def _verdict(self, trajectory: Trajectory, reward: Any) -> Verdict:
        value = None if reward is None else float(reward)
        if value is None or math.isnan(value):
            return Verdict()
        success = judged(self.task, trajectory.final_answer).success
        if self._solved_at is not None:
            success = value >= self._solved_at
        return Verdict(success=success, reward=value)

    def fork(self) -> ObjectEnvironment:
        """An independent copy: by ``fork`` of the object, or a deep copy of it.

        Raises:
            CannotForkError: it holds what cannot be copied.
        """
        fork_method = getattr(self.subject, "fork", None)
        try:
            subject = fork_method() if callable(fork_method) else copy.deepcopy(self.subject)
        except Exception as error:
            name = type(self.subject).__name__
            raise CannotForkError(f"{name} cannot be copied: {error}") from error
        twin = copy.copy(self)
        twin._hold(subject)
        return twin

    def close(self) -> None:
        """Let the object free what it holds."""
        close_method = getattr(self.subject, "close", None)
        if callable(close_method) and "close" in self._reserved:
            close_method()


class AsyncObjectEnvironment(AsyncToolEnvironment):
    """The same for an object of which some methods are coroutine functions.

    Args:
        inner: the object as an environment.
    """

    _inner: ObjectEnvironment

    def __init__(self, inner: ObjectEnvironment) -> None:
        super().__init__(inner)

    @property
    def subject(self) -> Any:
        """The object."""
        return self._inner.subject

    @property
    def max_turns(self) -> Any:
        """Turns of an episode, unless the user says others; None: the usual number."""
        return self._inner.max_turns

    async def reset(self, task: Task | None = None, *, seed: int | None = None) -> Start:
        """See `ObjectEnvironment.reset`."""
        observation = _called(self.subject, "reset", columns_of(task, seed))
        return self._inner._begun(task, seed, await _waited(observation))

    async def score(self, trajectory: Trajectory) -> Verdict:
        """See `ObjectEnvironment.score`."""
        if not hasattr(self.subject, "get_reward"):
            return self._inner.score(trajectory)
        return self._inner._verdict(trajectory, await _waited(self.subject.get_reward()))

    def fork(self) -> AsyncObjectEnvironment:
        """See `ObjectEnvironment.fork`."""
        return AsyncObjectEnvironment(self._inner.fork())

    async def close(self) -> None:
        """Let the object free what it holds."""
        close_method = getattr(self.subject, "close", None)
        if callable(close_method) and "close" in self._inner._reserved:
            await _waited(close_method())


def from_object(
    factory: Callable[[], Any],
    *,
    solved_at: float | None = None,
    blocking: bool = False,
    reserved: frozenset[str] = RESERVED,
) -> ObjectEnvironment | AsyncObjectEnvironment:
    """Make an environment of an object; see the module for the contract.

    Args:
        factory: a class, or a function that makes the object; called once.
        solved_at: reward from which on the task counts as solved; None: the task's ``answers``
            decide.
        blocking: whether methods wait for a disk, a process or a network; they then run in a
            thread. A class may say so itself, by an attribute ``blocking = True``.
        reserved: names of methods that are no tools.

    Returns:
        An asynchronous environment when a method is a coroutine function, else a plain one.

    Raises:
        UsageError: the factory cannot be called, a method has an argument without a type, or there
            is no method that could be a tool.
    """
    if not callable(factory):
        kind = type(factory).__name__
        raise UsageError(f"give the class, or a function that makes the object, not a {kind}")
    object_environment = ObjectEnvironment(factory(), solved_at, reserved)
    object_environment.blocking = (
        blocking or getattr(object_environment.subject, "blocking", False) is True
    )
    waits = [
        getattr(object_environment.subject, name, None) for name in ("reset", "get_reward", "close")
    ]
    values = signatures_of(object_environment.subject, reserved).values()
    if any(value.is_async for value in values) or any(map(inspect.iscoroutinefunction, waits)):
        return AsyncObjectEnvironment(object_environment)
    return object_environment


def object_kind(
    name: str,
    about: str,
    factory: Callable[..., Any],
    settings: type[Settings] = Settings,
    tasks: Callable[[Any, str, int | None, int], Sequence[Task]] | None = None,
    **options: Any,
) -> EnvironmentKind:
    """What an entry point of the group ``adp.environments`` names, for an object.

    Args:
        name: name of the environment on the command line.
        about: what it is, one sentence.
        factory: a class, or a function; it gets the settings by name.
        settings: its settings, a class with defaults.
        tasks: makes tasks: ``tasks(settings, split, count, seed)``.
        **options: options of `from_object`.
    """

    def make(chosen: Settings) -> ObjectEnvironment | AsyncObjectEnvironment:
        given = {field: getattr(chosen, field) for field in type(chosen).model_fields}
        return from_object(lambda: factory(**given), **options)

    return EnvironmentKind(name, about, settings, make, tasks)


def signatures_of(subject: Any, reserved: frozenset[str] = RESERVED) -> Mapping[str, Signature]:
    """The public methods of an object as signatures of tools, in the order of their definition.

    Raises:
        UsageError: an argument has no type or cannot be one of a tool, or there is no method.
    """
    kind = type(subject)
    known = _SIGNATURES.get(kind, {})
    if reserved in known:
        return known[reserved]
    names = dict.fromkeys(
        name
        for item in reversed(kind.__mro__)
        for name, value in vars(item).items()
        if not name.startswith("_")
        and name not in reserved
        and (inspect.isfunction(value) or isinstance(value, staticmethod | classmethod))
    )
    signatures = {name: signature_of(getattr(subject, name), name) for name in names}
    if not signatures:
        raise UsageError(f"{kind.__name__} has no public method, so there is no tool")
    _SIGNATURES[kind] = {**known, reserved: signatures}
    return signatures


def columns_of(task: Task | None, seed: int | None) -> dict[str, Any]:
    """The columns of a task as ``reset`` gets them.

    These are ``prompt`` (the messages), the columns of the task that are not null, with JSON as
    values, what ``extra`` holds, and ``seed``.
    """
    columns: dict[str, Any] = {} if seed is None else {"seed": seed}
    if task is None:
        return columns
    for name, value in task.model_dump(exclude_none=True).items():
        columns[name] = _value(value) if name in _JSON_COLUMNS else value
    extra = columns.pop("extra", None)
    if task.instruction:
        columns["prompt"] = [{"role": "user", "content": task.instruction}]
    return {**extra, **columns} if isinstance(extra, dict) else columns


_JSON_COLUMNS = frozenset(
    {
        *("turns", "answers", "expected_calls", "gold_trajectory", "tests"),
        *("environment_config", "reward_spec", "extra"),
    }
)


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _called(subject: Any, name: str, columns: Mapping[str, Any]) -> Any:
    """Call a method with those columns that it takes; None when there is no such method."""
    method = getattr(subject, name, None)
    if method is None:
        return None
    parameters = inspect.signature(method).parameters
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        return method(**columns)
    return method(**{key: value for key, value in columns.items() if key in parameters})


async def _waited(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value
