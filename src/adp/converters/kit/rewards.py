"""Rewards of a run, and what they say about success."""

from __future__ import annotations

import math
from collections.abc import Mapping

from msgspec import Raw

from adp.converters.reading import NUMBER
from adp_schema import jsontext
from adp_schema.model import Columns


def set_reward(columns: Columns, reward: float | None) -> None:
    """Fill the reward of a run; 0 and 1 say whether it was a success.

    Args:
        columns: the row of the trajectory.
        reward: the number; None leaves all as it is.
    """
    if reward is None:
        return
    columns["reward"] = reward
    if reward in (0, 1):
        columns["success"] = reward == 1


def set_named(columns: Columns, values: Mapping[str, Raw]) -> None:
    """Fill the named rewards of a run from the numbers of an object.

    Args:
        columns: the row of the trajectory.
        values: the object; what is no number in it is passed over.
    """
    numbers = {
        key: raw
        for key, raw in values.items()
        if jsontext.first_byte(raw) in NUMBER and math.isfinite(float(bytes(raw)))
    }
    if numbers:
        columns["rewards"] = jsontext.text_of(numbers)
