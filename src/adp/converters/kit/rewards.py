"""Rewards of a run, and what they say about success."""

from __future__ import annotations

import math
from collections.abc import Mapping

from msgspec import Raw

from adp.converters.kit.source_object import SourceObject
from adp.converters.reading import NUMBER
from adp_schema import jsontext
from adp_schema.losses import Losses
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


def set_weighted(columns: Columns, values: Mapping[str, Raw], losses: Losses) -> None:
    """Fill the rewards of a run from objects with a score and a weight; their sum is the reward.

    Args:
        columns: the row of the trajectory.
        values: name -> object; null where nothing was scored.
        losses: takes keys that occur twice.
    """
    parts = {name: SourceObject(raw, "$.rewards", losses) for name, raw in values.items()}
    set_named(columns, {name: it.values["score"] for name, it in parts.items() if "score" in it})
    products = []
    for part in parts.values():
        score, weight = part.number("score"), part.number("weight")
        if score is not None:
            products.append(score * (1.0 if weight is None else weight))
    set_reward(columns, sum(products) if products else None)
