"""What a reward gives: checked before it moves a model."""

from __future__ import annotations

import asyncio
import inspect
import math
from collections.abc import Awaitable, Callable
from typing import Any

from adp.rollouts.plugin_errors import error_text, stops
from adp_schema.errors import AdpError, TrainingError

_ADVICE = "mend it, and go on with --resume"

_LARGEST = 3e38
"""TRL holds rewards as float32; what is larger would be infinite there."""


def reward_numbers(
    name: str, call: Callable[[], Any], count: int, subjects: str
) -> list[float | None]:
    """Call a reward, and check its numbers.

    One number that is infinite would make all weights of the model no numbers.

    Args:
        name: of the reward.
        call: calls it; what it gives may have to be awaited.
        count: how many numbers it must give.
        subjects: what it rewards, in the plural: answers, or episodes.

    Returns:
        The numbers; None where the reward does not apply, or says that by NaN.

    Raises:
        TrainingError: it raised, or gave something else than a finite number for each.
    """
    try:
        values = call()
        if inspect.isawaitable(values):
            values = asyncio.run(_waited(values))
        values = None if values is None else list(values)
    except AdpError:
        raise
    except BaseException as error:
        if stops(error):
            raise
        raise TrainingError(f"the reward {name} failed: {error_text(error)}; {_ADVICE}") from error
    if values is None or len(values) != count:
        given = "None" if values is None else f"{len(values)} numbers"
        raise TrainingError(
            f"the reward {name} gave {given} for {count} {subjects}; it must give one number for "
            f"each, or None where it does not apply; {_ADVICE}"
        )
    return [_number(name, value) for value in values]


async def _waited(value: Awaitable[Any]) -> Any:
    return await value


def _number(name: str, value: Any) -> float | None:
    if value is None:
        return None
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.inf
    if isinstance(value, str) or abs(number) > _LARGEST:
        raise TrainingError(
            f"the reward {name} gave {value!r}, which is no finite number and not None; {_ADVICE}"
        )
    return None if math.isnan(number) else number
