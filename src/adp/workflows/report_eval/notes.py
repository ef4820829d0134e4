"""Sentences that a report about evaluations says of runs."""

from __future__ import annotations

BROKEN = (
    "What broke is no fault of the agent's: no answer could be had from the model, or the code of "
    "an environment or a policy raised. It counts in no figure above."
)

SUPERSEDED = (
    "Superseded are tries that broke and were made again. They are no episodes, and count in no "
    "other number."
)
BY_REWARD = (
    "Of {} episodes only the reward is known; a reward of 1 (within a millionth) is a success."
)

ASSISTED = "{} is a run with an expert ({}): its figures are not what the policy does by itself."
