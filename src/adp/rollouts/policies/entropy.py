"""How unsure a model was at a token: the entropy over the likeliest tokens that it might write."""

from __future__ import annotations

import math
from collections.abc import Iterable


def top_entropy(logprobs: Iterable[float], count: int) -> float:
    """The sum of -p log p over the likeliest tokens, in nats; what is below them is left out.

    Args:
        logprobs: log probabilities of tokens that might stand at one place, natural logarithm.
        count: how many of the likeliest to take.
    """
    likeliest = sorted((min(value, 0.0) for value in logprobs), reverse=True)[:count]
    return -sum(math.exp(value) * value for value in likeliest if value > -math.inf)
