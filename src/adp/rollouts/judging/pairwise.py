"""Which of two runs is better, asked in both orders, because judges prefer a place.

A vote counts for a run when it names it in both orders. It is a tie when it says so twice, and
inconsistent when the two answers differ (Zheng et al. 2023, "Judging LLM-as-a-Judge with MT-Bench
and Chatbot Arena", section 3.4). Several votes come to what most of them say; when two things are
said as often, to a tie.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from adp.rollouts.judging.judge import Judge, Judgement
from adp.rollouts.judging.rubrics import pair_question
from adp.rollouts.judging.rulings import unread

Winner = Literal["first", "second", "tie", "inconsistent"]
_SWAPPED = {"first": "second", "second": "first", "tie": "tie"}
POINTS = {"first": 1.0, "second": 0.0, "tie": 0.5, "inconsistent": 0.5}
"""Winner -> points of the first run in a win rate."""


@dataclass(frozen=True)
class RunComparison:
    """What came of a comparison.

    Attributes:
        winner: who won; None: unscored.
        reason: why it is unscored.
        forward: the judgements with the first run shown first.
        backward: those with the second run shown first, in the judges' own words.
    """

    winner: Winner | None
    reason: str | None
    forward: Sequence[Judgement]
    backward: Sequence[Judgement]

    @property
    def judgements(self) -> list[Judgement]:
        """All judgements."""
        return [*self.forward, *self.backward]

    @property
    def places(self) -> Counter[str]:
        """How often the run that was shown first, or second, won, and how often it was a tie."""
        return Counter(item.label for item in self.judgements if item.label is not None)


async def compare(
    judge: Judge, first: str, second: str, criterion: str | None = None
) -> RunComparison:
    """Compare two runs.

    Args:
        judge: the judge.
        first: a run as text.
        second: another run at the same task.
        criterion: what is asked in the place of the usual words.
    """
    forward, backward = await asyncio.gather(
        judge.judgements(pair_question(first, second, criterion)),
        judge.judgements(pair_question(second, first, criterion)),
    )
    votes: list[Winner] = []
    for one_way, other_way in zip(forward, backward, strict=True):
        if one_way.label is not None and other_way.label is not None:
            votes.append(_vote(one_way.label, _SWAPPED[other_way.label]))
    if 2 * len(votes) <= len(forward):
        return RunComparison(None, unread([*forward, *backward]), forward, backward)
    (winner, most), *others = Counter(votes).most_common()
    if others and others[0][1] == most:
        winner = "tie"
    return RunComparison(winner, None, forward, backward)


def _vote(label: str, swapped: str) -> Winner:
    if label != swapped:
        return "inconsistent"
    return "first" if label == "first" else "second" if label == "second" else "tie"


def pairs_of(count: int, most: int | None) -> list[tuple[int, int]]:
    """Which of some runs are compared: neighbours first, so that each is compared as often.

    Args:
        count: number of runs.
        most: comparisons at most; None: all.
    """
    pairs = [
        (number, number + distance)
        for distance in range(1, count)
        for number in range(count - distance)
    ]
    return pairs[:most]
