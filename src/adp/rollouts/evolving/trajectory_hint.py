"""The answer of a wrong trajectory is taken back: its words and a hint open the thought anew.

All steps before the answer are carried out again, and the policy goes on from the hint.
"""

from __future__ import annotations

import random

from adp.rollouts.evolving.asking import Asking
from adp.rollouts.evolving.operator import Change, ParentRun
from adp.rollouts.evolving.step_hint import draw_hint
from adp.rollouts.evolving.written_steps import thought_of


class TrajectoryHint:
    """The operator ``trajectory_hint``."""

    name = "trajectory_hint"
    about = "Take the answer back, put a hint behind its thought, and go on from there."
    applies_to = "incorrect"
    asks: tuple[str, ...] = ()

    async def change(self, parent: ParentRun, asking: Asking, rng: random.Random) -> Change:
        """Reopen the last thought."""
        hint = draw_hint(parent.tools, rng)
        turns = parent.turns
        if not parent.is_answered:
            return Change(turns, len(turns), len(turns) + 1, opening=hint)
        last = turns[-1]
        words = [thought_of(last), last.text.strip(), hint]
        opening = "\n".join(part for part in words if part)
        return Change(turns[:-1], len(turns) - 1, len(turns), opening=opening)


OPERATOR = TrajectoryHint()
