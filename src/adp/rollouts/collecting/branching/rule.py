"""Where attempts branch: ARPO's rule. Nothing here reads or writes anything.

After each turn, an attempt that goes on may be copied, so that another attempt goes on from the
same place. Of the turn the entropy is taken: the sum, over its first tokens and at each over the
likeliest tokens, of -p log p, divided by the log of how many tokens the model knows. The more it
has risen since the first turn, the likelier is a branch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from adp.rollouts.collecting.branching.settings import BranchingSettings
from adp_schema.ids import digest

Draw = Callable[[int, int], float]
"""Given the number of an attempt and that of a possible branch, a number from 0 to below 1."""


@dataclass(frozen=True, slots=True)
class ActivePath:
    """An attempt that goes on after its turn.

    Attributes:
        number: its number.
        entropy: entropy of the turn; None: it is not known, and the attempt does not branch.
        first: entropy that it is compared with.
    """

    number: int
    entropy: float | None
    first: float | None


def turn_entropy(entropies: Sequence[float], vocabulary: int, tokens: int = 20) -> float:
    """The entropy of a turn.

    Args:
        entropies: of each token that was written, in nats.
        vocabulary: how many tokens the model knows.
        tokens: how many of the first ones count.
    """
    return sum(entropies[:tokens]) / math.log(vocabulary)


def is_branch(drawn: float, rise: float, weight: float, probability: float) -> bool:
    """Whether to branch.

    Args:
        drawn: a number from 0 to 1.
        rise: how much higher the entropy is than at the first turn.
        weight: how much of that counts.
        probability: the chance when it has not risen.
    """
    return min(max(drawn - weight * rise, 0.0), 1.0) <= probability


def choose_branches(
    paths: Sequence[ActivePath], slots: int, settings: BranchingSettings, draw: Draw
) -> list[int]:
    """From which attempts to branch.

    Args:
        paths: the attempts that go on, in the order of their numbers.
        slots: attempts that may still begin.
        settings: how they branch.
        draw: what is drawn for a possible branch.

    Returns:
        Numbers of attempts, in order; one is there as often as it branches.
    """
    chosen: list[int] = []
    for path in paths:
        if path.entropy is None or path.first is None:
            continue
        rise = path.entropy - path.first
        for number in range(min(settings.beam - 1, slots - len(chosen))):
            drawn = draw(path.number, number)
            if is_branch(drawn, rise, settings.entropy_weight, settings.probability):
                chosen.append(path.number)
    return chosen


def branch_draw(seed: int, turn: int, number: int) -> float:
    """What is drawn for a possible branch: the same for the same attempt, turn and number.

    Args:
        seed: seed of the attempt, which differs for each task and attempt.
        turn: number of the turn after which it would branch.
        number: number of the branch there, from 0.

    Returns:
        A number from 0 to below 1.
    """
    digits = 13  # 52 bits, as many as a float holds
    return int(digest(f"{seed}/branch/{turn}/{number}".encode())[:digits], 16) / 16.0**digits
