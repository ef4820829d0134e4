"""The first wasteful step of a right trajectory is written anew by the refiner.

The steps before it are carried out again, then the new step; the policy goes on from there.
"""

from __future__ import annotations

import random

from adp.rollouts.evolving.asking import REFINER, Asking
from adp.rollouts.evolving.operator import Change, ParentRun, UnchangedError
from adp.rollouts.evolving.written_steps import corrected_part, read_number, read_turn
from adp.rollouts.turns import Turn


class RedundantStep:
    """The operator ``redundant_step``."""

    name = "redundant_step"
    about = "Let the refiner write the first wasteful step anew, and go on from there."
    applies_to = "correct"
    asks = (REFINER,)

    async def change(self, parent: ParentRun, asking: Asking, rng: random.Random) -> Change:
        """Ask for the step.

        Raises:
            UnchangedError: no step is wasteful.
            GaveUpError: the refiner gave no answer that can be used.
        """
        if not parent.steps:
            raise UnchangedError("there is no step")

        def read(text: str) -> tuple[int, Turn] | None:
            number = read_number(text, len(parent.steps), may_be_none=True)
            if number is None:
                return None
            return number, read_turn(corrected_part(text), parent.tools)

        chosen = await asking.ask(REFINER, "redundant_step", parent.facts(), read)
        if chosen is None:
            raise UnchangedError("the refiner finds nothing redundant")
        number, turn = chosen
        return Change((*parent.turns[: number - 1], turn), number - 1, number)


OPERATOR = RedundantStep()
