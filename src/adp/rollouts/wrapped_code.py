"""Environments and policies out of classes and functions of the user's.

adp collect --env my_code.py:Shop,coins=3 --policy my_code.py:Greedy

An environment is an `EnvironmentKind`, a class with typed methods, a class with the methods of
`Environment`, or a function that makes either. A policy is a `PolicyKind`, a class with ``act``, or
a function of a request. The arguments of a class or a making function are its settings.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, Field, create_model
from pydantic.errors import PydanticUserError

from adp.rollouts.environment import EnvironmentKind, Settings
from adp.rollouts.environments.from_object import from_object
from adp.rollouts.policy import Policy, PolicyKind, Request
from adp.rollouts.turns import Turn
from adp_schema.errors import UsageError

_SOLVED_AT = Field(default=None, description="Reward from which on the task counts as solved.")


def environment_kind(value: Any, name: str, file: Path | None = None) -> EnvironmentKind:
    """An environment out of what a name stands for.

    Args:
        value: an `EnvironmentKind`, a class, or a function that makes an environment or an object
            with typed methods.
        name: what to call it.
        file: file that it is defined in; a run notes its hash.

    Raises:
        UsageError: it is something else, or an argument cannot be a setting.
    """
    if isinstance(value, EnvironmentKind):
        return value
    if not callable(value) or not (inspect.isclass(value) or inspect.isroutine(value)):
        raise UsageError(
            f"'{name}' is no environment but a {type(value).__name__}; an environment is a name, a "
            "class, or a function that makes one for each episode"
        )
    more: dict[str, Any] = {}
    if inspect.isclass(value) and hasattr(value, "get_reward"):
        more["solved_at"] = (float | None, _SOLVED_AT)
    settings, make = _made_with(value, name, file, more)

    def environment(chosen: Settings) -> Any:
        made = make(chosen)
        if all(callable(getattr(made, method, None)) for method in ("reset", "step", "tools")):
            return made
        solved_at = getattr(chosen, "solved_at", None) if more else None
        return from_object(lambda: made, solved_at=solved_at)

    return EnvironmentKind(name, _about(value), settings, environment)


def policy_kind(value: Any, name: str, file: Path | None = None) -> PolicyKind:
    """A policy out of what a name stands for.

    Args:
        value: a `PolicyKind`, a class or an object with ``act``, or a function of a request.
        name: what to call it, when it has no ``name``.
        file: file that it is defined in; a run notes its hash.

    Raises:
        UsageError: it is something else, or an argument cannot be a setting.
    """
    if isinstance(value, PolicyKind):
        return value
    if inspect.isclass(value) and callable(getattr(value, "act", None)):
        settings, make = _made_with(value, name, file, {})
        return PolicyKind(name, _about(value), settings, lambda chosen: as_policy(make(chosen)))
    if inspect.isclass(value) or not (callable(value) or hasattr(value, "act")):
        what = "a class without act" if inspect.isclass(value) else f"a {type(value).__name__}"
        raise UsageError(
            f"'{name}' is no policy but {what}; name a class with act(request), a function of a "
            "request, or a PolicyKind"
        )
    settings = _settings(name, file, {})
    return PolicyKind(name, _about(value), settings, lambda chosen: as_policy(value))


def as_policy(value: Any) -> Policy:
    """A policy out of an object with ``act``, or of a function of a request.

    ``act`` and the function may be coroutine functions; ``name`` and ``close`` may be missing.

    Raises:
        UsageError: it is neither.
    """
    if not callable(value) and not hasattr(value, "act"):
        raise UsageError(
            f"a policy is a name, an object with act(request), or a function of a request, not "
            f"{type(value).__name__}"
        )
    act = getattr(value, "act", None)
    full = inspect.iscoroutinefunction(act) and inspect.iscoroutinefunction(
        getattr(value, "close", None)
    )
    if full and isinstance(getattr(value, "name", None), str):
        policy: Policy = value
        return policy
    return _WrappedPolicy(value, act or value)


class _WrappedPolicy:
    """A policy of the user's, with what it lacks."""

    def __init__(self, inner: Any, act: Callable[[Request], Any]) -> None:
        name = getattr(inner, "name", None)
        default = getattr(inner, "__name__", type(inner).__name__)
        self.name = name if isinstance(name, str) else default
        self._inner, self._act = inner, act

    async def act(self, request: Request) -> Turn:
        """The next turn."""
        act = self._act(request)
        turn = await act if inspect.isawaitable(act) else act
        if not isinstance(turn, Turn):
            raise TypeError(f"{self.name} gave a {type(turn).__name__} instead of a Turn")
        return turn

    async def close(self) -> None:
        """Free what it holds."""
        close = getattr(self._inner, "close", None)
        result = close() if callable(close) else None
        if inspect.isawaitable(result):
            await result


def _made_with(
    value: Any, name: str, file: Path | None, more: Mapping[str, Any]
) -> tuple[type[Settings], Callable[[Any], Any]]:
    """The settings of a class or a function, and what makes one of chosen settings."""
    try:
        parameters = inspect.signature(value, eval_str=True).parameters.values()
    except NameError as error:
        raise UsageError(
            f"the arguments of '{name}' have a type that is unknown: {error}"
        ) from None
    except (ValueError, TypeError):  # written in C
        parameters = ()  # type: ignore[assignment]
    taken = [
        parameter
        for parameter in parameters
        if parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)
    ]
    if len(taken) == 1 and inspect.isclass(taken[0].annotation):
        annotation = taken[0].annotation
        if issubclass(annotation, Settings):
            return _settings(name, file, {}, annotation), value
    fields: dict[str, Any] = {}
    for item in taken:
        kind = Any if item.annotation is item.empty else item.annotation
        fields[item.name] = (kind, ... if item.default is item.empty else item.default)
    names = tuple(fields)

    def make(chosen: Any) -> Any:
        return value(**{key: getattr(chosen, key) for key in names})

    return _settings(name, file, {**more, **fields}), make


class _OwnSettings(Settings):
    model_config = ConfigDict(arbitrary_types_allowed=True, protected_namespaces=())


def _settings(
    name: str, file: Path | None, fields: Mapping[str, Any], base: type[Settings] = _OwnSettings
) -> type[Settings]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an argument may be called like a method of pydantic's
        try:
            made: type[Settings] = create_model(f"{name}Settings", __base__=base, **fields)
        except (PydanticUserError, NameError, ValueError, TypeError) as error:
            first = str(error).splitlines()[0]
            raise UsageError(f"the arguments of '{name}' cannot be settings: {first}") from error
    made.made_in = file
    return made


def _about(value: Any) -> str:
    return (inspect.getdoc(value) or "").partition("\n")[0] or "Your own."
