"""A right trajectory is rolled out once more from the beginning, with other draws of the policy."""

from __future__ import annotations

import random

from adp.rollouts.evolving.asking import Asking
from adp.rollouts.evolving.operator import Change, ParentRun


class ReRollout:
    """The operator ``re_rollout``."""

    name = "re_rollout"
    about = "Roll the task out once more, from the beginning."
    applies_to = "correct"
    asks: tuple[str, ...] = ()

    async def change(self, parent: ParentRun, asking: Asking, rng: random.Random) -> Change:
        """Keep nothing."""
        return Change()


OPERATOR = ReRollout()
