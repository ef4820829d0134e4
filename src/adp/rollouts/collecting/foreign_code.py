"""Calling the code of policies and environments: what it raises becomes a broken episode."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from adp.rollouts.collecting.contract import WrongAnswerError
from adp.rollouts.collecting.recorder import ENVIRONMENT, INFRASTRUCTURE, About, Recorder
from adp.rollouts.plugin_errors import error_text, stops
from adp.rollouts.policy import AgentLimitError, InfrastructureError
from adp_schema.errors import MissingExtraError, UsageError
from adp_schema.model import Trajectory

_T = TypeVar("_T")


class BrokenEpisodeError(Exception):
    """Something broke that is no fault of the agent's."""

    def __init__(self, kind: str, reason: str, stop: str | None = None) -> None:
        super().__init__(reason)
        self.kind, self.stop = kind, stop or kind


async def guarded(
    kind: str, method: Callable[..., Any], *args: Any, quiet: bool = False, **options: Any
) -> Any:
    """Call foreign code; what it raises becomes a broken episode."""
    try:
        return await method(*args, **options)
    except (UsageError, MissingExtraError, AgentLimitError):
        raise
    except InfrastructureError as error:
        raise BrokenEpisodeError(INFRASTRUCTURE, str(error), error.kind) from error
    except BaseException as error:
        inside = isinstance(error, asyncio.CancelledError) and not _is_cancelled()
        if stops(error) and not inside:
            raise
        if quiet:
            return None
        raise BrokenEpisodeError(kind, error_text(error)) from error


def checked(kind: str, function: Callable[..., _T], *args: Any) -> _T:
    """Take in what foreign code answered; what cannot be taken becomes a broken episode."""
    try:
        return function(*args)
    except WrongAnswerError as error:
        raise BrokenEpisodeError(kind, str(error)) from error
    except Exception as error:
        raise BrokenEpisodeError(kind, error_text(error)) from error


def _is_cancelled() -> bool:
    """Whether the episode is being stopped, and not just something inside it."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


def broken(about: About, error: BaseException) -> Trajectory:
    """The trajectory of an episode that could not begin."""
    refused = isinstance(error, UsageError)
    return Recorder(about).end(
        terminated=False,
        error_type=ENVIRONMENT,
        error_message=str(error) if refused else error_text(error),
        stop_reason="refused" if refused else ENVIRONMENT,
    )
