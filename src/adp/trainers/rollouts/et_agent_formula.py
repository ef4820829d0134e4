r"""The formula of ET-Agent's reward (arXiv 2601.06860), over texts and numbers alone.

    R = r * f_tool * f_len + f_fmt
    f_tool = 2 / (1 + exp(sigma_tool * (n - mean n)))       n: calls; the mean is that of the group
    f_len  = 2 / (1 + exp(sigma_len * z))                   z: z-score of the length in the group
    f_fmt  = -1 where the text is malformed, else 0

Both factors lie between 0 and 2, and are 1 at the mean. Within a training both sigmas shrink to 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from adp.core.answers.extraction import boxed, tagged_answer
from adp.core.answers.hendrycks import is_equiv
from adp.core.answers.words import normalised, overlap_f1

_FARTHEST = 700.0
_EXACT = ("yes", "no", "noanswer")


@dataclass(frozen=True, slots=True)
class MeasuredRollout:
    """What the formula needs of a rollout.

    Attributes:
        right: how right its answer is, from 0 to 1.
        calls: calls of tools.
        length: tokens of its response, results of tools included.
        malformed: whether it breaks the format.
    """

    right: float
    calls: int
    length: int
    malformed: bool


def shaped(group: Sequence[MeasuredRollout], sigma_tool: float, sigma_len: float) -> list[float]:
    """The rewards of the rollouts of one task.

    Args:
        group: its rollouts.
        sigma_tool: how much fewer calls than the mean are worth; 0: nothing.
        sigma_len: how much a shorter response than the mean is worth; 0: nothing.
    """
    if not group:
        return []
    calls = sum(rollout.calls for rollout in group) / len(group)
    scores = z_scores([rollout.length for rollout in group])
    return [
        rollout.right * factor(sigma_tool * (rollout.calls - calls)) * factor(sigma_len * score)
        - rollout.malformed
        for rollout, score in zip(group, scores, strict=True)
    ]


def factor(excess: float) -> float:
    """From 2 for far less than the mean over 1 at the mean to 0 for far more."""
    return 0.0 if excess > _FARTHEST else 2 / (1 + math.exp(excess))


def z_scores(lengths: Sequence[float]) -> list[float]:
    """Distances from the mean in standard deviations (of the population); 0 where all are equal."""
    mean = sum(lengths) / len(lengths)
    deviation = math.sqrt(sum((length - mean) ** 2 for length in lengths) / len(lengths))
    if not deviation:
        return [0.0] * len(lengths)
    return [(length - mean) / deviation for length in lengths]


def sigma_share(step: int, steps: int) -> float:
    """What is left of both sigmas: (T - t) / (T - 1), at least 0; 0 for a training of one step.

    Args:
        step: t, the number of the step, from 1.
        steps: T, the steps of the training.
    """
    return 0.0 if steps <= 1 else max(0.0, (steps - step) / (steps - 1))


def boxed_answer(text: str, rule: str) -> str | None:
    r"""The answer of a text in tags; None where there is none to compare.

    Args:
        text: all that was written.
        rule: ``math``: the last ``\boxed{}`` of the text, where it has an ``<answer>``; ``qa``: the
            last ``\boxed{}`` in the ``<answer>``.
    """
    answer = tagged_answer(text)
    if answer is None:
        return None
    return boxed(text if rule == "math" else answer)


def rightness(answer: str | None, references: Sequence[str], rule: str, words: str = "f1") -> float:
    """How right an answer is: by the best of the references.

    Args:
        answer: the answer; None: there is none.
        references: what is right.
        rule: ``math``: 1 for the same formula (`is_equiv`), else 0; ``qa``: F1 of words.
        words: how words count; ``f1``: by their F1; ``joined``: 1 when all of them are the same,
            else 0, as the published code does, which removes the spaces before it counts.
    """
    if answer is None:
        return 0.0
    if rule == "math":
        return float(any(is_equiv(answer, reference) for reference in references))
    return max((_word_score(answer, reference, words) for reference in references), default=0.0)


def _word_score(answer: str, reference: str, words: str) -> float:
    given, wanted = normalised(answer), normalised(reference)
    if words == "joined":
        given, wanted = given.replace(" ", ""), wanted.replace(" ", "")
    if given != wanted and (given in _EXACT or wanted in _EXACT):
        return 0.0
    return overlap_f1(given, wanted)
