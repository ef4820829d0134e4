"""What several verdicts about one thing come to. A tie is a state of its own, and so is no verdict.

| how | value | tie |
|---|---|---|
| majority | the label with the most votes | two labels have as many |
| mean | the mean of the values | never |
| unanimity | the label of all votes | there are two labels |

With half of the votes or fewer that can be read, the thing is unscored whatever they say.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from adp.rollouts.judging.judge import Judgement

Combine = Literal["majority", "mean", "unanimity"]
RulingState = Literal["scored", "tie", "unscored"]


@dataclass(frozen=True)
class Ruling:
    """What the verdicts come to.

    Attributes:
        state: scored, tie or unscored.
        value: the number; None unless scored.
        label: the label that it stands for; None unless scored, or where the mean is no label.
        reason: why it is not scored.
        agreement: share of the votes that could be read with the most frequent label; None without.
    """

    state: RulingState
    value: float | None = None
    label: str | None = None
    reason: str | None = None
    agreement: float | None = None


def combined(
    judgements: Sequence[Judgement], values: Mapping[str, float], combine: Combine
) -> Ruling:
    """Combine the verdicts about one thing.

    Args:
        judgements: the verdicts.
        values: label -> its number.
        combine: how.
    """
    labels = [judgement.label for judgement in judgements if judgement.label is not None]
    if 2 * len(labels) <= len(judgements):
        return Ruling("unscored", reason=unread(judgements))
    counts = Counter(labels).most_common()
    first, most = counts[0]
    agreement = most / len(labels)
    if combine == "mean":
        mean = sum(values[label] for label in labels) / len(labels)
        return Ruling("scored", mean, first if len(counts) == 1 else None, None, agreement)
    split = len(counts) > 1 and (combine == "unanimity" or counts[1][1] == most)
    if split:
        votes = ", ".join(f"{label} {number}" for label, number in sorted(counts))
        return Ruling("tie", reason=f"the votes are split: {votes}", agreement=agreement)
    return Ruling("scored", values[first], first, None, agreement)


def unread(judgements: Sequence[Judgement]) -> str:
    """Why there is no ruling: how many judges did not answer, or gave no verdict."""
    silent = sum(judgement.text is None for judgement in judgements)
    if silent:
        return f"the judge did not answer {silent} of {len(judgements)} times"
    lost = sum(judgement.label is None for judgement in judgements)
    return f"{lost} of {len(judgements)} judgements end without a verdict"
